// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

const (
	hourServices = 20                    // each is worth some 500 calls, and the client signs them all
	hourUser     = "ocid1.user.oc1..ccm" // as in rig.connect
)

// hour is a cluster with many Services that lives an hour in a region where everything goes wrong now and then.
type hour struct {
	*rig
	began  time.Time
	random *rand.Rand

	mu      sync.Mutex
	nodes   []*v1.Node
	process process
}

// process is one life of the program.
type process struct {
	m   *loadbalancer.Manager
	ctx context.Context
	end context.CancelFunc
}

// TestOneHour: many Services are created, changed and deleted under faults, while nodes are lost, somebody else meddles and
// the program is restarted. In the end every balancer is as asked for, nothing is left over, and a new process writes nothing.
func TestOneHour(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	pki.SigningKeyPEM()
	realBegan := time.Now()
	simulate(t, ocisim.Options{
		Seed: 61, PageSize: 20, ShortPages: 0.2, EventualReads: 1, DropOptional: 0.05, LogSize: 1_000_000,
		Read: ocisim.Rate{PerSecond: 20, Burst: 40}, Write: ocisim.Rate{PerSecond: 10, Burst: 20},
	}, func(r *rig) {
		key := r.region.Options().Tenancy + "/" + hourUser + "/20:3b:97:13:55:1c:aa:66:41:41:4b:7c:7c:ef:2e:42"
		r.region.RegisterKey(key, &rsa.PublicKey{}, ocisim.Principal{ID: hourUser})
		h := &hour{rig: r, began: time.Now(), random: rand.New(rand.NewPCG(6, 1)), nodes: r.nodes(8)}
		before, lost := r.region.Snapshot(), []*v1.Node{h.nodes[2], h.nodes[5]}
		services := h.play(lost)
		if t.Failed() {
			return
		}
		since := h.lookAgain(services)
		h.compare(services)
		h.judge(before, since, services, lost)
		calls := r.region.Calls()
		if took := time.Since(h.began); took < time.Hour || len(calls) < 10*hourServices {
			t.Errorf("%s of virtual time and %d calls", took, len(calls))
		}
		t.Logf("%s of virtual time, %d calls", time.Since(h.began).Round(time.Second), len(calls))
	})
	t.Logf("%.1f s of real time", time.Since(realBegan).Seconds())
}

// at sleeps until a minute of the hour.
func (h *hour) at(minute float64) {
	time.Sleep(time.Until(h.began.Add(time.Duration(minute * float64(time.Minute)))))
}

func (h *hour) restartProcess() {
	m := h.newManager(h.region.Transport())
	ctx, end := context.WithCancel(h.Context())
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.process.end != nil {
		h.process.end()
	}
	h.process = process{m, ctx, end}
}

func (h *hour) now() (process, []*v1.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.process, slices.Clone(h.nodes)
}

// play lets the hour pass and returns the Services that are left.
func (h *hour) play(lost []*v1.Node) []*v1.Service {
	h.restartProcess()
	var all sync.WaitGroup
	var left []*v1.Service
	for i := range hourServices {
		kind := []oci.BalancerKind{oci.KindLB, oci.KindNLB}[i%2]
		svc := newService(fmt.Sprintf("web-%d", i), kind, 80, 443)
		svc.UID = types.UID(fmt.Sprintf("6c4e8cf6-6a4b-4f0d-9e5c-%012d", i))
		leave := i%5 == 4
		if !leave {
			left = append(left, svc)
		}
		life := h.plan(svc, leave)
		all.Go(func() { life() })
	}
	all.Go(h.weather)
	all.Go(func() { h.loseNodes(lost) })
	all.Go(h.meddle)
	all.Go(func() {
		h.at(30)
		h.restartProcess()
	})
	all.Wait()
	h.at(60)
	return left
}

// plan draws the life of a Service: it is created, its ports change, nodes go, and perhaps it is deleted.
func (h *hour) plan(svc *v1.Service, leave bool) func() {
	draw := func(from, to float64) float64 { return from + h.random.Float64()*(to-from) }
	created, last := draw(0, 12), draw(48, 50)
	var changes, looks []float64
	for range 1 + h.random.IntN(3) {
		changes = append(changes, draw(12, 48))
	}
	looks = append(looks, changes...)
	looks = append(looks, 20+draw(0, 1), 40+draw(0, 1), last)
	if !leave {
		looks = append(looks, draw(54, 56))
	}
	slices.Sort(looks)
	sets := [][]int32{{80}, {80, 443}, {443, 8443}, {80, 443, 8443}}
	first := h.random.IntN(len(sets))
	return func() {
		h.at(created)
		h.cluster.put(svc)
		h.ensure(svc)
		for i, look := range looks {
			h.at(look)
			if leave && look == last {
				h.remove(svc)
				return
			}
			if slices.Contains(changes, look) {
				ports := newService(svc.Name, loadbalancer.WantedKind(svc.Annotations), sets[(first+i)%len(sets)]...).Spec.Ports
				h.edit(svc, func(s *v1.Service) { s.Spec.Ports = ports })
			}
			h.ensure(svc)
		}
	}
}

