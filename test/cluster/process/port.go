// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// ReservedPort is a TCP port that belongs to nobody else as long as it is open: it
// is bound, but not listening, with SO_REUSEPORT. A server that also sets
// SO_REUSEPORT (kube-apiserver --permit-port-sharing) and runs as the same user can
// listen on it; the kernel gives it to no other program, neither on request nor as
// an ephemeral port. While no server listens, connections are refused.
type ReservedPort struct {
	fd   int
	addr netip.AddrPort
}

// ReservePort reserves a free port of the IPv4 loopback interface.
func ReservePort() (*ReservedPort, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	port, err := bindLoopback(fd)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	return &ReservedPort{fd: fd, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)}, nil
}

func bindLoopback(fd int) (uint16, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	inet, ok := bound.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("bound to %T instead of an IPv4 address", bound)
	}
	return uint16(inet.Port), nil
}

// Addr is the reserved address, 127.0.0.1 with the port.
func (p *ReservedPort) Addr() netip.AddrPort { return p.addr }

// Close gives the port back.
func (p *ReservedPort) Close() error { return unix.Close(p.fd) }
