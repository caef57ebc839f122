// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/traffic"
)

const (
	first  = "10.0.2.11"
	second = "10.0.2.12"
	third  = "10.0.2.13"
)

func TestRoundRobinFollowsWeightsDrainAndRemoval(t *testing.T) {
	w := newTown(t, traffic.Options{})
	w.house("a", first)
	w.house("b", second)
	id := w.lb("ROUND_ROBIN", ocisim.Backend{Address: first, Port: 1, Weight: 2}, ocisim.Backend{Address: second, Port: 1})
	w.healthy(id, first+":1", ocisim.HealthOK)
	w.healthy(id, second+":1", ocisim.HealthOK)
	if diff := cmp.Diff(map[string]int{"a": 6, "b": 3}, w.houses(w.at(id), 9, false)); diff != "" {
		t.Errorf("nine connections by weight (-want +got):\n%s", diff)
	}
	// A drained backend keeps what it has.
	var inA, inB *visit
	for inA == nil || inB == nil {
		if v := w.visit(w.at(id)); v.house == "a" {
			inA = v
		} else {
			inB = v
		}
	}
	w.changeSet(id, func(s *loadbalancer.BackendSet) { s.Backends[0].Drain = ptr(true) })
	w.eventually("only b gets connections", func() bool { return w.houses(w.at(id), 3, false)["a"] == 0 })
	if !inA.alive() {
		t.Error("draining a backend ended its connection")
	}
	// A removed one loses it.
	w.changeSet(id, func(s *loadbalancer.BackendSet) { s.Backends = s.Backends[1:] })
	w.ended(inA)
	if !inB.alive() {
		t.Error("removing a backend ended the connection of another one")
	}
	// With its balancer everything ends.
	if err := w.region.Foreign().Delete(id); err != nil {
		t.Fatal(err)
	}
	w.ended(inB)
	w.eventually("nothing listens", func() bool { return len(w.body.Listeners()) == 0 })
}

