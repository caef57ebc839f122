// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package scenario_test lives an hour in the simulated region, on virtual time: clusters look after hundreds of balancers
// and volumes while the region throttles, fails, forgets and lies, and while others work in it.
package scenario_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

const (
	balancerCount = 200 / share
	volumeCount   = 500 / share
)

// TestOneHour runs an hour with everything that can go wrong. In the end every object must be as wanted, nothing may be
// left over, and who looks once more must find nothing to do.
func TestOneHour(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	pki.SigningKey() // outside of the bubble, because it takes a while
	began := time.Now()
	calls := 0
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.planBalancers(balancerCount, rand.New(rand.NewPCG(1, 2)))
		s.planVolumes(volumeCount, rand.New(rand.NewPCG(5, 6)))
		s.play(t.Context())
		if t.Failed() {
			return
		}
		since := s.lastCall()
		s.lookAgain(t.Context())
		took := time.Since(s.began)
		if took < time.Hour {
			t.Errorf("it took %s of virtual time, less than an hour", took)
		}
		s.checkBalancers()
		s.checkVolumes()
		s.askOracle(since)
		s.provoke(since)
		s.checkWeather()
		calls = len(s.region.Calls())
		t.Logf("%s of virtual time, %d calls", took.Round(time.Second), calls)
		t.Logf("by operation: %s", tally(s.region.Counts()))
	})
	t.Logf("%.1f s of real time", time.Since(began).Seconds())
}

// play lets everybody act until all plans are carried out and the hour is over.
func (s *stage) play(ctx context.Context) {
	random := rand.New(rand.NewPCG(3, 4))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.interrupt()
	var background, crews sync.WaitGroup
	for _, run := range []func(context.Context) error{
		s.weather, s.loseNodes, s.audit,
		func(ctx context.Context) error { return s.interfere(ctx, random) },
	} {
		background.Go(func() { s.fail(run(ctx)) })
	}
	for _, c := range s.crews {
		for _, p := range c.plans {
			crews.Go(func() { s.fail(s.live(ctx, p)) })
		}
	}
	crews.Wait()
	s.fail(s.at(ctx, time.Hour))
	stop()
	background.Wait()
	for _, err := range s.failures {
		s.t.Errorf("%v", err)
	}
}

func (s *stage) lastCall() uint64 {
	calls := s.region.Calls()
	return calls[len(calls)-1].Seq
}

// lookAgain is the next process of every crew: it remembers nothing.
func (s *stage) lookAgain(ctx context.Context) {
	var all sync.WaitGroup
	for _, c := range s.crews {
		for _, p := range c.plans {
			all.Go(func() {
				p.thing.forget()
				if settled, err := p.thing.step(ctx); !settled || err != nil {
					s.fail(fmt.Errorf("%s: settled %t, %w", p.thing, settled, err))
				}
			})
		}
	}
	all.Wait()
	for _, err := range s.failures {
		s.t.Errorf("the second look: %v", err)
	}
}

// checkBalancers compares the region with the plans, without the code that carried them out.
func (s *stage) checkBalancers() {
	addresses := s.nodes.addresses()
	want := map[string]string{}
	for _, c := range s.crews {
		for _, p := range c.plans {
			if b, ok := p.thing.(*balancer); ok && len(b.ports) > 0 {
				want[b.owner] = fmt.Sprintf("%s %v to %v", b.cluster, b.ports, addresses)
			}
		}
	}
	got := map[string]string{}
	row := func(tags map[string]string, listeners map[string]int, sets map[string][]string) {
		owner, ports := tags[oracle.TagOwner], slices.Sorted(maps.Values(listeners))
		for _, backends := range sets {
			if !slices.Equal(backends, addresses) {
				s.t.Errorf("balancer of %s has the backends %v", owner, backends)
			}
		}
		if len(sets) != len(listeners) || got[owner] != "" {
			s.t.Errorf("balancer of %s: %d sets for %d listeners, another one: %q", owner, len(sets), len(listeners), got[owner])
		}
		got[owner] = fmt.Sprintf("%s %v to %v", tags[oracle.TagCluster], ports, addresses)
	}
	for _, v := range s.region.LoadBalancers() {
		b := lbState(&v, nil)
		row(b.tags, b.listeners, b.sets)
	}
	for _, v := range s.region.NetworkLoadBalancers() {
		b := nlbState(*v.Id, "", v.FreeformTags, v.BackendSets, v.Listeners, nil)
		row(b.tags, b.listeners, b.sets)
	}
	if len(want) != balancerCount*4/5 || !maps.Equal(got, want) {
		s.t.Errorf("%d balancers, want %d:\n%v\n%v", len(got), len(want), got, want)
	}
}

// checkVolumes compares the volumes and their attachments with the plans.
func (s *stage) checkVolumes() {
	want := map[string]string{}
	attached := 0
	for _, c := range s.crews {
		for _, p := range c.plans {
			if v, ok := p.thing.(*volume); ok && v.wanted {
				want[v.owner] = fmt.Sprintf("%s AVAILABLE %d GB", v.cluster, v.gigabytes)
				if v.attached {
					attached++
					want[v.owner] += " at " + v.node
				}
				if v.attached && !s.nodes.lives(v.node) {
					s.t.Errorf("%s is wanted on a node that is lost", v)
				}
			}
		}
	}
	at := map[string]string{}
	for _, a := range s.region.VolumeAttachments() {
		if a.GetLifecycleState() != core.VolumeAttachmentLifecycleStateDetached {
			at[*a.GetVolumeId()] += " at " + *a.GetInstanceId()
		}
	}
	got := map[string]string{}
	for _, v := range s.region.Volumes() {
		if v.LifecycleState != core.VolumeLifecycleStateTerminated {
			got[v.FreeformTags[oracle.TagOwner]] += fmt.Sprintf("%s %s %d GB%s",
				v.FreeformTags[oracle.TagCluster], v.LifecycleState, *v.SizeInGBs, at[*v.Id])
		}
	}
	if len(want) != volumeCount*4/5 || attached < volumeCount/3 || !maps.Equal(got, want) {
		s.t.Errorf("%d volumes, want %d, %d of them attached:\n%v\n%v", len(got), len(want), attached, got, want)
	}
}

