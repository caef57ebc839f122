// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package traffic

import (
	"errors"
	"net/netip"
	"syscall"
)

var errTransparent = errors.New("the source of a connection can be preserved on Linux only")

// sourceControl prepares a socket for a source address.
func sourceControl(from netip.AddrPort) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, _ syscall.RawConn) error {
		if from.Port() != 0 {
			return errTransparent
		}
		return nil
	}
}
