// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

const (
	ok       = ocisim.HealthOK
	warning  = ocisim.HealthWarning
	critical = ocisim.HealthCritical
	unknown  = ocisim.HealthUnknown
)

// health reads the health of a balancer, of one of its sets and of a backend: "OK OK OK".
func (p *pier) health(id, set, backend string) string {
	p.t.Helper()
	ctx, t := p.t.Context(), p.t
	if _, isLB := p.region.LoadBalancer(id); isLB {
		whole := granted[loadbalancer.GetLoadBalancerHealthResponse](t)(p.lb.GetLoadBalancerHealth(ctx, loadbalancer.GetLoadBalancerHealthRequest{LoadBalancerId: &id}))
		one := granted[loadbalancer.GetBackendSetHealthResponse](t)(p.lb.GetBackendSetHealth(ctx, loadbalancer.GetBackendSetHealthRequest{LoadBalancerId: &id, BackendSetName: &set}))
		b := granted[loadbalancer.GetBackendHealthResponse](t)(p.lb.GetBackendHealth(ctx, loadbalancer.GetBackendHealthRequest{LoadBalancerId: &id, BackendSetName: &set, BackendName: &backend}))
		if *whole.ETag != p.region.ETag(id) || len(b.HealthCheckResults) != 2 {
			t.Errorf("etag %s, results %v", *whole.ETag, b.HealthCheckResults)
		}
		return string(whole.Status) + " " + string(one.Status) + " " + string(b.Status)
	}
	whole := granted[networkloadbalancer.GetNetworkLoadBalancerHealthResponse](t)(p.nlb.GetNetworkLoadBalancerHealth(ctx, networkloadbalancer.GetNetworkLoadBalancerHealthRequest{NetworkLoadBalancerId: &id}))
	one := granted[networkloadbalancer.GetBackendSetHealthResponse](t)(p.nlb.GetBackendSetHealth(ctx, networkloadbalancer.GetBackendSetHealthRequest{NetworkLoadBalancerId: &id, BackendSetName: &set}))
	b := granted[networkloadbalancer.GetBackendHealthResponse](t)(p.nlb.GetBackendHealth(ctx, networkloadbalancer.GetBackendHealthRequest{NetworkLoadBalancerId: &id, BackendSetName: &set, BackendName: &backend}))
	return string(whole.Status) + " " + string(one.Status) + " " + string(b.Status)
}

// TestBackendsBecomeHealthy follows the checks of a new backend: three of them, ten seconds apart.
func TestBackendsBecomeHealthy(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 60}, func(t *testing.T, p *pier) {
		for _, id := range []string{p.newLB(nil), p.newNLB(nil)} {
			settle()
			if got := p.health(id, "TCP-80", "10.0.2.2:30080"); got != "OK OK OK" {
				t.Fatalf("health after the checks: %s", got)
			}
			path := lbPath + "/" + id
			if !strings.Contains(id, ".loadbalancer.") {
				path = nlbPath + "/" + id
			}
			r := p.post(path+"/backendSets/TCP-80/backends", object{"ipAddress": "10.0.2.7", "port": 1})
			if r.status >= 300 {
				t.Fatalf("%s", r.body)
			}
			for i := 0; ; i++ { // until the backend is there
				if v := p.get(path + "/backendSets/TCP-80/backends/10.0.2.7:1"); v.status == 200 {
					break
				}
				if i > 100 {
					t.Fatal("the backend did not come")
				}
				time.Sleep(time.Second)
			}
			time.Sleep(25 * time.Second)
			if got := p.health(id, "TCP-80", "10.0.2.7:1"); got != "WARNING WARNING UNKNOWN" {
				t.Errorf("before the third check: %s", got)
			}
			time.Sleep(10 * time.Second)
			if got := p.health(id, "TCP-80", "10.0.2.7:1"); got != "OK OK OK" {
				t.Errorf("after the third check: %s", got)
			}
		}
	})
}

