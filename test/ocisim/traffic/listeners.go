// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// ErrUnknownAddress says that no balancer that takes traffic has an address.
var ErrUnknownAddress = errors.New("no balancer has this address")

// ErrLoopback says that an address is none of this machine's loopback.
var ErrLoopback = errors.New("want an IPv4 loopback address")

// Listener is a listener of a balancer and where it is reached.
type Listener struct {
	Balancer  string   `json:"balancer"` // OCID
	Name      string   `json:"name"`     // display name of the balancer
	Listener  string   `json:"listener"`
	Protocol  string   `json:"protocol"`
	Addresses []string `json:"addresses"` // of the balancer, as the API shows them
	Port      int      `json:"port"`
	Listen    string   `json:"listen,omitempty"`  // the socket, "127.64.0.1:20080"
	Problem   string   `json:"problem,omitempty"` // why there is none
}

// Listeners tells where every balancer listens, by balancer and listener.
func (b *Body) Listeners() []Listener {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := []Listener{}
	for _, r := range b.running {
		for _, l := range r.listeners {
			one := Listener{
				Balancer: r.id, Name: r.name, Listener: l.name, Protocol: l.protocol, Addresses: slices.Clone(r.addresses), Port: l.port,
				Problem: r.problems[l.name],
			}
			for _, socket := range b.sockets(r, l.port) {
				if f := r.fronts[socket]; f != nil && one.Problem == "" && one.Listen == "" {
					one.Listen = f.socket.Addr().String()
				}
			}
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(x, y Listener) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Balancer, y.Balancer), cmp.Compare(x.Listener, y.Listener))
	})
	return list
}

// Loopback is the loopback address that stands for an address of a balancer.
func (b *Body) Loopback(address string) (netip.Addr, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.running {
		if slices.Contains(r.addresses, address) {
			return r.loopback, true
		}
	}
	a, ok := b.chosen[address]
	return a, ok
}

// SetLoopback chooses the loopback address that stands for an address of a balancer, which need not exist yet. A balancer that
// listens moves there; its connections live on.
func (b *Body) SetLoopback(address string, loopback netip.Addr) error {
	if !loopback.Is4() || !loopback.IsLoopback() {
		return fmt.Errorf("%s: %w", loopback, ErrLoopback)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.chosen[address] = loopback
	for _, r := range b.running {
		if slices.Contains(r.addresses, address) {
			r.stale = true
		}
	}
	b.stir()
	return nil
}

// DialContext connects to a balancer by an address that the API shows, "198.18.0.2:80".
func (b *Body) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	loopback, ok := b.Loopback(host)
	if !ok {
		return nil, fmt.Errorf("dial %s: %w", address, ErrUnknownAddress)
	}
	var d net.Dialer
	if b.options.OwnAddresses {
		return d.DialContext(ctx, network, address)
	}
	return d.DialContext(ctx, network, net.JoinHostPort(loopback.String(), strconv.Itoa(n+b.options.PortOffset)))
}

// open listens where the balancer does, and nowhere else. A port that could not be opened is tried again.
func (b *Body) open(r *running) {
	for _, address := range r.addresses {
		if a, ok := b.chosen[address]; ok {
			r.loopback = a
		}
	}
	r.stale = false
	wanted := map[string][]route{}
	for port, routes := range r.routes() {
		for _, socket := range b.sockets(r, port) {
			wanted[socket] = routes
		}
	}
	for socket, f := range r.fronts {
		if len(wanted[socket]) == 0 {
			f.close()
			delete(r.fronts, socket)
		}
	}
	for socket, routes := range wanted {
		if f := r.fronts[socket]; f != nil {
			f.routes.Store(&routes)
			continue
		}
		f, err := b.listen(socket, routes)
		if err != nil {
			r.stale = true
			for _, one := range routes {
				r.problems[one.name] = err.Error()
			}
			continue
		}
		r.fronts[socket] = f
	}
}

// sockets are where a balancer listens for one of its ports.
func (b *Body) sockets(r *running, port int) []string {
	if !b.options.OwnAddresses {
		return []string{net.JoinHostPort(r.loopback.String(), strconv.Itoa(port+b.options.PortOffset))}
	}
	own := make([]string, 0, len(r.addresses))
	for _, a := range r.addresses {
		own = append(own, net.JoinHostPort(a, strconv.Itoa(port)))
	}
	return own
}

// routes are the listeners that can listen, by port; the others have problems.
func (r *running) routes() map[int][]route {
	byPort := map[int][]route{}
	r.problems = map[string]string{}
	for _, l := range r.listeners {
		one := route{listener: l, pool: r.pools[l.set], to: r.shown(l.port)}
		var err error
		switch {
		case l.problem != "":
			r.problems[l.name] = l.problem
			continue
		case one.pool == nil:
			r.problems[l.name] = "there is no backend set " + l.set
			continue
		case l.tls != nil:
			one.config, err = serverTLS(l.tls, r.bundles)
		}
		if err != nil {
			r.problems[l.name] = err.Error()
			continue
		}
		byPort[l.port] = append(byPort[l.port], one)
	}
	return byPort
}

// shown is an address and port of the balancer as the API shows them, for PROXY headers.
func (r *running) shown(port int) netip.AddrPort {
	for _, text := range r.addresses {
		if a, err := netip.ParseAddr(text); err == nil {
			return netip.AddrPortFrom(a, uint16(port)) //nolint:gosec // the region checks ports
		}
	}
	return netip.AddrPort{}
}
