// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// ruleScenario is something about security rules that a process is killed in.
type ruleScenario struct {
	name   string
	before func(r *rig, svc *v1.Service) // edits that are synced before
	edit   func(r *rig, svc *v1.Service) // what the killed process, and the next one, have to bring about
	delete bool
}

func ruleScenarios() []ruleScenario {
	set := func(mode string) func(*rig, *v1.Service) {
		return func(r *rig, svc *v1.Service) { r.edit(svc, annotate(ruleMode, mode)) }
	}
	nsg := func(r *rig, svc *v1.Service) { r.inNSGMode(svc) }
	return []ruleScenario{
		{name: "create with lists", edit: set("SL-All")},
		{name: "create with groups", edit: nsg},
		{name: "change ports and clients", before: set("SL-All"), edit: func(r *rig, svc *v1.Service) {
			r.edit(svc, func(s *v1.Service) {
				s.Spec.Ports = newService("x", oci.KindLB, 443).Spec.Ports
				s.Spec.LoadBalancerSourceRanges = []string{"203.0.113.0/24"}
			})
		}},
		{name: "lists to groups", before: set("SL-All"), edit: nsg},
		{name: "groups to lists", before: nsg, edit: func(r *rig, svc *v1.Service) {
			r.edit(svc, func(s *v1.Service) {
				s.Annotations[ruleMode] = "SL-All"
				delete(s.Annotations, backendNSG)
			})
		}},
		{name: "delete with lists", before: set("SL-All"), edit: func(*rig, *v1.Service) {}, delete: true},
		{name: "delete with groups", before: nsg, edit: func(*rig, *v1.Service) {}, delete: true},
	}
}

func (s ruleScenario) do(ctx context.Context, r *rig, m *loadbalancer.Manager, svc *v1.Service, nodes []*v1.Node) error {
	if !s.delete {
		return drive(ctx, m, r.cluster, svc, nodes, 30*time.Minute)
	}
	_, exists, err := m.Exists(ctx, r.cluster.get(svc.UID))
	if err == nil && exists {
		err = m.Delete(ctx, r.cluster.get(svc.UID))
	}
	return err
}

// C026: a process that dies with any of its calls leaves no rule, and no group, that the next one does not put right.
func TestKilledWithRules(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	for _, s := range ruleScenarios() {
		for kind, applied := range map[oci.BalancerKind]bool{oci.KindLB: false, oci.KindNLB: true} {
			t.Run(fmt.Sprintf("%s/%s, applied %t", s.name, kind, applied), func(t *testing.T) {
				withRules(t, ocisim.Options{Seed: 97, Durations: fixed(time.Second)}, func(r *rig) {
					r.nodesNow = []*v1.Node{r.worker("a", r.ruled.workers)}
					r.restart()
					points := 0
					for s.killedAt(r, kind, points+1, applied) {
						points++
					}
					if points < 3 {
						r.Errorf("only %d kill points", points)
					}
					time.Sleep(5 * time.Minute) // reads that the dead processes shared end with their own deadlines
				})
			})
		}
	}
}

// killedAt is false if the process did not come to that call.
func (s ruleScenario) killedAt(r *rig, kind oci.BalancerKind, call int, applied bool) bool {
	r.cluster.events = nil
	svc := r.serviceUID("web", types.UID(fmt.Sprintf("uid-%d-%t", call, applied)), kind, 80)
	r.restart()
	if s.before != nil {
		s.before(r, svc)
		r.mustSync(svc, r.nodesNow)
	}
	s.edit(r, svc)
	if s.delete {
		r.condemn(svc)
	}
	point := &ocisim.KillPoint{Call: call, Applied: applied}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	ctx, network := point.Process(ctx, r.region.Transport())
	err := s.do(ctx, r, r.newManager(network), svc, r.nodesNow)
	if !point.Reached() {
		if err != nil {
			r.Errorf("%s: not killed, but: %v", point, err)
		}
	}
	r.restart()
	if err := s.do(r.Context(), r, r.m, svc, r.nodesNow); err != nil {
		r.Errorf("%s: the next process: %v", point, err)
	}
	if len(r.cluster.events) > 0 {
		r.Errorf("%s: events %v", point, r.cluster.events)
	}
	if s.delete {
		r.cluster.remove(svc.UID)
	} else {
		s.check(r, svc, point.String())
		r.unchanged(svc, r.nodesNow)
		r.remove(svc)
	}
	r.asAtStart()
	r.equal(point.String()+": balancers", len(r.live()), 0)
	return point.Reached()
}

