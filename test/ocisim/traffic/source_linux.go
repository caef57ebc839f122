// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// sourceControl prepares a socket for a source address: one with a port is not of this machine; for one without, the kernel
// chooses the port when it knows where the connection goes, so that there are enough of them.
func sourceControl(from netip.AddrPort) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var set error
		err := c.Control(func(fd uintptr) {
			level, transparent := unix.SOL_IP, unix.IP_TRANSPARENT
			if from.Addr().Is6() {
				level, transparent = unix.SOL_IPV6, unix.IPV6_TRANSPARENT
			}
			if from.Port() == 0 {
				set = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
				return
			}
			set = errors.Join(
				unix.SetsockoptInt(int(fd), level, transparent, 1),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
			)
		})
		return errors.Join(err, set)
	}
}