// until repeats an operation as the queue of the service controller does, in the process that lives.
func (h *hour) until(what string, svc *v1.Service, do func(process, []*v1.Node) error) {
	began := time.Now()
	for pause := 5 * time.Second; ; pause = min(2*pause, time.Minute) {
		p, nodes := h.now()
		err := do(p, nodes)
		if err == nil {
			return
		}
		if time.Since(began) > 30*time.Minute {
			h.Errorf("%s %s: %v", what, svc.Name, err)
			return
		}
		time.Sleep(pause)
	}
}

func (h *hour) ensure(svc *v1.Service) {
	h.until("ensure", svc, func(p process, nodes []*v1.Node) error {
		return drive(p.ctx, p.m, h.cluster, svc, nodes, 10*time.Minute)
	})
}

func (h *hour) remove(svc *v1.Service) {
	h.until("delete", svc, func(p process, _ []*v1.Node) error { return p.m.Delete(p.ctx, h.cluster.get(svc.UID)) })
	h.cluster.remove(svc.UID)
}

// weather lets things go wrong until minute 53.
func (h *hour) weather() {
	type front struct {
		from, to float64
		begin    func() (end func())
	}
	fault := func(f ocisim.Fault) func() func() { return func() func() { return h.region.Fault(f) } }
	deny := func(p ocisim.Policy) func() func() { return func() func() { return h.region.Deny(p) } }
	fronts := []front{
		{0, 53, fault(ocisim.Fault{Chance: 0.02, Status: http.StatusTooManyRequests, Note: "429"})},
		{0, 53, fault(ocisim.Fault{Chance: 0.01, Status: http.StatusInternalServerError, Note: "500"})},
		{0, 53, fault(ocisim.Fault{Chance: 0.005, Status: http.StatusServiceUnavailable, Applied: true, Note: "503 although applied"})},
		{0, 53, fault(ocisim.Fault{Chance: 0.01, Drop: ocisim.BeforeApply, Note: "dropped before"})},
		{0, 53, fault(ocisim.Fault{Chance: 0.01, Drop: ocisim.AfterApply, Note: "dropped after"})},
		{0, 53, fault(ocisim.Fault{Chance: 0.005, HalfBody: true, Note: "half of the body"})},
		{0, 53, fault(ocisim.Fault{Operation: "CreateLoadBalancer", Nth: 3, Times: 3, FailWork: true, Note: "creation fails"})},
		{0, 53, fault(ocisim.Fault{Operation: "CreateNetworkLoadBalancer", Nth: 3, Times: 3, FailWork: true, Note: "creation fails"})},
		{0, 53, fault(ocisim.Fault{Operation: "UpdateBackendSet", Nth: 3, Times: 6, FailWork: true, Note: "update fails"})},
		{6, 9, fault(ocisim.Fault{Status: http.StatusServiceUnavailable, Note: "outage"})},
		{15, 17, deny(ocisim.Policy{Verb: ocisim.Use, ResourceType: "load-balancers"})},
		{24, 26, deny(ocisim.Policy{Verb: ocisim.Inspect, ResourceType: "network-load-balancers"})},
		{36, 38, fault(ocisim.Fault{Delay: 15 * time.Second, Note: "slow region"})},
		{44, 45, fault(ocisim.Fault{Drop: ocisim.AfterApply, Note: "no answer at all"})},
	}
	var all sync.WaitGroup
	for _, f := range fronts {
		all.Go(func() {
			h.at(f.from)
			end := f.begin()
			h.at(f.to)
			end()
		})
	}
	all.Wait()
	h.at(53)
	struck := map[string]int{}
	for _, c := range h.region.Calls() {
		for note := range strings.SplitSeq(c.Fault, "; ") {
			struck[note]++
		}
	}
	for _, note := range []string{
		"429", "500", "503 although applied", "dropped before", "dropped after", "half of the body", "creation fails", "update fails", "outage",
		"slow region", "no answer at all",
	} {
		if struck[note] == 0 {
			h.Errorf("no call was struck by %q: the hour was not what it should be", note)
		}
	}
	h.Logf("struck: %v; calls: %v", struck, h.region.Counts())
}

