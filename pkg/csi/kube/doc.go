// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube reads for CSI drivers what they need of the Kubernetes API.
package kube
