// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"
	"pgregory.net/rapid"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// notes collects what goes wrong, without stopping anything: rapid wants to be told outside of the bubble.
type notes struct {
	mu    sync.Mutex
	texts []string
}

func (n *notes) Helper() {}

func (n *notes) Errorf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.texts = append(n.texts, fmt.Sprintf(format, args...))
}

func (n *notes) Fatalf(format string, args ...any) { n.Errorf(format, args...) }

// story is what happens to some lists: rounds, in each of which several Services are synced or deleted at the same time.
type story struct {
	seed     uint64
	rounds   []round
	stranger []int // what somebody else does before each of our writes
}

type round struct {
	restart bool
	deeds   []deed
}

// deed is a sync with a claim on the two lists, or a deletion if the Service exists.
type deed struct {
	owner    string
	deletion bool
	rules    [2][]firewall.Rule // on a list that is not used: none
}

func drawStory(t *rapid.T) story {
	rule := rapid.Custom(func(t *rapid.T) firewall.Rule { // of a small set, so that many owners share them
		return firewall.Rule{
			Direction: rapid.SampledFrom([]firewall.Direction{firewall.Ingress, firewall.Egress}).Draw(t, "direction"),
			Protocol:  rapid.SampledFrom([]firewall.Protocol{firewall.TCP, firewall.UDP}).Draw(t, "protocol"),
			Peer:      rapid.SampledFrom([]string{"0.0.0.0/0", "192.0.2.0/24", "2001:db8::/32"}).Draw(t, "peer"),
			Port:      rapid.SampledFrom([]int{53, 80, 443}).Draw(t, "port"),
		}
	})
	s := story{seed: rapid.Uint64Range(1, 1000).Draw(t, "seed"), stranger: rapid.SliceOfN(rapid.IntRange(0, 99), 40, 40).Draw(t, "stranger")}
	for range rapid.IntRange(2, 5).Draw(t, "rounds") {
		r := round{restart: rapid.IntRange(0, 3).Draw(t, "restart") == 0}
		for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(1, 20), 1, 20, rapid.ID).Draw(t, "busy") {
			d := deed{owner: fmt.Sprint("uid-", i), deletion: rapid.IntRange(0, 2).Draw(t, "deleted") == 0}
			for list := range d.rules {
				d.rules[list] = rapid.SliceOfN(rule, 0, 4).Draw(t, "rules")
			}
			r.deeds = append(r.deeds, d)
		}
		s.rounds = append(s.rounds, r)
	}
	return s
}

// world is a rig in which a story is told. foreign is what others have made of the lists.
type world struct {
	*rig

	lists   [2]firewall.Target
	foreign [2]*core.SecurityList
	claims  map[string]firewall.Claim

	mu        sync.Mutex
	strangers int
	steady    [2]map[string]string // what is needed before and after a round, and by whom
}

// stranger changes rules of others in a list: some come, some go. The same is done to foreign.
func (w *world) stranger(choice int) {
	w.strangers++
	if choice >= 50 || w.strangers%3 == 0 { // now and then there is peace, or nobody would ever come to write
		return
	}
	list := choice / 5 % 2
	rule := foreignRule(9000+w.strangers, "203.0.113.0/24")
	if choice%5 == 0 {
		rule = foreignRule(80, "0.0.0.0/0") // what a Service may need, too
	}
	act := func(l *core.SecurityList) {
		switch choice % 4 {
		case 0, 1:
			l.IngressSecurityRules = slices.Insert(l.IngressSecurityRules, 0, rule)
		case 2:
			l.IngressSecurityRules = append(l.IngressSecurityRules, rule)
		case 3: // but not what a Service may be using
			i := slices.IndexFunc(l.IngressSecurityRules, func(x core.IngressSecurityRule) bool {
				return (x.Description == nil || *x.Description != "k8s cluster-1") && (x.TcpOptions == nil || *x.TcpOptions.DestinationPortRange.Min != 80)
			})
			if i >= 0 {
				l.IngressSecurityRules = slices.Delete(l.IngressSecurityRules, i, i+1)
			}
		}
	}
	act(w.foreign[list])
	w.somebody(w.lists[list], act)
}

