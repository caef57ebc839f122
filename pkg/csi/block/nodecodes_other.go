// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package block

import "google.golang.org/grpc/codes"

// nodeCode: nodes run Linux.
func nodeCode(error) codes.Code { return codes.Unknown }
