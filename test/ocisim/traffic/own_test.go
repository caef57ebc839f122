// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/loadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/traffic"
)

func TestConnectionsLinger(t *testing.T) {
	for name, linger := range map[string]time.Duration{"for long": time.Hour, "for a moment": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t, traffic.Options{Linger: linger})
			w.house("a", first)
			id := w.lb("ROUND_ROBIN", ocisim.Backend{Address: first, Port: 1})
			w.healthy(id, first+":1", ocisim.HealthOK)
			v := w.visit(w.at(id))
			w.changeSet(id, func(s *loadbalancer.BackendSet) { s.Backends = nil })
			w.eventually("there is no backend", func() bool { return w.visit(w.at(id)).house == "" })
			if linger < time.Minute {
				w.ended(v)
				return
			}
			if !v.alive() {
				t.Error("the connection ended with its backend")
			}
			if err := w.region.Foreign().Delete(id); err != nil {
				t.Fatal(err)
			}
			w.ended(v)
		})
	}
}

// TestOwnAddresses gives a balancer an address that this machine has anyway. test/traffic preserves the client's, which needs
// root.
func TestOwnAddresses(t *testing.T) {
	w := newTown(t, traffic.Options{OwnAddresses: true})
	address := netip.AddrFrom4([4]byte{127, byte(1 + rand.IntN(60)), byte(rand.IntN(256)), byte(1 + rand.IntN(254))}).String()
	port := 20000 + rand.IntN(10000)
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
			_, _ = io.WriteString(conn, conn.RemoteAddr().(*net.TCPAddr).IP.String())
			conn.Close()
		}
	}()
	w.body.MapBackend(first, backend.Addr().String())
	w.region.AddPublicIP(ocisim.PublicIP{Name: "own", Address: address})
	id := w.region.AddLoadBalancer(ocisim.LoadBalancer{
		Name: "web", ReservedIP: "own",
		BackendSets: []ocisim.BackendSet{{Name: "set", Backends: []ocisim.Backend{{Address: first, Port: 1}}}},
		Listeners:   []ocisim.Listener{{Name: "web", Port: port}},
	})
	w.listens(id)
	at := fmt.Sprintf("%s:%d", address, port)
	if got := w.body.Listeners()[0].Listen; got != at {
		t.Errorf("the balancer listens at %s, want %s", got, at)
	}
	w.healthy(id, first+":1", ocisim.HealthOK)
	conn, err := w.body.DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if seen, err := io.ReadAll(conn); err != nil || string(seen) != address {
		t.Errorf("the backend sees %q (%v), want the balancer's address %s", seen, err, address)
	}
}