// question is about one crew; to it, the other one is somebody else.
func (s *stage) question(c *crew, since uint64) oracle.Question {
	q := oracle.Question{
		Before: s.before,
		Us: oracle.Us{Principals: c.principals(), Cluster: c.name, Writes: []string{
			ocisim.ServiceLoadBalancer, ocisim.ServiceNetworkLoadBalancer, ocisim.ServiceBlockStorage,
			"compute.AttachVolume", "compute.DetachVolume",
		}},
		Settled: true,
		Quiet:   []oracle.Window{{From: since}},
		Budgets: []oracle.Budget{
			// Each is made once or twice, by plan; failed creations and lost answers come on top.
			{Operation: "CreateLoadBalancer", Most: balancerCount}, {Operation: "CreateNetworkLoadBalancer", Most: balancerCount},
			{Operation: "CreateVolume", Most: 3 * volumeCount},
			{Operation: "*", Most: 100_000},
			// The second look reads each thing and its attachments once from lists, and a few times what is not there.
			{Operation: "*", Most: 4 * (balancerCount + volumeCount), Within: oracle.Window{From: since}},
		},
	}
	for _, p := range c.plans {
		switch x := p.thing.(type) {
		case *balancer:
			if len(x.ports) > 0 {
				q.Us.Owners = append(q.Us.Owners, x.owner)
			}
		case *volume:
			if x.wanted {
				q.Us.Owners = append(q.Us.Owners, x.owner)
			}
		}
	}
	instances := s.region.Instances()
	for _, lost := range nodeLosses {
		if lost.pastAPI {
			q.Expected = append(q.Expected, oracle.Expectation{Resource: *instances[lost.node].Id})
		}
	}
	return q
}

func (s *stage) ask(q oracle.Question) *oracle.Report {
	s.t.Helper()
	report, err := oracle.Check(s.t.Context(), oracle.InProcess(s.region), q)
	if err != nil {
		s.t.Fatal(err)
	}
	return report
}

// askOracle wants nothing wrong with either crew.
func (s *stage) askOracle(since uint64) {
	for _, c := range s.crews {
		report := s.ask(s.question(c, since))
		if err := report.Err(); err != nil {
			s.t.Errorf("crew %s: %v", c.name, err)
		}
		if report.Ours < (balancerCount+volumeCount)*4/5/2 {
			s.t.Errorf("crew %s: the oracle knows only %d objects as ours", c.name, report.Ours)
		}
	}
}

// provoke does one thing wrong: the oracle must not be blind in this crowd.
func (s *stage) provoke(since uint64) {
	c := s.crews[0]
	q := s.question(c, since)
	q.Us.Owners = q.Us.Owners[1:] // its owner goes
	report := s.ask(q)
	if len(report.Findings) != 1 || len(report.Of(oracle.Orphan)) != 1 {
		s.t.Errorf("want one orphan:\n%s", report)
	}
	victim := s.region.LoadBalancers()[0].Id
	_, err := c.balancers.lb.UpdateLoadBalancer(s.t.Context(), loadbalancer.UpdateLoadBalancerRequest{
		LoadBalancerId: victim, UpdateLoadBalancerDetails: loadbalancer.UpdateLoadBalancerDetails{IsDeleteProtectionEnabled: new(bool)},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if report := s.ask(s.question(c, since)); len(report.Of(oracle.Restless)) != 1 {
		s.t.Errorf("want one needless write:\n%s", report)
	}
}

// checkWeather makes sure that the hour was what it should be: what never happened was not survived.
func (s *stage) checkWeather() {
	struck, refused, total := map[string]int{}, map[string]int{}, 0
	for _, c := range s.region.Calls() {
		if !ours(c) {
			continue
		}
		total++
		if c.Fault != "" {
			for note := range strings.SplitSeq(c.Fault, "; ") {
				struck[note]++
			}
		} else if c.Status >= http.StatusBadRequest {
			refused[c.Code]++
		}
	}
	for _, note := range []string{
		"429", "500", "503 although applied", "dropped before", "dropped after", "half of the body", "slow", "creation fails", "update fails",
		"volume is faulty", "attached, unanswered", "volume outage",
		"outage", "429 for all", "slow region", "no answer at all",
	} {
		if struck[note] == 0 {
			s.t.Errorf("no call was struck by %q", note)
		}
	}
	for _, code := range []string{"TooManyRequests", "NotAuthorizedOrNotFound", "NoEtagMatch", "InvalidatedRetryToken"} {
		if refused[code] == 0 {
			s.t.Errorf("no call was refused with %s", code)
		}
	}
	if total < 40*(balancerCount+volumeCount) {
		s.t.Errorf("the crews made only %d calls", total)
	}
	s.t.Logf("%d calls of the crews; struck: %s; refused: %s", total, tally(struck), tally(refused))
}

func tally(counts map[string]int) string {
	parts := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d x %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}