func TestListenersComeAndGoUnderLivingConnections(t *testing.T) {
	w := newTown(t, traffic.Options{})
	w.house("a", first)
	id := w.lb("ROUND_ROBIN", ocisim.Backend{Address: first, Port: 1})
	w.healthy(id, first+":1", ocisim.HealthOK)
	v, at := w.visit(w.at(id)), w.at(id)
	w.changeListener(id, func(l *loadbalancer.Listener) { l.Port = ptr(81) })
	moved := strings.TrimSuffix(at, "80") + "81"
	w.eventually("the other port is open", func() bool {
		conn, err := w.body.DialContext(t.Context(), "tcp", moved)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
	w.eventually("the old port is closed", func() bool {
		conn, err := w.body.DialContext(t.Context(), "tcp", at)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	if !v.alive() {
		t.Error("the connection ended with its listener")
	}
	w.changeLB(id, func(v *loadbalancer.LoadBalancer) { v.Listeners = nil })
	w.eventually("no listener", func() bool { return len(w.body.Listeners()) == 0 })
	if !v.alive() {
		t.Error("the connection ended with the last listener")
	}
}

func TestBackupsServeWhenTheOthersFail(t *testing.T) {
	w := newTown(t, traffic.Options{})
	a := w.house("a", first)
	w.house("b", second)
	id := w.lb("ROUND_ROBIN", ocisim.Backend{Address: first, Port: 1}, ocisim.Backend{Address: second, Port: 1, Backup: true})
	w.healthy(id, first+":1", ocisim.HealthOK)
	w.healthy(id, second+":1", ocisim.HealthOK)
	if got := w.houses(w.at(id), 4, false); got["a"] != 4 {
		t.Errorf("connections %v, want all at the primary backend", got)
	}
	a.shut()
	w.healthy(id, first+":1", ocisim.HealthCritical)
	if got := w.houses(w.at(id), 4, false); got["b"] != 4 {
		t.Errorf("connections %v, want all at the backup", got)
	}
	w.open(a)
	w.healthy(id, first+":1", ocisim.HealthOK)
	if got := w.houses(w.at(id), 4, false); got["a"] != 4 {
		t.Errorf("connections %v, want all at the recovered backend", got)
	}
}

func TestLeastConnectionsAndLimits(t *testing.T) {
	w := newTown(t, traffic.Options{})
	w.house("a", first)
	w.house("b", second)
	id := w.lb("LEAST_CONNECTIONS", ocisim.Backend{Address: first, Port: 1, Weight: 3}, ocisim.Backend{Address: second, Port: 1})
	w.healthy(id, first+":1", ocisim.HealthOK)
	w.healthy(id, second+":1", ocisim.HealthOK)
	if diff := cmp.Diff(map[string]int{"a": 6, "b": 2}, w.houses(w.at(id), 8, true)); diff != "" {
		t.Errorf("eight living connections by weight (-want +got):\n%s", diff)
	}
	limit := func(n int) { // the API takes no fewer than 256
		w.changeSet(id, func(s *loadbalancer.BackendSet) { s.BackendMaxConnections = ptr(n) })
	}
	limit(2) // which both have reached
	w.eventually("no backend takes a connection", func() bool { return w.visit(w.at(id)).house == "" })
	limit(1000)
	w.eventually("a backend takes a connection", func() bool { return w.visit(w.at(id)).house != "" })
}

func TestHashesKeepAClientAtItsBackend(t *testing.T) {
	w := newTown(t, traffic.Options{})
	for name, address := range map[string]string{"a": first, "b": second, "c": third} {
		w.house(name, address)
	}
	backends := []ocisim.Backend{{Address: first, Port: 1}, {Address: second, Port: 1}, {Address: third, Port: 1}}
	for policy, id := range map[string]string{"IP_HASH": w.lb("IP_HASH", backends...), "TWO_TUPLE": w.nlb("TWO_TUPLE", backends...), "THREE_TUPLE": w.nlb("THREE_TUPLE", backends...)} {
		for _, b := range backends {
			w.healthy(id, b.Address+":1", ocisim.HealthOK)
		}
		if got := w.houses(w.at(id), 10, false); len(got) != 1 {
			t.Errorf("%s sends one client to %v", policy, got)
		}
	}
	id := w.nlb("FIVE_TUPLE", backends...)
	for _, b := range backends {
		w.healthy(id, b.Address+":1", ocisim.HealthOK)
	}
	counts := map[string]int{}
	w.eventually("FIVE_TUPLE sends the client's ports to all backends", func() bool {
		counts[w.visit(w.at(id)).house]++
		return len(counts) == 3
	})
}

// TestProxyProtocol reads the header that a backend gets first.
func TestProxyProtocol(t *testing.T) {
	w := newTown(t, traffic.Options{})
	heads := make(chan []byte, 10)
	backend, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backend.Close() })
	go func() {
		for {
			conn, err := backend.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				head := make([]byte, 256)
				n, _ := io.ReadAtLeast(conn, head, 12)
				if n >= 12 { // a check has none
					heads <- head[:n]
				}
				_, _ = io.WriteString(conn, "a\n")
			}()
		}
	}()
	w.body.MapBackend(first, backend.Addr().String())
	lb, nlb := w.lb("ROUND_ROBIN", ocisim.Backend{Address: first, Port: 1}), w.nlb("", ocisim.Backend{Address: first, Port: 1})
	w.healthy(lb, first+":1", ocisim.HealthOK)
	w.healthy(nlb, first+":1", ocisim.HealthOK)
	head := func(id string, start string) string {
		t.Helper()
		for { // until the change of the listener has arrived
			conn, err := w.body.DialContext(t.Context(), "tcp", w.at(id))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, "hello, backend")
			got := <-heads
			_, _ = io.ReadAll(conn)
			from := netip.MustParseAddrPort(conn.LocalAddr().String())
			conn.Close()
			if strings.HasPrefix(string(got), start) {
				if start != "PROXY " && binary.BigEndian.Uint16(got[24:]) == from.Port() {
					copy(got[24:], "PP")
				}
				return string(got) + "|" + from.String()
			}
		}
	}
	w.changeListener(lb, func(l *loadbalancer.Listener) {
		l.ConnectionConfiguration = &loadbalancer.ConnectionConfiguration{IdleTimeout: ptr(int64(60)), BackendTcpProxyProtocolVersion: ptr(1)}
	})
	public := netip.MustParseAddrPort(w.at(lb)).Addr()
	got, from, _ := strings.Cut(head(lb, "PROXY "), "|")
	client := netip.MustParseAddrPort(from)
	want := "PROXY TCP4 " + client.Addr().String() + " " + public.String() + " " + from[strings.LastIndex(from, ":")+1:] + " 80\r\n"
	if !strings.HasPrefix(got, want) {
		t.Errorf("version 1: %q, want %q", got, want)
	}
	v2 := func(id string) []byte {
		address, to := netip.MustParseAddrPort(w.at(id)).Addr().As4(), bytes.NewBufferString("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c")
		source := client.Addr().As4()
		to.Write(source[:])
		to.Write(address[:])
		to.WriteString("PP\x00\x50")
		return to.Bytes()
	}
	w.changeListener(lb, func(l *loadbalancer.Listener) { l.ConnectionConfiguration.BackendTcpProxyProtocolVersion = ptr(2) })
	if got := head(lb, "\r\n\r\n"); !strings.HasPrefix(got, string(v2(lb))) {
		t.Errorf("version 2: %q, want %q", got, v2(lb))
	}
	w.changeNLB(nlb, func(v *networkloadbalancer.NetworkLoadBalancer) {
		l := v.Listeners["web"]
		l.IsPpv2Enabled = ptr(true)
		v.Listeners["web"] = l
	})
	if got := head(nlb, "\r\n\r\n"); !strings.HasPrefix(got, string(v2(nlb))) {
		t.Errorf("of a network load balancer: %q, want %q", got, v2(nlb))
	}
}

