// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Random Services in random modes of security rules become other ones: after every single call traffic passes all the way, from
// clients through the rules of lists and groups to the nodes and their health checks, to each port that was there before and is
// there after; the rules are in the end those that a creation opens; nobody gets in who is not meant to; and after a deletion the
// lists and groups are what they were.
func TestRandomChangesWithRules(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			withRulesOnBoth(t, ocisim.Options{Seed: seed, Durations: fixed(time.Second)}, func(r *rig, kind oci.BalancerKind) {
				random := rand.New(rand.NewPCG(seed, 2))
				all := []*v1.Node{r.dualWorker("a", r.ruled.workers), r.dualWorker("b", r.ruled.workers), r.dualWorker("c", r.ruled.far)}
				sides := r.nodeSides(all)
				svc := r.service("web", kind, 80)
				r.mustSync(svc, all[:1])
				for round := range 8 {
					nodes := slices.Clone(all)
					random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
					nodes = nodes[:1+random.IntN(len(nodes))]
					change := r.randomRuled(random, kind)
					before := r.cluster.get(svc.UID)
					r.edit(svc, change)
					after := r.cluster.get(svc.UID)
					id := r.only().ID
					stop := r.watchWay(id, before, after, sides)
					r.mustSync(svc, nodes)
					stop()
					what := fmt.Sprintf("round %d, %s %v -> %s %v", round, before.Annotations[ruleMode], before.Spec.Ports, after.Annotations[ruleMode], after.Spec.Ports)
					r.equal(what+": blocked", r.blocked(id, after, after, sides), []string{})
					r.strangersStayOut(id, after)
					r.unchanged(svc, nodes)
					changed := r.opened(svc)
					r.remove(r.cluster.get(svc.UID))
					r.asAtStart()

					svc = r.serviceUID("web", types.UID(fmt.Sprintf("uid-web-%d", round)), kind, 80)
					r.edit(svc, change)
					r.mustSync(svc, nodes)
					if diff := cmp.Diff(r.opened(svc), changed); diff != "" {
						r.Errorf("%s: not the rules that a creation opens:\n%s", what, diff)
					}
					r.noEvents()
					if r.Failed() {
						return
					}
				}
			})
		})
	}
}

// randomRuled draws what randomSpec does, and what security rules depend on.
func (r *rig) randomRuled(random *rand.Rand, kind oci.BalancerKind) func(*v1.Service) {
	const preserve = prefixNLB + "is-preserve-source"
	spec := r.randomSpec(random, kind)
	mode := []string{"", "SL-All", "SL-All", "SL-Frontend", "NSG", "NSG", "None"}[random.IntN(7)]
	clients := [][]string{nil, nil, {"198.51.100.0/24", "2001:db8::/32"}, {"198.51.100.7/32", "203.0.113.0/24", "2001:db8::7/128"}}[random.IntN(4)]
	preserved := []string{"", "false", "true"}[random.IntN(3)]
	return func(s *v1.Service) {
		spec(s)
		for _, key := range []string{ruleMode, backendNSG, preserve} {
			delete(s.Annotations, key)
		}
		if mode != "" {
			s.Annotations[ruleMode] = mode
		}
		if mode == "NSG" {
			s.Annotations[backendNSG] = r.ruled.backends
		}
		s.Spec.LoadBalancerSourceRanges = nil
		if guardedIn(s, kind).clients {
			s.Spec.LoadBalancerSourceRanges = clients
		}
		if local := s.Spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal; kind == oci.KindNLB && preserved != "" && (local || preserved == "false") {
			s.Annotations[preserve] = preserved
		}
	}
}

// strangersStayOut expects that the rules let in nobody else when the Service names its clients.
func (r *rig) strangersStayOut(id string, s *v1.Service) {
	r.Helper()
	if len(s.Spec.LoadBalancerSourceRanges) == 0 {
		return
	}
	for f := range flows(s) {
		if r.admits(r.balancerSide(id), connection{false, f.protocol, strangerAddress(f.v6), nil, f.port}) {
			r.Errorf("a stranger gets to %v", f)
		}
	}
}

// opened are the rules that were not there at the start, whichever Service they are for.
func (r *rig) opened(svc *v1.Service) map[string][]string {
	r.Helper()
	out := map[string][]string{}
	for name, id := range map[string]string{"front": r.ruled.frontList, "workers": r.ruled.workList, "younger": r.ruled.old, "far": r.ruled.farList} {
		out[name] = r.added(id)
	}
	names := []string{"service-uid-" + string(svc.UID), "service-uid"}
	if g := r.managed(svc); g != nil {
		names = append(names, *g.Id, "the Service's group")
		out["group"] = r.groupRules(*g.Id)
	}
	out["backends"] = r.groupRules(r.ruled.backends)
	for name, rules := range out {
		for i, text := range rules {
			rules[i] = strings.NewReplacer(names...).Replace(text)
		}
		slices.Sort(rules)
		out[name] = rules
	}
	return out
}
