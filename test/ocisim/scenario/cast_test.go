// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// stage is the region of the scenario and everybody in it.
type stage struct {
	t       *testing.T
	region  *ocisim.Region
	began   time.Time
	before  []byte // snapshot of the world before the first act
	nodes   *nodes
	crews   []*crew
	auditor *clients
	foreign *clients

	compartment, subnet, group string

	mu       sync.Mutex
	failures []error
}

// crew is one cluster: principals that look after balancers and volumes.
type crew struct {
	name      string
	balancers *clients
	volumes   *clients
	plans     []*plan
}

func (c *crew) principals() []string { return []string{c.balancers.principal, c.volumes.principal} }

// plan is the life of one thing: when its wanted state changes, and how.
type plan struct {
	thing thing
	acts  []act
}

type act struct {
	at     time.Duration // after the beginning
	change func()        // of the wanted state; nil looks again
	forget bool
}

// nodes are the instances that balancers send their traffic to and that volumes are attached to.
type nodes struct {
	mu   sync.Mutex
	live map[string]node
}

type node struct {
	address, domain string
	backend         bool
}

// addresses of the living nodes that are backends, sorted.
func (n *nodes) addresses() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []string
	for _, v := range n.live {
		if v.backend {
			list = append(list, v.address)
		}
	}
	slices.Sort(list)
	return list
}

func (n *nodes) lives(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.live[id]
	return ok
}

// pick chooses a living node of an availability domain.
func (n *nodes) pick(domain string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []string
	for id, v := range n.live {
		if v.domain == domain {
			list = append(list, id)
		}
	}
	return list[rand.IntN(len(list))]
}

func (n *nodes) lost(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.live, id)
}

func nodePort(port int) int { return 30000 + port }

const (
	nodeCount     = 30 // so that the attached volumes find room
	backendCount  = 8  // of them
	eventualReads = 2
)

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{
		t: t, began: time.Now(), nodes: &nodes{live: map[string]node{}},
		region: ocisim.New(ocisim.Options{
			Seed: 41, PageSize: 20, ShortPages: 0.2, EventualReads: eventualReads, DropOptional: 0.05,
			Read: ocisim.Rate{PerSecond: 20 / share, Burst: 40 / share}, Write: ocisim.Rate{PerSecond: 10 / share, Burst: 20 / share}, LogSize: 1_000_000,
		}),
	}
	s.compartment = s.region.AddCompartment(ocisim.Compartment{Name: "clusters"})
	s.region.AddVCN(ocisim.VCN{Name: "net"})
	s.subnet = s.region.AddSubnet(ocisim.Subnet{Name: "balancers", CIDR: "10.0.0.0/22"})
	s.region.AddSubnet(ocisim.Subnet{Name: "nodes", CIDR: "10.0.10.0/24", Private: true})
	s.group = s.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "of somebody else"})
	s.region.AddInstance(ocisim.Instance{Name: "node-%d", Count: nodeCount, VNIC: ocisim.VNIC{Subnet: "nodes"}})
	for n, i := range s.region.Instances() {
		s.nodes.live[*i.Id] = node{
			address: *s.region.InstanceVNICs(*i.Id)[0].PrivateIp, domain: *i.AvailabilityDomain, backend: n < backendCount,
		}
	}
	s.before = s.region.Snapshot()
	for _, name := range []string{"a", "b"} {
		s.crews = append(s.crews, &crew{name: name, balancers: s.connect("ccm-" + name), volumes: s.connect("csi-" + name)})
	}
	s.auditor, s.foreign = s.connect("auditor"), s.connect("terraform")
	return s
}

func (s *stage) connect(name string) *clients {
	s.t.Helper()
	c, err := newClients(s.region, name)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// fail notes what went wrong on another goroutine than the test's.
func (s *stage) fail(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, err)
}

// at sleeps until a time after the beginning.
func (s *stage) at(ctx context.Context, d time.Duration) error {
	return sleep(ctx, time.Until(s.began.Add(d)))
}

// planBalancers gives both crews their balancers, of both kinds in turn. Each is created in the first minutes and changed
// now and then; every fifth is not wanted any more in the end. All look again after a node was lost, and at the end.
func (s *stage) planBalancers(n int, random *rand.Rand) {
	for i := range n {
		c := s.crews[i%len(s.crews)]
		b := &balancer{cluster: c.name, owner: fmt.Sprintf("%s-service-%03d", c.name, i), nodes: s.nodes}
		if i%4 < 2 {
			b.api = lbAPI{c.balancers.lb, s.compartment, s.subnet}
		} else {
			b.api = nlbAPI{c.balancers.nlb, s.compartment, s.subnet}
		}
		want := func(ports ...int) func() { return func() { b.ports = ports } }
		acts := []act{{at: minutes(random, 0, 12), change: want(80, 443)}}
		for range 2 + random.IntN(3) {
			ports := [][]int{{80}, {80, 443}, {443, 8443}, {80, 443, 8443}, {}}[random.IntN(5)]
			acts = append(acts, act{at: minutes(random, 12, 48), change: want(ports...), forget: random.IntN(3) == 0})
		}
		last := want(80, 8443)
		if i%5 == 4 {
			last = want()
		}
		acts = append(acts, act{at: minutes(random, 48, 50), change: last})
		c.plans = append(c.plans, s.plan(b, acts, random))
	}
}