func TestIdleConnectionsEnd(t *testing.T) {
	w := newTown(t, traffic.Options{})
	w.house("a", first)
	id := w.lb("ROUND_ROBIN", ocisim.Backend{Address: first, Port: 1})
	w.healthy(id, first+":1", ocisim.HealthOK)
	patient := w.visit(w.at(id))
	w.changeListener(id, func(l *loadbalancer.Listener) {
		l.ConnectionConfiguration = &loadbalancer.ConnectionConfiguration{IdleTimeout: ptr(int64(1))}
	})
	w.eventually("a new connection ends after a second without data", func() bool {
		began, v := time.Now(), w.visit(w.at(id))
		_ = v.SetReadDeadline(time.Now().Add(2 * time.Second))
		_, err := io.ReadAll(v.lines)
		var timeout net.Error
		return (err == nil || !errors.As(err, &timeout) || !timeout.Timeout()) && time.Since(began) >= time.Second
	})
	if !patient.alive() {
		t.Error("a connection that was made under the old setting ended")
	}
}

func TestHalfClosedConnections(t *testing.T) {
	w := newTown(t, traffic.Options{})
	w.house("a", first)
	id := w.lb("ROUND_ROBIN", ocisim.Backend{Address: first, Port: 1})
	w.healthy(id, first+":1", ocisim.HealthOK)
	v := w.visit(w.at(id))
	payload := strings.Repeat("x", 1<<20)
	go func() {
		_, _ = io.WriteString(v, payload)
		_ = v.Conn.(*net.TCPConn).CloseWrite()
	}()
	// The backend echoes all of it, although it has got the end before it has sent everything.
	got, err := io.ReadAll(v.lines)
	if err != nil || string(got) != payload {
		t.Errorf("%d bytes came back: %v", len(got), err)
	}
}

