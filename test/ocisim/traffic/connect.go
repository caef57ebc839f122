// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// Errors of connections to backends.
var (
	// ErrUnmapped says that nothing leads to the address of a backend: see MapBackend.
	ErrUnmapped = errors.New("the backend's address is not mapped to a real one")
	// ErrDown says that the backend is on an instance that does not run.
	ErrDown = errors.New("the backend's instance does not run")
)

// connect opens a connection to a backend: a PROXY header first if there is one, then TLS if the backend set has it. port is
// for backends that have none. from is the address that the backend is to see, with a port if it is not our own.
func (b *Body) connect(ctx context.Context, from netip.AddrPort, to backend, port int, header []byte, encrypt *backendTLS) (net.Conn, error) {
	if encrypt != nil && encrypt.err != nil {
		return nil, encrypt.err
	}
	address := to.address
	if address == "" {
		address = b.region.BackendAddress(to.target)
	}
	if to.port != 0 {
		port = to.port
	}
	conn, err := b.dial(ctx, from, address, port)
	if err != nil {
		return nil, fmt.Errorf("connect to backend %s: %w", to.name, err)
	}
	if len(header) > 0 {
		if _, err := conn.Write(header); err != nil {
			conn.Close()
			return nil, fmt.Errorf("connect to backend %s: PROXY header: %w", to.name, err)
		}
	}
	if encrypt == nil {
		return conn, nil
	}
	secure := tls.Client(conn, encrypt.config)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("connect to backend %s: TLS handshake: %w", to.name, err)
	}
	return secure, nil
}

// dial reaches the socket behind an address of the region.
func (b *Body) dial(ctx context.Context, from netip.AddrPort, address string, port int) (net.Conn, error) {
	if !b.region.BackendUp(address) {
		return nil, ErrDown
	}
	target := net.JoinHostPort(address, strconv.Itoa(port))
	if b.options.Dial != nil {
		return b.options.Dial(ctx, target)
	}
	socket, err := b.resolve(address, target)
	if err != nil {
		return nil, err
	}
	return dialFrom(ctx, from, socket)
}

// dialFrom connects with the given source. One with a port is that of somebody else; if the port is taken there, another one
// of the same address will do. A source of the other family is passed over.
func dialFrom(ctx context.Context, from netip.AddrPort, socket string) (net.Conn, error) {
	var d net.Dialer
	to, err := netip.ParseAddrPort(socket)
	if err != nil || !from.Addr().IsValid() || from.Addr().Is4() != to.Addr().Unmap().Is4() {
		return d.DialContext(ctx, "tcp", socket)
	}
	d.Control = sourceControl(from)
	d.LocalAddr = net.TCPAddrFromAddrPort(from)
	conn, err := d.DialContext(ctx, "tcp", socket)
	if from.Port() != 0 && (errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)) {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from.Addr(), 0))
		return d.DialContext(ctx, "tcp", socket)
	}
	return conn, err
}

// resolve applies the map of backends: an address with its port, an address, the smallest block of addresses.
func (b *Body) resolve(address, target string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	to, ok := b.mapped[target]
	if !ok {
		to, ok = b.mapped[address]
	}
	ip, err := netip.ParseAddr(address)
	if !ok && err == nil {
		to, ok = b.block(ip)
	}
	if !ok {
		if b.options.Direct || (err == nil && ip.IsLoopback()) {
			return target, nil
		}
		return "", ErrUnmapped
	}
	if _, _, err := net.SplitHostPort(to); err == nil {
		return to, nil
	}
	_, port, err := net.SplitHostPort(target)
	if err != nil {
		return "", fmt.Errorf("backend %s: %w", target, err)
	}
	return net.JoinHostPort(to, port), nil
}

// block finds the smallest block of addresses in the map that has an address.
func (b *Body) block(ip netip.Addr) (to string, found bool) {
	bits := -1
	for key, v := range b.mapped {
		if p, err := netip.ParsePrefix(key); err == nil && p.Contains(ip) && p.Bits() > bits {
			to, found, bits = v, true, p.Bits()
		}
	}
	return to, found
}

// MapBackend leads connections to backends to real sockets. backend is "10.0.0.2:30080", "10.0.0.2" for all its ports, or
// "10.0.0.0/24" for all addresses of a block; target is "127.0.0.1:4711", or "127.0.0.1" for the same port there. An empty
// target ends it.
func (b *Body) MapBackend(backend, target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if target == "" {
		delete(b.mapped, backend)
		return
	}
	b.mapped[backend] = target
}

// Backends is the map that MapBackend makes.
func (b *Body) Backends() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.mapped)
}
