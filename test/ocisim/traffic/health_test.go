// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/traffic"
)

// apiHealth is the status that the API shows.
func (w *town) apiHealth(path string) string {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), http.MethodGet, "https://iaas"+path, nil)
	if err != nil {
		w.Fatal(err)
	}
	res, err := w.region.Transport().RoundTrip(req)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct{ Status string }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK {
		w.Fatalf("%s: %d %v", path, res.StatusCode, err)
	}
	return answer.Status
}

func TestTheAPIShowsWhatChecksFind(t *testing.T) {
	w := newTown(t, traffic.Options{})
	a := w.house("a", first)
	id := w.lb("ROUND_ROBIN", ocisim.Backend{Address: first, Port: 1})
	path := "/20170115/loadBalancers/" + id
	shows := func(want string) {
		t.Helper()
		for _, p := range []string{path + "/health", path + "/backendSets/set/health", path + "/backendSets/set/backends/" + first + ":1/health"} {
			w.eventually(p+" is "+want, func() bool { return w.apiHealth(p) == want })
		}
	}
	shows("OK")
	a.shut()
	shows("CRITICAL")
	w.open(a)
	shows("OK")
	// What a test sets counts more, for the traffic too.
	if err := w.region.SetBackendHealth(id, "set", first+":1", ocisim.HealthCritical); err != nil {
		t.Fatal(err)
	}
	shows("CRITICAL")
	w.eventually("no connection", func() bool { return w.visit(w.at(id)).house == "" })
	if err := w.region.SetBackendHealth(id, "set", first+":1", ""); err != nil {
		t.Fatal(err)
	}
	shows("OK")
	w.eventually("connections", func() bool { return w.visit(w.at(id)).house == "a" })
	// Nothing checks an offline backend.
	w.changeSet(id, func(s *loadbalancer.BackendSet) { s.Backends[0].Offline = ptr(true) })
	shows("UNKNOWN")
	w.eventually("no connection to an offline backend", func() bool { return w.visit(w.at(id)).house == "" })
}

func TestStoppedInstancesDoNotAnswer(t *testing.T) {
	w := newTown(t, traffic.Options{})
	instance := w.region.AddInstance(ocisim.Instance{Name: "w-0", VNIC: ocisim.VNIC{Subnet: "nodes"}})
	address := *w.region.InstanceVNICs(instance)[0].PrivateIp
	w.house("a", address)
	nlb := w.nlb("", ocisim.Backend{Instance: "w-0", Port: 1})
	lb := w.lb("ROUND_ROBIN", ocisim.Backend{Instance: "w-0", Port: 1})
	v, _ := w.region.NetworkLoadBalancer(nlb)
	target := *v.BackendSets["set"].Backends[0].Name
	if !strings.HasPrefix(target, "ocid1.instance.") {
		t.Fatalf("the backend is %s, want a target", target)
	}
	w.healthy(nlb, target, ocisim.HealthOK)
	w.healthy(lb, address+":1", ocisim.HealthOK)
	if v := w.visit(w.at(nlb)); v.house != "a" {
		t.Errorf("connection to %q", v.house)
	}
	if err := w.region.Foreign().Instance(instance, func(v *core.Instance) { v.LifecycleState = core.InstanceLifecycleStateStopped }); err != nil {
		t.Fatal(err)
	}
	w.healthy(nlb, target, ocisim.HealthCritical)
	w.healthy(lb, address+":1", ocisim.HealthCritical)
	if err := w.region.Foreign().Instance(instance, func(v *core.Instance) { v.LifecycleState = core.InstanceLifecycleStateRunning }); err != nil {
		t.Fatal(err)
	}
	w.healthy(nlb, target, ocisim.HealthOK)
	w.healthy(lb, address+":1", ocisim.HealthOK)
}

// TestHTTPChecks changes what a backend answers to checks, and what checks want.
func TestHTTPChecks(t *testing.T) {
	w := newTown(t, traffic.Options{})
	var status, path atomic.Value
	status.Store(http.StatusOK)
	path.Store("")
	w.webHouse(first, func(res http.ResponseWriter, r *http.Request) {
		path.Store(r.URL.Path)
		res.WriteHeader(status.Load().(int))
		_, _ = io.WriteString(res, "state: ready")
	})
	w.house("a", second+":1") // what the listener leads to; the check has a port of its own
	id := w.lb("ROUND_ROBIN", ocisim.Backend{Address: first, Port: 1})
	check := func(change func(*loadbalancer.HealthChecker)) {
		w.changeSet(id, func(s *loadbalancer.BackendSet) {
			h := loadbalancer.HealthChecker{
				Protocol: ptr("HTTP"), Port: ptr(10256), UrlPath: ptr("/healthz"), ReturnCode: ptr(200), ResponseBodyRegex: ptr(""),
				Retries: ptr(2), TimeoutInMillis: ptr(60000), IntervalInMillis: ptr(1000),
			}
			change(&h)
			s.HealthChecker = &h
		})
	}
	is := func(want ocisim.HealthStatus) { t.Helper(); w.healthy(id, first+":1", want) }
	check(func(*loadbalancer.HealthChecker) {})
	is(ocisim.HealthOK)
	w.eventually("the check asks for its path", func() bool { return path.Load() == "/healthz" })
	status.Store(http.StatusServiceUnavailable)
	is(ocisim.HealthCritical)
	check(func(h *loadbalancer.HealthChecker) { h.ReturnCode = ptr(503) })
	is(ocisim.HealthOK)
	check(func(h *loadbalancer.HealthChecker) {
		h.ReturnCode, h.ResponseBodyRegex = ptr(503), ptr("^state: broken")
	})
	is(ocisim.HealthCritical)
	check(func(h *loadbalancer.HealthChecker) { h.ReturnCode, h.ResponseBodyRegex = ptr(503), ptr("^state: r") })
	is(ocisim.HealthOK)
}