func TestLoopbackAddresses(t *testing.T) {
	w := newTown(t, traffic.Options{})
	w.house("a", first)
	one, other := w.lb("ROUND_ROBIN", ocisim.Backend{Address: first, Port: 1}), w.nlb("", ocisim.Backend{Address: first, Port: 1})
	w.healthy(one, first+":1", ocisim.HealthOK)
	host := func(id string) string { return strings.TrimSuffix(w.at(id), ":80") }
	a, okA := w.body.Loopback(host(one))
	b, okB := w.body.Loopback(host(other))
	if !okA || !okB || a == b || !a.IsLoopback() || !b.IsLoopback() {
		t.Errorf("loopback addresses %v and %v", a, b)
	}
	v, _ := w.region.NetworkLoadBalancer(other)
	if private, _ := w.body.Loopback(*v.IpAddresses[0].IpAddress); private != b {
		t.Errorf("the two addresses of one balancer lead to %v and %v", b, private)
	}
	living := w.visit(w.at(one))
	chosen := b.Next().Next().Next()
	if err := w.body.SetLoopback(host(one), chosen); err != nil {
		t.Fatal(err)
	}
	w.eventually("the balancer moves", func() bool {
		for _, l := range w.body.Listeners() {
			if l.Balancer == one && l.Listen == chosen.String()+":20080" {
				return true
			}
		}
		return false
	})
	if now := w.visit(w.at(one)); now.house != "a" || !living.alive() {
		t.Errorf("new connection to %q, the old one lives: %v", now.house, living.alive())
	}
	if err := w.body.SetLoopback("10.0.0.9", netip.MustParseAddr("10.0.0.1")); !errors.Is(err, traffic.ErrLoopback) {
		t.Errorf("error %v", err)
	}
	if _, err := w.body.DialContext(t.Context(), "tcp", "192.0.2.1:80"); !errors.Is(err, traffic.ErrUnknownAddress) {
		t.Errorf("error %v", err)
	}
}

func TestListenersThatCannotListen(t *testing.T) {
	w := newTown(t, traffic.Options{})
	w.house("a", first)
	id := w.nlb("", ocisim.Backend{Address: first, Port: 1})
	w.changeNLB(id, func(v *networkloadbalancer.NetworkLoadBalancer) {
		l := v.Listeners["web"]
		for name, change := range map[string]func(*networkloadbalancer.Listener){
			"udp": func(l *networkloadbalancer.Listener) {
				l.Protocol, l.Port = networkloadbalancer.ListenerProtocolsUdp, ptr(53)
			},
			"any": func(l *networkloadbalancer.Listener) {
				l.Protocol, l.Port = networkloadbalancer.ListenerProtocolsAny, ptr(0)
			},
			"both": func(l *networkloadbalancer.Listener) {
				l.Protocol, l.Port = networkloadbalancer.ListenerProtocolsTcpAndUdp, ptr(54)
			},
			"none": func(l *networkloadbalancer.Listener) { l.DefaultBackendSetName, l.Port = ptr("none"), ptr(55) },
		} {
			copied := l
			copied.Name = ptr(name)
			change(&copied)
			v.Listeners[name] = copied
		}
	})
	got := map[string]string{}
	w.eventually("five listeners", func() bool {
		for _, l := range w.body.Listeners() {
			got[l.Listener] = l.Problem
			if l.Problem == "" && l.Listen == "" {
				return false
			}
		}
		return len(got) == 5
	})
	want := map[string]string{
		"web": "", "both": "", "udp": "UDP is not forwarded", "any": "listeners on all ports do not listen", "none": "there is no backend set none",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	w.healthy(id, first+":1", ocisim.HealthOK)
	if v := w.visit(strings.TrimSuffix(w.at(id), "80") + "54"); v.house != "a" {
		t.Errorf("the TCP half of TCP_AND_UDP leads to %q", v.house)
	}
}

func TestUnmappedBackendsAreNotReached(t *testing.T) {
	w := newTown(t, traffic.Options{})
	id := w.lb("ROUND_ROBIN", ocisim.Backend{Address: first, Port: 1})
	w.healthy(id, first+":1", ocisim.HealthCritical)
	w.house("a", first+":1")
	w.healthy(id, first+":1", ocisim.HealthOK)
	w.body.MapBackend(first+":1", "")
	w.healthy(id, first+":1", ocisim.HealthCritical)
}

// TestCloseEndsEverything closes a body under load.
func TestCloseEndsEverything(t *testing.T) {
	w := newTown(t, traffic.Options{})
	w.house("a", first)
	id := w.lb("ROUND_ROBIN", ocisim.Backend{Address: first, Port: 1})
	w.healthy(id, first+":1", ocisim.HealthOK)
	silent, err := w.body.DialContext(t.Context(), "tcp", w.at(id))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	v := w.visit(w.at(id))
	listen := w.body.Listeners()[0].Listen
	if err := w.region.Close(); err != nil { // returns when all work has ended
		t.Fatal(err)
	}
	w.ended(v)
	again, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	again.Close()
	if err := w.body.Close(); err != nil {
		t.Error(err)
	}
}
