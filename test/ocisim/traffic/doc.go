// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package traffic gives the balancers of a simulated region a body: each one that takes traffic really listens, on a
// loopback address of its own, checks its backends and forwards TCP connections to them.
//
//	body := traffic.New(traffic.Options{PortOffset: 20000})
//	region := ocisim.New(ocisim.Options{Balancers: body})
//	defer region.Close()
//	body.MapBackend("10.0.0.2:30080", nodePort.Addr().String())
//	…
//	conn, err := body.DialContext(ctx, "tcp", "198.18.0.2:80") // an address that the API shows
//
// A backend is reached only where MapBackend or Options.Dial leads to a real socket, or where it is a loopback address
// itself; Options.Direct opens the way to any address.
//
// # What it does
//
//   - Policies: ROUND_ROBIN and LEAST_CONNECTIONS with weights, IP_HASH, and the tuples of network load balancers. Drain,
//     offline, backup, fail open, and the limits of connections.
//   - Checks by TCP, HTTP and HTTPS with interval, timeout, retries, status, body and, for TCP, request and response data.
//     The health that they find is the health that the API shows.
//   - TLS: a listener terminates it with its certificate, and a backend set with TLS settings encrypts anew.
//   - PROXY protocol version 1 and 2, idle timeouts, half-closed connections.
//   - Several HTTP listeners on one port by host name.
//   - Changes while connections live: a connection ends with its backend (at once, or after Options.Linger) or its balancer, not
//     with its listener.
//
// # What it does not do
//
//   - UDP, ICMP and listeners on all ports. Their listeners show why they do not listen; checks by UDP and DNS find nothing.
//   - HTTP as such. The bytes of HTTP listeners are forwarded as they are, without headers, rule sets, cookies and routes.
//   - Source addresses: backends see a loopback address, unless Options.OwnAddresses is set in a network made for it. The PROXY
//     protocol tells the client's.
//   - Encrypted private keys, CAs that are no bundles, and certificates whose key no call of the API brought.
//   - Security lists and groups: everybody on the machine can connect.
package traffic