// tell lets a story happen, and compares the lists with what others made of them.
func (s story) tell(t *testing.T, n *notes) {
	w := &world{
		rig:    newRig(t.Context(), n, ocisim.Options{Seed: s.seed, Latency: map[string]ocisim.Range{"*": {Min: 10 * time.Millisecond, Max: 300 * time.Millisecond}}}),
		claims: map[string]firewall.Claim{},
	}
	w.lists = [2]firewall.Target{w.front, w.nodes}
	for i, target := range w.lists {
		l := w.list(target)
		w.foreign[i] = &l
	}
	stop := w.region.Foreign().Before(ocisim.Trigger{Operation: "UpdateSecurityList", Times: 1 << 20}, func(*ocisim.Foreign, ocisim.Call) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stranger(s.stranger[w.strangers%len(s.stranger)])
	})
	w.region.OnCall(func(c ocisim.Call) {
		if c.Operation == "UpdateSecurityList" {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.covered(fmt.Sprint("after ", c.Operation, " at ", c.Time))
		}
	})
	for _, r := range s.rounds {
		w.round(r)
	}
	for _, owner := range slices.Sorted(maps.Keys(w.claims)) {
		w.release(w.claims[owner])
	}
	stop()
	w.sweep(firewall.SecurityList)
	for i, target := range w.lists {
		want, got := w.foreign[i], w.list(target)
		if diff := cmp.Diff([]any{want.IngressSecurityRules, want.EgressSecurityRules}, []any{got.IngressSecurityRules, got.EgressSecurityRules}); diff != "" {
			n.Errorf("in the end, %s (-want +got):\n%s", target, diff)
		}
	}
}

// round lets the Services of a round do their deeds at the same time.
func (w *world) round(r round) {
	if r.restart {
		w.restart()
	}
	before := maps.Clone(w.claims)
	var deletions, syncs []firewall.Claim
	for _, d := range r.deeds {
		if last, exists := w.claims[d.owner]; exists && d.deletion {
			delete(w.claims, d.owner)
			deletions = append(deletions, last)
			continue
		}
		next := firewall.Claim{Owner: d.owner, Rules: map[firewall.Target][]firewall.Rule{}}
		for i, rules := range d.rules {
			if len(rules) > 0 {
				next.Rules[w.lists[i]] = rules
			}
		}
		w.claims[d.owner] = next
		w.born(d.owner)
		syncs = append(syncs, next)
	}
	w.steadily(before, w.claims)
	var wg sync.WaitGroup
	for _, c := range deletions {
		wg.Go(func() { w.release(c) })
	}
	for _, c := range syncs {
		wg.Go(func() { w.sync(c) })
	}
	wg.Wait()
	w.steadily(w.claims, w.claims)
	w.covered("after a round")
	w.steadily(nil, nil)
	time.Sleep(2 * time.Minute) // so that what the stranger did is seen
}

// steadily sets what Services need both before and after a round.
func (w *world) steadily(before, after map[string]firewall.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, list := range w.lists {
		w.steady[i] = map[string]string{}
		for owner, c := range after {
			for _, rule := range c.Rules[list] {
				if slices.Contains(before[owner].Rules[list], rule) {
					w.steady[i][fmt.Sprint(rule.Direction, " ", string(rule.Protocol), " ", rule.Peer, " ", rule.Port)] = owner
				}
			}
		}
	}
}

// covered says whether the lists have all that is needed steadily.
func (w *world) covered(when string) {
	for i, target := range w.lists {
		l := w.list(target)
		have := map[string]bool{}
		for _, x := range l.IngressSecurityRules {
			have["INGRESS"+key(x.Protocol, x.Source, x.TcpOptions, x.UdpOptions)] = true
		}
		for _, x := range l.EgressSecurityRules {
			have["EGRESS"+key(x.Protocol, x.Destination, x.TcpOptions, x.UdpOptions)] = true
		}
		for rule, owner := range w.steady[i] {
			if !have[rule] {
				w.Errorf("%s: %s lacks %s on %s", when, owner, rule, target)
			}
		}
	}
}

func key(protocol, peer *string, tcp *core.TcpOptions, udp *core.UdpOptions) string {
	port := 0
	switch {
	case tcp != nil && tcp.DestinationPortRange != nil:
		port = *tcp.DestinationPortRange.Min
	case udp != nil && udp.DestinationPortRange != nil:
		port = *udp.DestinationPortRange.Min
	}
	return fmt.Sprint(" ", *protocol, " ", *peer, " ", port)
}

// Acceptance 4, C070, C071: Services come, change and go on shared lists, many at the same time, with restarts, while
// somebody else changes other rules of the same lists between our reads and writes. What a Service needs before and after a
// change of it, or of another one, is there all the time; the lists are, byte for byte, what the others made of
// them.
func TestSharedListsEndAsTheyBegan(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector; TestSharedLists tells some of its stories")
	}
	rapid.Check(t, func(rt *rapid.T) {
		s, n := drawStory(rt), &notes{}
		synctest.Test(t, func(t *testing.T) { s.tell(t, n) })
		if len(n.texts) > 0 {
			rt.Fatalf("%s", strings.Join(n.texts, "\n"))
		}
	})
}

// TestSharedLists tells some of the same stories, quickly enough for the race detector.
func TestSharedLists(t *testing.T) {
	for seed := range 3 {
		s, n := rapid.Custom(drawStory).Example(seed), &notes{}
		synctest.Test(t, func(t *testing.T) { s.tell(t, n) })
		for _, text := range n.texts {
			t.Errorf("story %d: %s", seed, text)
		}
	}
}