// check compares rules with those of a Service that nobody was killed for.
func (s ruleScenario) check(r *rig, svc *v1.Service, point string) {
	r.Helper()
	front, work := allRules()
	if strings.HasPrefix(s.name, "change") {
		front = []string{"in tcp 443 from 203.0.113.0/24", "out tcp 30443 to " + workersCIDR, front[2]}
		work = []string{"in tcp 30443 from " + frontCIDR, work[1]}
	}
	g := r.managed(svc)
	if strings.HasSuffix(s.name, "groups") {
		r.hasRules(r.ruled.frontList)
		r.hasRules(r.ruled.workList)
		if g == nil {
			r.Errorf("%s: no group", point)
			return
		}
		r.equal(point+": rules of the group", r.groupRules(*g.Id), owned(svc, "in tcp 80 from 0.0.0.0/0", "out tcp 30080 to "+r.ruled.backends, "out tcp 10256 to "+r.ruled.backends))
		r.equal(point+": groups of the balancer", r.only().NSGIDs, []string{*g.Id})
	} else {
		r.hasRules(r.ruled.frontList, ours(front...)...)
		r.hasRules(r.ruled.workList, ours(work...)...)
		r.equal(point+": group", g == nil, true)
	}
}

// Acceptance: 20 Services on shared lists, created, changed and deleted in random order and side by side, while somebody else
// writes to the same lists: at the end they are what they were, with what the other one has written, byte for byte. C071.
func TestManyServicesOnSharedLists(t *testing.T) {
	withRules(t, ocisim.Options{Seed: 98, Durations: fixed(time.Second)}, func(r *rig) {
		random := rand.New(rand.NewPCG(98, 1))
		nodes := []*v1.Node{r.worker("a", r.ruled.workers), r.worker("b", r.ruled.far)}
		lists := []string{r.ruled.frontList, r.ruled.workList, r.ruled.farList}
		strangers := 0
		stranger := func(f *ocisim.Foreign, c ocisim.Call) {
			if strangers++; strangers%3 != 0 {
				return
			}
			port := 5000 + strangers
			_ = f.SecurityList(lists[strangers%len(lists)], func(l *core.SecurityList) {
				l.IngressSecurityRules = append(slices.Clone(l.IngressSecurityRules), core.IngressSecurityRule{
					Protocol: common.String("17"), Source: common.String("198.51.100.0/24"), SourceType: core.IngressSecurityRuleSourceTypeCidrBlock, IsStateless: common.Bool(true),
					Description: common.String(fmt.Sprint("stranger ", port)), UdpOptions: &core.UdpOptions{DestinationPortRange: &core.PortRange{Min: &port, Max: &port}},
				})
			})
		}
		removeStranger := r.region.Foreign().Before(ocisim.Trigger{Operation: "UpdateSecurityList", Times: 1 << 20}, stranger)
		var services []*v1.Service
		for i := range 20 {
			kind := []oci.BalancerKind{oci.KindLB, oci.KindNLB}[i%2]
			svc := r.service(fmt.Sprintf("web-%d", i), kind, int32(80+i%3))
			r.edit(svc, annotate(ruleMode, []string{"SL-All", "SL-Frontend"}[i%5/4]))
			services = append(services, svc)
		}
		all := func(do func(svc *v1.Service) error) {
			r.Helper()
			random.Shuffle(len(services), func(i, j int) { services[i], services[j] = services[j], services[i] })
			errs := make(chan error, len(services))
			for _, svc := range services {
				go func() { errs <- do(svc) }()
			}
			for range services {
				if err := <-errs; err != nil {
					r.Error(err)
				}
			}
		}
		all(func(svc *v1.Service) error { return drive(r.Context(), r.m, r.cluster, svc, nodes, time.Hour) })
		for range 3 {
			for _, svc := range services {
				r.edit(svc, func(s *v1.Service) {
					s.Spec.Ports[0].Port = 80 + int32(random.IntN(4))
					s.Spec.Ports[0].NodePort = 30000 + int32(random.IntN(5))
					s.Spec.LoadBalancerSourceRanges = [][]string{nil, {"203.0.113.0/24"}, {"203.0.113.0/24", "10.0.0.0/8"}}[random.IntN(3)]
					s.Annotations = maps.Clone(s.Annotations)
					s.Annotations[ruleMode] = []string{"SL-All", "SL-All", "SL-Frontend", "None"}[random.IntN(4)]
				})
			}
			all(func(svc *v1.Service) error { return drive(r.Context(), r.m, r.cluster, svc, nodes, time.Hour) })
		}
		all(func(svc *v1.Service) error {
			r.condemn(svc)
			_, exists, err := r.m.Exists(r.Context(), r.cluster.get(svc.UID))
			if err == nil && exists {
				err = r.m.Delete(r.Context(), r.cluster.get(svc.UID))
			}
			return err
		})
		removeStranger()
		if strangers < 10 {
			r.Errorf("only %d writes for a stranger to come between", strangers)
		}
		for _, id := range lists {
			for _, rule := range r.added(id) {
				if !strings.Contains(rule, "(stranger ") {
					r.Errorf("%s: %s is left over", id, rule)
				}
			}
		}
		found := 0
		for _, id := range lists {
			found += len(r.added(id))
		}
		r.equal("rules of the stranger", found, strangers/3)
	})
}
