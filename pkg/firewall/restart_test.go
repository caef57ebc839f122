// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
)

// After a restart nothing goes that somebody may need who has not settled yet; who settles last, or the sweep, cleans up,
// also on lists that nobody uses any more.
func TestRestart(t *testing.T) {
	simulate(t, func(r *rig) {
		left := r.contents(r.nodes)
		r.born("a", 80)
		r.born("b", 80, 443)
		r.sync(claim("a", r.front, "ingress TCP 80 from 0.0.0.0/0", "ingress TCP 81 from 0.0.0.0/0"))
		b := claim("b", r.front, "ingress TCP 80 from 192.0.2.0/24")
		b.Rules[r.nodes] = rules("ingress TCP 80 from 10.0.0.0/24", "ingress TCP 1 from 10.0.0.0/24")
		r.sync(b)
		before := r.contents(r.front)

		r.restart() // meanwhile a was narrowed, and b has left the list of the nodes
		r.same("after the restart", r.front, before)
		report := r.sync(claim("a", r.front, "ingress TCP 80 from 198.51.100.0/24"))
		r.hasOurs("b may need port 80", r.front, "ingress TCP 80 from 0.0.0.0/0", "ingress TCP 80 from 192.0.2.0/24", "ingress TCP 80 from 198.51.100.0/24")
		if diff := cmp.Diff(rules("ingress TCP 80 from 0.0.0.0/0", "ingress TCP 80 from 192.0.2.0/24"), stripped(report.Waiting[r.front])); diff != "" {
			t.Errorf("waiting (-want +got):\n%s", diff)
		}
		report = r.sweep(firewall.SecurityList)
		r.hasOurs("b may need port 80", r.nodes, "ingress TCP 80 from 10.0.0.0/24")
		if len(report.Waiting[r.nodes]) != 1 || len(report.Changed[r.nodes].Remove) != 1 {
			t.Errorf("report %+v", report)
		}
		r.sync(claim("b", r.front, "ingress TCP 80 from 192.0.2.0/24"))
		r.hasOurs("all have settled", r.front, "ingress TCP 80 from 192.0.2.0/24", "ingress TCP 80 from 198.51.100.0/24")
		r.sweep(firewall.SecurityList)
		r.same("swept", r.nodes, left)
		r.region.ResetCalls()
		r.sweep(firewall.SecurityList)
		if r.calls("") != r.calls("ListSecurityLists") {
			t.Errorf("a sweep that finds nothing: %v", r.region.Counts())
		}
	})
}

// The list of owners, and what they may need, is asked for now and then only: after a start that is work for every rule.
func TestOwnersAreAskedSeldom(t *testing.T) {
	asked := 0
	simulate(t, func(r *rig) {
		for i := range 100 {
			r.sync(claim(fmt.Sprint("owner-", i), r.front, "ingress TCP 80 from 0.0.0.0/0"))
		}
		time.Sleep(10 * time.Second)
		r.sync(claim("owner-1", r.front, "ingress TCP 80 from 0.0.0.0/0"))
		if asked != 2 {
			t.Errorf("asked %d times", asked)
		}
		r.sweep(firewall.SecurityList)
		if asked != 3 {
			t.Error("a sweep does not ask who is alive")
		}
	}, func(c *firewall.Config) {
		c.Owners = func() []firewall.Owner { asked++; return []firewall.Owner{{ID: "owner-1"}} }
	})
}

// An owner that has opened, and not settled, keeps what it may have had: its listeners are still there.
func TestOpeningClosesNothing(t *testing.T) {
	simulate(t, func(r *rig) {
		r.born("a")
		r.born("b")
		r.sync(claim("a", r.front, "ingress TCP 80 from 0.0.0.0/0"))
		r.restart()
		r.sync(claim("b", r.front, "ingress TCP 443 from 0.0.0.0/0"))
		if err := r.m.Open(r.ctx, claim("a", r.front, "ingress TCP 80 from 192.0.2.0/24")); err != nil {
			t.Fatal(err)
		}
		r.sync(claim("b", r.front, "ingress TCP 444 from 0.0.0.0/0"))
		r.sweep(firewall.SecurityList)
		r.hasOurs("a has only opened", r.front, "ingress TCP 80 from 0.0.0.0/0", "ingress TCP 80 from 192.0.2.0/24",
			"ingress TCP 443 from 0.0.0.0/0", "ingress TCP 444 from 0.0.0.0/0")
		r.sync(claim("a", r.front, "ingress TCP 80 from 192.0.2.0/24"))
		r.hasOurs("a has settled", r.front, "ingress TCP 80 from 192.0.2.0/24", "ingress TCP 444 from 0.0.0.0/0")
	})
}

// An owner that is deleted while others are not known leaves what they may need; the sweep finds it. An owner that
// vanished without a word holds nothing up.
func TestReleaseAfterRestart(t *testing.T) {
	simulate(t, func(r *rig) {
		before := r.contents(r.front)
		r.born("a")
		r.born("b")
		r.born("c")
		c := claim("a", r.front, "ingress TCP 80 from 0.0.0.0/0")
		r.sync(c)
		r.sync(claim("c", r.front, "ingress TCP 81 from 0.0.0.0/0"))
		r.restart()
		if report := r.release(c); len(report.Waiting[r.front]) != 2 {
			t.Errorf("report %+v", report)
		}
		r.sync(claim("c", r.front, "ingress TCP 81 from 0.0.0.0/0"))
		r.died("c")
		r.sync(claim("b", r.nodes))
		r.hasOurs("nobody has looked", r.front, "ingress TCP 80 from 0.0.0.0/0", "ingress TCP 81 from 0.0.0.0/0")
		r.sweep(firewall.SecurityList)
		r.same("swept", r.front, before)
	})
}