// planVolumes gives both crews their volumes. Each is created in the first minutes, grows, and is attached and detached now
// and then; every fifth is not wanted any more in the end.
func (s *stage) planVolumes(n int, random *rand.Rand) {
	domains := s.region.Options().AvailabilityDomains
	for i := range n {
		c := s.crews[i%len(s.crews)]
		v := &volume{
			clients: c.volumes, nodes: s.nodes, compartment: s.compartment, cluster: c.name,
			owner: fmt.Sprintf("%s-pvc-%03d", c.name, i), domain: domains[i%len(domains)], iscsi: i%4 != 0, gigabytes: 50,
		}
		want := func(wanted, attached bool, grow int64) func() {
			return func() {
				v.wanted, v.attached = wanted, attached
				if v.gigabytes += grow; !wanted {
					v.gigabytes = 50
				}
			}
		}
		acts := []act{{at: minutes(random, 0, 12), change: want(true, random.IntN(2) == 0, 0)}}
		for range 1 + random.IntN(2) {
			acts = append(acts, act{
				at: minutes(random, 12, 48), change: want(random.IntN(8) > 0, random.IntN(3) > 0, int64(10*random.IntN(3))),
				forget: random.IntN(3) == 0,
			})
		}
		acts = append(acts, act{at: minutes(random, 48, 50), change: want(i%5 != 4, i%3 != 0, 10)})
		c.plans = append(c.plans, s.plan(v, acts, random))
	}
}

// plan adds the looks that every thing takes.
func (s *stage) plan(x thing, acts []act, random *rand.Rand) *plan {
	for _, lost := range nodeLosses {
		acts = append(acts, act{at: lost.at + minutes(random, 0, 1)})
	}
	acts = append(acts, act{at: minutes(random, 54, 56)})
	slices.SortStableFunc(acts, func(a, b act) int { return int(a.at - b.at) })
	return &plan{x, acts}
}

// minutes draws a time between two minutes.
func minutes(random *rand.Rand, from, to int) time.Duration {
	return time.Duration(from)*time.Minute + time.Duration(random.Int64N(int64(to-from)*int64(time.Minute)))
}

// live carries out a plan.
func (s *stage) live(ctx context.Context, p *plan) error {
	for _, a := range p.acts {
		if err := s.at(ctx, a.at); err != nil {
			return err
		}
		if a.change != nil {
			a.change()
		}
		if a.forget {
			p.thing.forget()
		}
		if err := converge(ctx, p.thing); err != nil {
			return err
		}
	}
	return nil
}

// audit lists everything, page by page, every five minutes: what was there all the time is on the pages exactly once.
func (s *stage) audit(ctx context.Context) error {
	lists := map[string]func() ([]string, error){
		"load balancers":         s.namesOf(ctx, lbAPI{s.auditor.lb, s.compartment, s.subnet}),
		"network load balancers": s.namesOf(ctx, nlbAPI{s.auditor.nlb, s.compartment, s.subnet}),
		"volumes": func() ([]string, error) {
			return pages(ctx, func(ctx context.Context, page *string) ([]string, *string, error) {
				r, err := s.auditor.block.ListVolumes(ctx, core.ListVolumesRequest{CompartmentId: &s.compartment, Page: page})
				ids := make([]string, 0, len(r.Items))
				for _, v := range r.Items {
					ids = append(ids, *v.Id)
				}
				return ids, r.OpcNextPage, err
			})
		},
		"instances": func() ([]string, error) {
			return pages(ctx, func(ctx context.Context, page *string) ([]string, *string, error) {
				r, err := s.auditor.compute.ListInstances(ctx, core.ListInstancesRequest{CompartmentId: &s.compartment, Page: page})
				ids := make([]string, 0, len(r.Items))
				for _, i := range r.Items {
					ids = append(ids, *i.Id)
				}
				return ids, r.OpcNextPage, err
			})
		},
	}
	for {
		for what, list := range lists {
			old := s.established()
			var ids []string
			for range misses { // the auditor's own first reads miss what is new
				var err error
				if ids, err = list(); err != nil {
					return err
				}
			}
			s.fail(s.complete(what, old[what], ids))
		}
		if err := sleep(ctx, 5*time.Minute); err != nil {
			return err
		}
	}
}

func (s *stage) namesOf(ctx context.Context, api balancerAPI) func() ([]string, error) {
	return func() ([]string, error) {
		list, err := api.list(ctx, "")
		ids := make([]string, 0, len(list))
		for _, b := range list {
			ids = append(ids, b.id)
		}
		return ids, err
	}
}

// established are the objects that have been there for so long that no read misses them any more, by list.
func (s *stage) established() map[string][]string {
	old := func(created time.Time) bool { return time.Since(created) > 5*time.Minute }
	lists := map[string][]string{}
	for _, v := range s.region.LoadBalancers() {
		if old(v.TimeCreated.Time) {
			lists["load balancers"] = append(lists["load balancers"], *v.Id)
		}
	}
	for _, v := range s.region.NetworkLoadBalancers() {
		if old(v.TimeCreated.Time) {
			lists["network load balancers"] = append(lists["network load balancers"], *v.Id)
		}
	}
	for _, v := range s.region.Volumes() {
		if old(v.TimeCreated.Time) {
			lists["volumes"] = append(lists["volumes"], *v.Id)
		}
	}
	for _, v := range s.region.Instances() {
		lists["instances"] = append(lists["instances"], *v.Id)
	}
	return lists
}

// complete compares a list with what was there before it began, and still is.
func (s *stage) complete(what string, old, listed []string) error {
	count := map[string]int{}
	for _, id := range listed {
		count[id]++
		if count[id] > 1 {
			return fmt.Errorf("%s %s is listed twice", what, id)
		}
	}
	still := s.established()[what]
	for _, id := range old {
		if count[id] == 0 && slices.Contains(still, id) {
			return fmt.Errorf("%s %s is not listed", what, id)
		}
	}
	return nil
}
