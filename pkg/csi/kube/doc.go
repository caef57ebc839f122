// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube reads for CSI drivers what they need of the Kubernetes API, and writes events there. It works with the roles of
// older manifests: what they do not allow is off.
package kube
