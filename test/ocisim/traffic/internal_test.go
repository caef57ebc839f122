// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"crypto/tls"
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProxyHeaders(t *testing.T) {
	four, six := netip.MustParseAddrPort("192.0.2.1:258"), netip.MustParseAddrPort("[2001:db8::1]:443")
	for name, c := range map[string]struct {
		version  int
		from, to netip.AddrPort
		server   string
		want     string
	}{
		"1, IPv4":          {1, four, netip.MustParseAddrPort("198.51.100.1:80"), "x", "PROXY TCP4 192.0.2.1 198.51.100.1 258 80\r\n"},
		"1, IPv6":          {1, six, six, "", "PROXY TCP6 2001:db8::1 2001:db8::1 443 443\r\n"},
		"1, mixed":         {1, four, six, "", "PROXY TCP6 ::ffff:192.0.2.1 2001:db8::1 258 443\r\n"},
		"2, IPv4":          {2, four, four, "", "0d0a0d0a000d0a515549540a2111000cc0000201c000020101020102"},
		"2, IPv6":          {2, six, six, "", "0d0a0d0a000d0a515549540a2121002420010db800000000000000000000000120010db800000000000000000000000101bb01bb"},
		"2 with authority": {2, four, four, "a.b", "0d0a0d0a000d0a515549540a21110012c0000201c000020101020102" + "020003612e62"},
	} {
		got := string(proxyHeader(c.version, c.from, c.to, c.server))
		if c.version == 2 {
			got = hex.EncodeToString([]byte(got))
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestHostRank(t *testing.T) {
	routes := []route{
		{listener: listener{name: "exact", hostnames: []string{"a.b.example.com"}}},
		{listener: listener{name: "leading", hostnames: []string{"*.example.com"}}},
		{listener: listener{name: "longer", hostnames: []string{"*.b.example.com"}}},
		{listener: listener{name: "trailing", hostnames: []string{"a.*"}}},
		{listener: listener{name: "rest"}},
	}
	for host, want := range map[string]string{
		"a.b.example.com": "exact", "A.B.example.com": "exact", "x.b.example.com": "longer", "x.example.com": "leading", "a.test": "trailing",
		"example.com": "rest", "": "rest",
	} {
		if got := routeFor(routes, host).name; got != want {
			t.Errorf("%q is for %s, want %s", host, got, want)
		}
	}
	if got := routeFor(routes[:4], "nobody.test").name; got != "exact" {
		t.Errorf("without a listener for all, %s answers, want the first", got)
	}
}

// TestRendezvousIsProportionalAndStable sends many clients to backends of different weights, and then loses one backend.
func TestRendezvousIsProportionalAndStable(t *testing.T) {
	a, b, c := &member{backend: backend{name: "a", weight: 1}}, &member{backend: backend{name: "b", weight: 2}}, &member{backend: backend{name: "c", weight: 5}}
	counts, moved := map[string]int{}, 0
	const clients = 8000
	for i := range clients {
		key := []byte{10, byte(i >> 16), byte(i >> 8), byte(i)}
		before := rendezvous([]*member{a, b, c}, key)
		counts[before.name]++
		if after := rendezvous([]*member{a, c}, key); before != b && after != before {
			moved++
		}
	}
	for name, weight := range map[string]int{"a": 1, "b": 2, "c": 5} {
		want := clients * weight / 8
		if n := counts[name]; n < want*8/10 || n > want*12/10 {
			t.Errorf("%s got %d clients, want about %d", name, n, want)
		}
	}
	if moved > 0 {
		t.Errorf("%d clients of backends that stayed moved", moved)
	}
}

func TestCipherNames(t *testing.T) {
	for iana, want := range map[string]string{
		"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
		"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA":  "ECDHE-ECDSA-AES256-SHA",
		"TLS_RSA_WITH_AES_128_CBC_SHA256":       "AES128-SHA256",
		"TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA":   "ECDHE-RSA-DES-CBC3-SHA",
		"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
		"TLS_AES_128_GCM_SHA256":                "TLS_AES_128_GCM_SHA256",
	} {
		if got := openSSLName(iana); got != want {
			t.Errorf("%s is %s, want %s", iana, got, want)
		}
	}
	ids, err := ciphersOf([]string{"DHE-RSA-AES128-SHA", "ECDHE-RSA-AES128-GCM-SHA256"})
	if diff := cmp.Diff([]uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}, ids); err != nil || diff != "" {
		t.Errorf("ciphers %v: %v", ids, err)
	}
	if _, err := ciphersOf([]string{"DHE-RSA-AES128-SHA"}); err == nil {
		t.Error("a suite of which Go has no cipher is taken")
	}
}

func TestResolve(t *testing.T) {
	b := New(Options{})
	for backend, target := range map[string]string{
		"10.0.2.0/24": "127.0.0.1", "10.0.0.0/16": "127.0.0.2:9", "10.0.2.7": "127.0.0.3", "10.0.2.7:80": "127.0.0.4:1", "fd00::/8": "::1",
	} {
		b.MapBackend(backend, target)
	}
	for _, c := range [][3]string{
		{"10.0.2.7", "10.0.2.7:80", "127.0.0.4:1"}, {"10.0.2.7", "10.0.2.7:81", "127.0.0.3:81"}, {"10.0.2.8", "10.0.2.8:81", "127.0.0.1:81"},
		{"10.0.3.8", "10.0.3.8:81", "127.0.0.2:9"}, {"fd00::1", "[fd00::1]:5", "[::1]:5"}, {"127.0.0.9", "127.0.0.9:5", "127.0.0.9:5"}, {"10.9.0.1", "10.9.0.1:5", ""},
	} {
		got, err := b.resolve(c[0], c[1])
		if got != c[2] || (err == nil) != (c[2] != "") {
			t.Errorf("%s leads to %q (%v), want %q", c[1], got, err, c[2])
		}
	}
	if open, err := New(Options{Direct: true}).resolve("192.0.2.1", "192.0.2.1:5"); err != nil || open != "192.0.2.1:5" {
		t.Errorf("direct: %q, %v", open, err)
	}
}