// loseNodes terminates nodes at the minutes 20 and 40.
func (h *hour) loseNodes(lost []*v1.Node) {
	for i, n := range lost {
		h.at(20*float64(i+1) - 0.2)
		if err := h.region.Foreign().TerminateInstance(instanceOf(n)); err != nil {
			h.Error(err)
		}
		h.mu.Lock()
		h.nodes = slices.DeleteFunc(h.nodes, func(o *v1.Node) bool { return o.Name == n.Name })
		h.mu.Unlock()
	}
}

func instanceOf(n *v1.Node) string { return strings.TrimPrefix(n.Spec.ProviderID, "oci://") }

// meddle is somebody else who takes backends out of balancers and puts tags on them, until minute 50.
func (h *hour) meddle() {
	for n := 1; time.Since(h.began) < 50*time.Minute; n++ {
		time.Sleep(20 * time.Second)
		list := h.region.LoadBalancers()
		if len(list) == 0 {
			continue
		}
		err := h.region.Foreign().LoadBalancer(*list[n*7%len(list)].Id, func(v *lbsdk.LoadBalancer) {
			v.FreeformTags["team"] = "red"
			for name, set := range v.BackendSets {
				set.Backends = []lbsdk.Backend{}
				v.BackendSets[name] = set
				return
			}
		})
		if err != nil {
			h.Error(err)
		}
	}
}

// lookAgain is a new process that finds everything done. It returns the number of the last call before it.
func (h *hour) lookAgain(services []*v1.Service) uint64 {
	calls := h.region.Calls()
	h.restartProcess()
	p, nodes := h.now()
	var all sync.WaitGroup
	for _, svc := range services {
		all.Go(func() {
			if err := drive(p.ctx, p.m, h.cluster, svc, nodes, time.Minute); err != nil {
				h.Errorf("the second look at %s: %v", svc.Name, err)
			}
		})
	}
	all.Wait()
	return calls[len(calls)-1].Seq
}

// compare compares the balancers with the Services.
func (h *hour) compare(services []*v1.Service) {
	want := map[string]string{}
	_, nodes := h.now()
	addresses := addressesOf(nodes...)
	for _, svc := range services {
		var rows []string
		for _, port := range h.cluster.get(svc.UID).Spec.Ports {
			rows = append(rows, fmt.Sprintf("%d -> %v", port.Port, addresses))
		}
		slices.Sort(rows)
		want[string(svc.UID)] = fmt.Sprint(loadbalancer.WantedKind(svc.Annotations), rows)
	}
	h.region.SetRates(ocisim.Rate{}, ocisim.Rate{})
	for _, b := range h.live() {
		var rows []string
		for _, l := range b.Listeners {
			var ips []string
			for _, backend := range b.BackendSets[l.BackendSetName].Backends {
				ips = append(ips, backend.IP)
			}
			slices.Sort(ips)
			rows = append(rows, fmt.Sprintf("%d -> %v", l.Port, ips))
		}
		slices.Sort(rows)
		// The mark may be missing from the answer; the name ends with the UID.
		uid := b.DisplayName[max(0, len(b.DisplayName)-36):]
		h.equal("balancer of "+uid, fmt.Sprint(b.Kind, rows), want[uid])
		delete(want, uid)
	}
	if len(want) > 0 {
		h.Errorf("%d Services have no balancer: %v", len(want), want)
	}
}

// judge asks the oracle.
func (h *hour) judge(before []byte, since uint64, services []*v1.Service, lost []*v1.Node) {
	q := oracle.Question{
		Before: before,
		Us: oracle.Us{
			Principals: []string{hourUser}, Cluster: clusterID, Types: []string{"load balancer", "network load balancer"},
			Writes: []string{ocisim.ServiceLoadBalancer, ocisim.ServiceNetworkLoadBalancer},
		},
		Settled: true,
		Quiet:   []oracle.Window{{From: since}},
		Budgets: []oracle.Budget{
			// One for each Service; what failed and what was not answered comes on top.
			{Operation: "CreateLoadBalancer", Most: hourServices/2 + 40}, {Operation: "CreateNetworkLoadBalancer", Most: hourServices/2 + 40},
			// One read for each Service, and the subnets and lists that a new process reads.
			{Operation: "*", Most: 2 * hourServices, Within: oracle.Window{From: since}},
		},
	}
	for _, svc := range services {
		q.Us.Owners = append(q.Us.Owners, string(svc.UID))
	}
	for _, n := range lost {
		q.Expected = append(q.Expected, oracle.Expectation{Resource: instanceOf(n)})
	}
	report, err := oracle.Check(h.Context(), oracle.InProcess(h.region), q)
	if err := errors.Join(err, report.Err()); err != nil {
		h.Error(err)
	}
}