func TestBackendsOnStoppedInstances(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 61}, func(t *testing.T, p *pier) {
		target := []object{{"targetId": p.instance, "port": 30080, "name": "w"}}
		set := nlbSet()
		set["backends"] = target
		lb, nlb := p.newLB(nil), p.newNLB(object{"backendSets": object{"TCP-80": set}})
		settle()
		for _, want := range []string{"OK OK OK", "CRITICAL CRITICAL CRITICAL", "OK OK OK"} {
			if got := p.health(lb, "TCP-80", "10.0.2.2:30080"); got != want {
				t.Errorf("load balancer: %s, want %s", got, want)
			}
			if got := p.health(nlb, "TCP-80", "w"); got != want {
				t.Errorf("network load balancer: %s, want %s", got, want)
			}
			if want == "OK OK OK" {
				_ = p.region.Foreign().StopInstance(p.instance)
			} else {
				_ = p.region.Foreign().StartInstance(p.instance)
			}
			settle()
		}
	})
}

// TestHealthIsSummedUp sets the health of backends and looks at sets and balancers.
func TestHealthIsSummedUp(t *testing.T) {
	type backends []ocisim.HealthStatus
	for name, c := range map[string]struct {
		sets  []backends
		set   string // of the first
		whole string
	}{
		"all OK":                     {[]backends{{ok, ok}}, "OK", "OK"},
		"half of them":               {[]backends{{ok, critical}}, "WARNING", "WARNING"},
		"half, others unknown":       {[]backends{{ok, unknown}}, "WARNING", "WARNING"},
		"a warning counts as not OK": {[]backends{{ok, ok, warning}}, "WARNING", "WARNING"},
		"fewer than half":            {[]backends{{ok, critical, critical}}, "CRITICAL", "CRITICAL"},
		"more than half unknown":     {[]backends{{unknown, unknown, critical}}, "UNKNOWN", "UNKNOWN"},
		"no backends":                {[]backends{{}}, "UNKNOWN", "UNKNOWN"},
		"the worst set counts":       {[]backends{{ok}, {critical}, {ok, critical}}, "OK", "CRITICAL"},
		"warning beats unknown":      {[]backends{{unknown}, {ok, critical}}, "UNKNOWN", "WARNING"},
		"one unknown among OK":       {[]backends{{ok}, {ok}, {unknown}}, "OK", "UNKNOWN"},
		"no sets":                    {nil, "", "UNKNOWN"},
	} {
		t.Run(name, func(t *testing.T) {
			onPier(t, ocisim.Options{Seed: 62}, func(t *testing.T, p *pier) {
				lbSets, nlbSets, lbListeners, nlbListeners := object{}, object{}, object{}, object{}
				for i, set := range c.sets {
					var addresses []string
					list := []object{}
					for j := range set {
						addresses = append(addresses, "10.0.2.9:"+itoa(j+1))
						list = append(list, object{"ipAddress": "10.0.2.9", "port": j + 1})
					}
					s := nlbSet()
					s["backends"] = list
					name := "set-" + itoa(i)
					lbSets[name], nlbSets[name] = lbSet(addresses...), s
					lbListeners[name] = object{"defaultBackendSetName": name, "port": i + 1, "protocol": "TCP"}
					nlbListeners[name] = object{"name": name, "defaultBackendSetName": name, "port": i + 1, "protocol": "TCP"}
				}
				lb := p.newLB(object{"backendSets": lbSets, "listeners": lbListeners})
				nlb := p.newNLB(object{"backendSets": nlbSets, "listeners": nlbListeners})
				for i, set := range c.sets {
					for j, status := range set {
						for _, id := range []string{lb, nlb} {
							if err := p.region.SetBackendHealth(id, "set-"+itoa(i), "10.0.2.9:"+itoa(j+1), status); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
				for _, path := range []string{lbPath + "/" + lb, nlbPath + "/" + nlb} {
					if got := str(p.get(path+"/health").object(), "status"); got != c.whole {
						t.Errorf("%s is %s, want %s", path, got, c.whole)
					}
					if c.set == "" {
						continue
					}
					if got := str(p.get(path+"/backendSets/set-0/health").object(), "status"); got != c.set {
						t.Errorf("the first set of %s is %s, want %s", path, got, c.set)
					}
				}
			})
		})
	}
}

func TestHealthOfWhatIsNotInUse(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 63}, func(t *testing.T, p *pier) {
		lb, nlb := p.newLB(nil), p.newNLB(nil)
		settle()
		p.want204(p.post(lbPath+"/"+lb+"/backendSets", withName("spare", lbSet("10.0.2.2:1"))))
		settle()
		if got := p.health(lb, "spare", "10.0.2.2:1"); got != "UNKNOWN UNKNOWN OK" {
			t.Errorf("a set without a listener: %s", got)
		}
		// A network load balancer that is UPDATING has no health, its sets have.
		p.put(nlbPath+"/"+nlb, object{"displayName": "x"}).want(202)
		if got := p.health(nlb, "TCP-80", "10.0.2.2:30080"); got != "UNKNOWN OK OK" {
			t.Errorf("while UPDATING: %s", got)
		}
		p.want204(p.put(lbPath+"/"+lb+"/backendSets/TCP-80/backends/10.0.2.2:30080",
			object{"weight": 1, "backup": false, "drain": false, "offline": true}))
		if got := p.health(lb, "TCP-80", "10.0.2.2:30080"); got != "UNKNOWN UNKNOWN UNKNOWN" {
			t.Errorf("an offline backend: %s", got)
		}
	})
}

func TestSetBackendHealth(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 64}, func(t *testing.T, p *pier) {
		id := p.newNLB(nil)
		settle()
		const set, backend = "TCP-80", "10.0.2.2:30080"
		for _, wrong := range [][3]string{{"x", set, backend}, {id, "x", backend}, {id, set, "x"}} {
			if err := p.region.SetBackendHealth(wrong[0], wrong[1], wrong[2], ok); !errors.Is(err, ocisim.ErrUnknownResource) {
				t.Errorf("%v: error %v", wrong, err)
			}
		}
		if p.region.SetBackendHealth(id, set, backend, "SICK") == nil {
			t.Error("a health that does not exist is accepted")
		}
		_ = p.region.SetBackendHealth(id, set, backend, critical)
		if got := p.health(id, set, backend); got != "CRITICAL CRITICAL CRITICAL" {
			t.Errorf("health %s", got)
		}
		_ = p.region.SetBackendHealth(id, set, backend, "")
		if got := p.health(id, set, backend); got != "OK OK OK" {
			t.Errorf("health given back: %s", got)
		}
		// What was set goes with the backend.
		_ = p.region.SetBackendHealth(id, set, backend, critical)
		p.delete(nlbPath + "/" + id + "/backendSets/TCP-80/backends/" + backend).want(202)
		settle()
		p.post(nlbPath+"/"+id+"/backendSets/TCP-80/backends", object{"ipAddress": "10.0.2.2", "port": 30080}).want(202)
		settle()
		if got := p.health(id, set, backend); got != "OK OK OK" {
			t.Errorf("a new backend with an old name: %s", got)
		}
	})
}

func TestOperationalStatus(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 65}, func(t *testing.T, p *pier) {
		set := nlbSet()
		set["backends"] = []object{{"ipAddress": "10.0.2.8", "port": 1}, {"ipAddress": "10.0.2.9", "port": 1, "isBackup": true}}
		id := p.newNLB(object{"backendSets": object{"TCP-80": set}})
		settle()
		status := func(name string) string {
			set := "TCP-80"
			r := granted[networkloadbalancer.GetBackendOperationalStatusResponse](t)(p.nlb.GetBackendOperationalStatus(t.Context(),
				networkloadbalancer.GetBackendOperationalStatusRequest{NetworkLoadBalancerId: &id, BackendSetName: &set, BackendName: &name}))
			return string(r.Status)
		}
		if a, b := status("10.0.2.8:1"), status("10.0.2.9:1"); a != "ACTIVE" || b != "STANDBY" {
			t.Errorf("%s and %s", a, b)
		}
		_ = p.region.SetBackendHealth(id, "TCP-80", "10.0.2.8:1", critical)
		if a, b := status("10.0.2.8:1"), status("10.0.2.9:1"); a != "UNKNOWN" || b != "ACTIVE" {
			t.Errorf("after the failure: %s and %s", a, b)
		}
	})
}
