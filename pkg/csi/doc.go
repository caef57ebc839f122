// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package csi serves CSI drivers over gRPC: a socket, a chain of interceptors, and the identity service. The drivers
// themselves are below it.
//
// Every call goes through the chain once, from the outside in:
//
//	measure   one line of log with secrets stripped, and the histogram csi_plugin_operations_seconds
//	translate errors of the domain to codes of gRPC; what has a code keeps it
//	recover   a panic becomes Internal, and is counted
//	exclude   a second call about a volume that is being worked on is Aborted, and comes again
package csi