func TestChecksOfNetworkLoadBalancers(t *testing.T) {
	w := newTown(t, traffic.Options{})
	answers := make(chan string, 1) // what the backend says to "ping"
	answers <- "pong"
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
				buf := make([]byte, 4)
				if _, err := io.ReadFull(conn, buf); err == nil && string(buf) == "ping" {
					answer := <-answers
					answers <- answer
					_, _ = io.WriteString(conn, answer)
				}
			}()
		}
	}()
	w.body.MapBackend(first, backend.Addr().String())
	id := w.nlb("", ocisim.Backend{Address: first, Port: 1})
	check := func(h networkloadbalancer.HealthChecker) {
		h.Retries, h.TimeoutInMillis, h.IntervalInMillis = ptr(1), ptr(60000), ptr(10000)
		w.changeNLB(id, func(v *networkloadbalancer.NetworkLoadBalancer) {
			s := v.BackendSets["set"]
			s.HealthChecker = &h
			v.BackendSets["set"] = s
		})
	}
	check(networkloadbalancer.HealthChecker{Protocol: "TCP", RequestData: []byte("ping"), ResponseData: []byte("pong")})
	w.healthy(id, first+":1", ocisim.HealthOK)
	<-answers
	answers <- "gong"
	w.healthy(id, first+":1", ocisim.HealthCritical)
	check(networkloadbalancer.HealthChecker{Protocol: "TCP", RequestData: []byte("ping"), ResponseData: []byte("gong")})
	w.healthy(id, first+":1", ocisim.HealthOK)

	// Checks by UDP find nothing, and the backend gets connections.
	other := w.nlb("", ocisim.Backend{Address: second, Port: 1})
	w.house("b", second)
	w.changeNLB(other, func(v *networkloadbalancer.NetworkLoadBalancer) {
		s := v.BackendSets["set"]
		s.HealthChecker.Protocol = networkloadbalancer.HealthCheckProtocolsUdp
		s.Backends = append(s.Backends, networkloadbalancer.Backend{Name: ptr("c"), IpAddress: ptr(third), Port: ptr(1), Weight: ptr(1)})
		s.Backends = s.Backends[1:]
		v.BackendSets["set"] = s
	})
	w.house("c", third)
	w.eventually("the unchecked backend gets a connection", func() bool { return w.visit(w.at(other)).house == "c" })
	if got := w.body.BackendHealth(other, "set", "c"); got != ocisim.HealthUnknown {
		t.Errorf("its health is %s", got)
	}
}

func TestFailOpenAndInstantFailover(t *testing.T) {
	w := newTown(t, traffic.Options{})
	a := w.house("a", first)
	id := w.nlb("", ocisim.Backend{Address: first, Port: 1})
	w.healthy(id, first+":1", ocisim.HealthOK)
	calm := w.visit(w.at(id))
	fail := func() {
		t.Helper()
		a.shut()
		w.healthy(id, first+":1", ocisim.HealthCritical)
	}
	fail()
	if !calm.alive() {
		t.Error("a failed check ended a connection without instant failover")
	}
	w.open(a)
	w.healthy(id, first+":1", ocisim.HealthOK)
	w.changeNLB(id, func(v *networkloadbalancer.NetworkLoadBalancer) {
		s := v.BackendSets["set"]
		s.IsInstantFailoverEnabled = ptr(true)
		v.BackendSets["set"] = s
	})
	w.eventually("a failed check ends connections", func() bool { // once the setting has arrived
		v := w.visit(w.at(id))
		fail()
		alive := v.alive()
		w.open(a)
		w.healthy(id, first+":1", ocisim.HealthOK)
		return !alive
	})
	if err := w.region.SetBackendHealth(id, "set", first+":1", ocisim.HealthCritical); err != nil {
		t.Fatal(err)
	}
	w.eventually("no connection", func() bool { return w.visit(w.at(id)).house == "" })
	w.changeNLB(id, func(v *networkloadbalancer.NetworkLoadBalancer) {
		s := v.BackendSets["set"]
		s.IsFailOpen = ptr(true)
		v.BackendSets["set"] = s
	})
	w.eventually("fail open", func() bool { return w.visit(w.at(id)).house == "a" })
}

// TestAPICreatesTraffic makes a balancer through the API, and deletes it.
func TestAPICreatesTraffic(t *testing.T) {
	w := newTown(t, traffic.Options{})
	w.house("a", first)
	call := func(method, path, body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "https://iaas"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := w.region.Transport().RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if text, _ := io.ReadAll(res.Body); res.StatusCode >= 300 {
			t.Fatalf("%d %s", res.StatusCode, text)
		}
	}
	compartment := *w.region.Compartments()[1].Id
	call(http.MethodPost, "/20200501/networkLoadBalancers", `{"compartmentId":"`+compartment+`","displayName":"x","subnetId":"`+w.subnet+`",
		"backendSets":{"set":{"policy":"FIVE_TUPLE","backends":[{"ipAddress":"`+first+`","port":1}],"healthChecker":{"protocol":"TCP","port":1}}},
		"listeners":{"web":{"name":"web","defaultBackendSetName":"set","port":80,"protocol":"TCP"}}}`)
	id := *w.region.NetworkLoadBalancers()[0].Id
	w.listens(id)
	w.eventually("a connection", func() bool { return w.visit(w.at(id)).house == "a" })
	call(http.MethodDelete, "/20200501/networkLoadBalancers/"+id, "")
	w.eventually("nothing listens", func() bool { return len(w.body.Listeners()) == 0 })
}
