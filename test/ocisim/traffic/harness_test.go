// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/traffic"
)

// patience bounds waiting for what must happen. It is long because the machine may be busy.
const patience = 2 * time.Minute

// town is a region whose balancers forward, with real backends.
type town struct {
	*testing.T

	region *ocisim.Region
	body   *traffic.Body
	subnet string
}

func newTown(t *testing.T, options traffic.Options) *town {
	t.Helper()
	if options.PortOffset == 0 {
		options.PortOffset = 20000
	}
	if options.Speed == 0 {
		options.Speed = 500 // checks every 20 ms
	}
	body := traffic.New(options)
	region := ocisim.New(ocisim.Options{Seed: 1, Balancers: body, Durations: map[string]ocisim.Range{"*": {}}})
	t.Cleanup(func() {
		if err := region.Close(); err != nil {
			t.Error(err)
		}
	})
	region.AddCompartment(ocisim.Compartment{Name: "cluster"})
	region.AddVCN(ocisim.VCN{Name: "vcn", CIDRs: []string{"10.0.0.0/16"}})
	subnet := region.AddSubnet(ocisim.Subnet{Name: "balancers", CIDR: "10.0.1.0/24"})
	region.AddSubnet(ocisim.Subnet{Name: "nodes", CIDR: "10.0.2.0/24"})
	return &town{T: t, region: region, body: body, subnet: subnet}
}

// eventually waits until something is true.
func (w *town) eventually(what string, done func() bool) {
	w.Helper()
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			w.Fatalf("waited %s for: %s", patience, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// house is a real backend. It greets by its name and echoes what it gets.
type house struct {
	name string

	mu       sync.Mutex
	listener net.Listener
	address  string
	conns    map[net.Conn]bool
}

// house makes a backend and maps an address of the region to it.
func (w *town) house(name, address string) *house {
	w.Helper()
	h := &house{name: name, conns: map[net.Conn]bool{}, address: "127.0.0.1:0"}
	w.open(h)
	w.body.MapBackend(address, h.address)
	w.Cleanup(h.shut)
	return h
}

// open lets a backend listen where it listened before.
func (w *town) open(h *house) {
	w.Helper()
	listener, err := net.Listen("tcp", h.address)
	if err != nil {
		w.Fatal(err)
	}
	h.mu.Lock()
	h.listener, h.address = listener, listener.Addr().String()
	h.mu.Unlock()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			h.mu.Lock()
			h.conns[conn] = true
			h.mu.Unlock()
			go func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, h.name+"\n")
				_, _ = io.Copy(conn, conn)
				h.mu.Lock()
				delete(h.conns, conn)
				h.mu.Unlock()
			}()
		}
	}()
}

// shut stops listening. Connections live on.
func (h *house) shut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listener.Close()
}

// visit is a connection to a balancer that a backend has greeted.
type visit struct {
	net.Conn

	house string
	lines *bufio.Reader
}

// visit connects to a balancer; the backend's name is "" if the connection ends at once.
func (w *town) visit(address string) *visit {
	w.Helper()
	conn, err := w.body.DialContext(w.Context(), "tcp", address)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { conn.Close() })
	v := &visit{Conn: conn, lines: bufio.NewReader(conn)}
	line, _ := v.lines.ReadString('\n')
	v.house = strings.TrimSpace(line)
	return v
}

// alive says whether the backend still answers on the connection.
func (v *visit) alive() bool {
	if _, err := io.WriteString(v, "ping\n"); err != nil {
		return false
	}
	line, err := v.lines.ReadString('\n')
	return err == nil && line == "ping\n"
}

// ended waits for the end of a connection.
func (w *town) ended(v *visit) {
	w.Helper()
	_ = v.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, v.lines); err != nil && strings.Contains(err.Error(), "timeout") {
		w.Fatalf("the connection to %s lives on", v.house)
	}
}

// houses connects n times and counts the backends. The connections stay open if keep is set.
func (w *town) houses(address string, n int, keep bool) map[string]int {
	w.Helper()
	counts := map[string]int{}
	for range n {
		v := w.visit(address)
		counts[v.house]++
		if !keep {
			v.Close()
		}
	}
	return counts
}

// lb makes a load balancer with one listener, whose checks come every 20 ms, and waits until its port is open.
func (w *town) lb(policy string, backends ...ocisim.Backend) string {
	w.Helper()
	id := w.region.AddLoadBalancer(ocisim.LoadBalancer{
		Name:        "web",
		BackendSets: []ocisim.BackendSet{{Name: "set", Policy: policy, Backends: backends}},
		Listeners:   []ocisim.Listener{{Name: "web", Port: 80}},
	})
	w.listens(id)
	return id
}

func (w *town) nlb(policy string, backends ...ocisim.Backend) string {
	w.Helper()
	id := w.region.AddNetworkLoadBalancer(ocisim.NetworkLoadBalancer{
		Name:        "web",
		BackendSets: []ocisim.BackendSet{{Name: "set", Policy: policy, Backends: backends}},
		Listeners:   []ocisim.Listener{{Name: "web", Port: 80}},
	})
	w.listens(id)
	return id
}

// at is the address of a balancer with port 80.
func (w *town) at(id string) string {
	w.Helper()
	if v, ok := w.region.LoadBalancer(id); ok {
		return *v.IpAddresses[0].IpAddress + ":80"
	}
	v, _ := w.region.NetworkLoadBalancer(id)
	return *v.IpAddresses[0].IpAddress + ":80"
}

func (w *town) listens(id string) {
	w.Helper()
	w.eventually("the balancer listens", func() bool {
		for _, l := range w.body.Listeners() {
			if l.Balancer == id && l.Listen != "" {
				return true
			}
		}
		return false
	})
}

// healthy waits until a backend of the set has a health.
func (w *town) healthy(id, backend string, want ocisim.HealthStatus) {
	w.Helper()
	w.eventually(fmt.Sprintf("backend %s is %s", backend, want), func() bool {
		return w.body.BackendHealth(id, "set", backend) == want
	})
}

// changeLB changes a load balancer by a foreign hand.
func (w *town) changeLB(id string, change func(*loadbalancer.LoadBalancer)) {
	w.Helper()
	if err := w.region.Foreign().LoadBalancer(id, change); err != nil {
		w.Fatal(err)
	}
}

func (w *town) changeNLB(id string, change func(*networkloadbalancer.NetworkLoadBalancer)) {
	w.Helper()
	if err := w.region.Foreign().NetworkLoadBalancer(id, change); err != nil {
		w.Fatal(err)
	}
}

// changeSet changes the backend set of a load balancer.
func (w *town) changeSet(id string, change func(*loadbalancer.BackendSet)) {
	w.Helper()
	w.changeLB(id, func(v *loadbalancer.LoadBalancer) {
		s := v.BackendSets["set"]
		change(&s)
		v.BackendSets["set"] = s
	})
}

// changeListener changes the listener of a load balancer.
func (w *town) changeListener(id string, change func(*loadbalancer.Listener)) {
	w.Helper()
	w.changeLB(id, func(v *loadbalancer.LoadBalancer) {
		l := v.Listeners["web"]
		change(&l)
		v.Listeners["web"] = l
	})
}

// webHouse is a backend that speaks HTTP.
func (w *town) webHouse(address string, handle http.HandlerFunc) *httptest.Server {
	w.Helper()
	s := httptest.NewServer(handle)
	w.Cleanup(s.Close)
	w.body.MapBackend(address, s.Listener.Addr().String())
	return s
}

func ptr[T any](v T) *T { return &v }
