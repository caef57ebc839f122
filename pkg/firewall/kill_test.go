// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// scenario is something that a process is killed in; the next process does all of it again.
type scenario struct {
	name string
	do   func(ctx context.Context, r *rig, m *firewall.Manager) error
}

func syncing(ctx context.Context, m *firewall.Manager, c firewall.Claim) error {
	if _, err := m.Check(ctx, c); err != nil {
		return err
	}
	if err := m.Open(ctx, c); err != nil {
		return err
	}
	_, err := m.Settle(ctx, c)
	return err
}

// C026, C070: a process that dies with any of its calls leaves nothing that the next one, which knows nothing, does not put
// right: no rule is missing, none is there twice, none stays.
func TestKilledAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	points := 0
	for _, s := range killScenarios() {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for point := range ocisim.KillPoints() {
					points++
					r := newRig(t.Context(), t, ocisim.Options{Seed: 5})
					lists := []string{r.contents(r.front), r.contents(r.nodes), r.contents(r.group)}
					r.born("other")
					other := claim("other", r.front, "ingress TCP 443 from 0.0.0.0/0")
					other.Rules[r.group] = rules("ingress TCP 443 from 0.0.0.0/0")
					r.sync(other)
					r.born("a")
					before := claim("a", r.front, "ingress TCP 443 from 0.0.0.0/0", "ingress TCP 80 from 0.0.0.0/0")
					before.Rules[r.nodes] = rules("ingress TCP 30080 from 10.0.0.0/24")
					before.Rules[r.group] = rules("ingress TCP 30080 from 10.0.0.0/24")
					r.sync(before)

					ctx, network := point.Process(t.Context(), r.region.Transport())
					_ = s.do(ctx, r, r.newManager(network)) // it fails if it was killed
					time.Sleep(5 * time.Minute)             // the dead process's goroutines come to their end
					r.restart()
					if err := s.do(t.Context(), r, r.m); err != nil {
						t.Errorf("%s: next process: %v", point, err)
					}
					if err := syncing(t.Context(), r.m, other); err != nil {
						t.Errorf("%s: %v", point, err)
					}
					r.sweep(firewall.SecurityList)
					s.check(r, point.String())
					r.release(claim("a", r.group))
					r.release(other)
					r.sweep(firewall.SecurityList)
					for i, target := range []firewall.Target{r.front, r.nodes, r.group} {
						r.same(point.String()+": all deleted", target, lists[i])
					}
				}
			})
		})
	}
	t.Logf("%d kill points", points)
}

func killScenarios() []scenario {
	changed := func(r *rig) firewall.Claim {
		c := claim("a", r.front, "ingress TCP 443 from 192.0.2.0/24", "ingress TCP 81 from 0.0.0.0/0")
		c.Rules[r.group] = rules("ingress TCP 30081 from 10.0.0.0/24", "ingress TCP 30080 from 10.0.0.0/24")
		return c
	}
	return []scenario{
		{"change", func(ctx context.Context, r *rig, m *firewall.Manager) error { return syncing(ctx, m, changed(r)) }},
		{"delete", func(ctx context.Context, r *rig, m *firewall.Manager) error {
			c := claim("a", r.front)
			c.Rules[r.nodes], c.Rules[r.group] = nil, nil
			_, err := m.Release(ctx, "a", c)
			return err
		}},
		{"managed group", func(ctx context.Context, r *rig, m *firewall.Manager) error {
			g := r.serviceGroup("a")
			id, err := m.FindGroup(ctx, g, nil)
			if err == nil && id == "" {
				id, err = m.CreateGroup(ctx, g)
			}
			if err != nil {
				return err
			}
			c := changed(r)
			c.Rules[firewall.Target{Kind: firewall.NSG, ID: id}] = rules("ingress TCP 80 from 0.0.0.0/0")
			return syncing(ctx, m, c)
		}},
	}
}

func (s scenario) check(r *rig, point string) {
	r.Helper()
	if s.name == "delete" {
		r.hasOurs(point, r.front, "ingress TCP 443 from 0.0.0.0/0")
		r.hasOurs(point, r.nodes)
		r.hasOurs(point, r.group, "ingress TCP 443 from 0.0.0.0/0 of other")
		return
	}
	r.hasOurs(point, r.front, "ingress TCP 443 from 0.0.0.0/0", "ingress TCP 443 from 192.0.2.0/24", "ingress TCP 81 from 0.0.0.0/0")
	r.hasOurs(point, r.nodes)
	r.hasOurs(point, r.group, "ingress TCP 443 from 0.0.0.0/0 of other", "ingress TCP 30081 from 10.0.0.0/24 of a", "ingress TCP 30080 from 10.0.0.0/24 of a")
	if s.name != "managed group" {
		return
	}
	groups := r.managed("a")
	if len(groups) != 1 {
		r.Fatalf("%s: %d groups", point, len(groups))
	}
	own := firewall.Target{Kind: firewall.NSG, ID: *groups[0].Id}
	r.hasOurs(point, own, "ingress TCP 80 from 0.0.0.0/0 of a")
	if err := r.m.DeleteGroup(r.ctx, r.serviceGroup("a"), own.ID); err != nil {
		r.Errorf("%s: %v", point, err)
	}
}

// An answer that is lost on the way to a living process costs nothing but a look.
func TestLostOnTheWay(t *testing.T) {
	for name, fault := range map[string]ocisim.Fault{
		"answer lost":      {Operation: "UpdateSecurityList", Drop: ocisim.AfterApply, Nth: 1},
		"request lost":     {Operation: "UpdateSecurityList", Drop: ocisim.BeforeApply, Nth: 1},
		"half an answer":   {Operation: "UpdateSecurityList", HalfBody: true, Nth: 1},
		"applied, but 503": {Operation: "UpdateSecurityList", Status: 503, Applied: true, Nth: 1},
		"conflict":         {Operation: "UpdateSecurityList", Status: 409, Code: "Conflict", Nth: 1},
		"throttled":        {Operation: "UpdateSecurityList", Status: 429, Nth: 1, Times: 3},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(r *rig) {
				before := r.contents(r.front)
				r.region.Fault(fault)
				r.born("a")
				r.sync(claim("a", r.front, "ingress TCP 80 from 0.0.0.0/0"))
				r.hasOurs("added", r.front, "ingress TCP 80 from 0.0.0.0/0")
				r.release(claim("a", r.front))
				r.same("released", r.front, before)
			})
		})
	}
}

// Without an ETag nothing is written: the changes of others could not be kept.
func TestNoETagNoWrite(t *testing.T) {
	simulate(t, func(r *rig) {
		r.born("a")
		m := r.newManager(withoutETags{r.region.Transport()})
		before := r.contents(r.front)
		if err := m.Open(r.ctx, claim("a", r.front, "ingress TCP 80 from 0.0.0.0/0")); err == nil || errors.Is(err, firewall.ErrInvalidRule) {
			t.Errorf("error %v", err)
		}
		r.same("without ETags", r.front, before)
	})
}

type withoutETags struct{ next http.RoundTripper }

func (w withoutETags) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(r)
	if err == nil {
		response.Header.Del("ETag")
	}
	return response, err
}
