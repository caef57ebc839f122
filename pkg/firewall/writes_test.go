// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// C071: others write between each of our reads and updates, several times; all of theirs stays, and so does ours.
func TestConflicts(t *testing.T) {
	simulate(t, func(r *rig) {
		n := 0
		stop := r.region.Foreign().Before(ocisim.Trigger{Operation: "UpdateSecurityList", Times: 5}, func(f *ocisim.Foreign, c ocisim.Call) {
			n++
			err := f.SecurityList(r.front.ID, func(l *core.SecurityList) {
				l.IngressSecurityRules = append([]core.IngressSecurityRule{foreignRule(8000+n, "203.0.113.0/24")}, l.IngressSecurityRules[:len(l.IngressSecurityRules)-1]...)
			})
			if err != nil {
				t.Error(err)
			}
		})
		r.born("a")
		r.sync(claim("a", r.front, "ingress TCP 80 from 0.0.0.0/0"))
		stop()
		r.hasOurs("after five conflicts", r.front, "ingress TCP 80 from 0.0.0.0/0")
		var ports []int
		for _, rule := range r.list(r.front).IngressSecurityRules {
			if rule.TcpOptions != nil {
				ports = append(ports, *rule.TcpOptions.DestinationPortRange.Min)
			}
		}
		if diff := cmp.Diff([]int{8005, 8004, 8003, 80}, ports); diff != "" {
			t.Errorf("ports of the list (-want +got):\n%s", diff)
		}
	})
}

// Somebody who never stops is told of in the end.
func TestEndlessConflict(t *testing.T) {
	simulate(t, func(r *rig) {
		r.region.Foreign().Before(ocisim.Trigger{Operation: "UpdateSecurityList", Times: 1000}, func(f *ocisim.Foreign, _ ocisim.Call) {
			_ = f.SecurityList(r.front.ID, func(l *core.SecurityList) { l.DisplayName = pointer(time.Now().String()) })
		})
		r.born("a")
		err := r.m.Open(r.ctx, claim("a", r.front, "ingress TCP 80 from 0.0.0.0/0"))
		var conflict *firewall.ConflictError
		if !errors.As(err, &conflict) || conflict.Target != r.front || conflict.Attempts < 5 || !errors.Is(err, oci.ErrPrecondition) {
			t.Errorf("error %v", err)
		}
		r.hasOurs("after that", r.front)
	})
}

// Many changes of one list at the same time are few writes, and nobody's is lost.
func TestJoinedWrites(t *testing.T) {
	simulate(t, func(r *rig) {
		for _, operation := range []string{"GetSecurityList", "UpdateSecurityList"} {
			r.region.Fault(ocisim.Fault{Operation: operation, Delay: 200 * time.Millisecond})
		}
		var claims []firewall.Claim
		var want []string
		for i := range 50 {
			r.born(fmt.Sprint("owner-", i))
			text := fmt.Sprintf("ingress TCP %d from 0.0.0.0/0", 1000+i)
			claims, want = append(claims, claim(fmt.Sprint("owner-", i), r.front, text)), append(want, text)
		}
		all := func(do func(c firewall.Claim) error) {
			var wg sync.WaitGroup
			for _, c := range claims {
				wg.Go(func() {
					if err := do(c); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		all(func(c firewall.Claim) error { return r.m.Open(r.ctx, c) })
		r.hasOurs("opened", r.front, want...)
		if reads, writes := r.calls("Get"), r.calls("Update"); reads != 1 || writes > 2 {
			t.Errorf("%d reads and %d writes for 50 owners", reads, writes)
		}
		all(func(c firewall.Claim) error { _, err := r.m.Settle(r.ctx, c); return err })
		r.region.ResetCalls()
		all(func(c firewall.Claim) error { _, err := r.m.Release(r.ctx, c.Owner, c); return err })
		r.hasOurs("released", r.front)
		if reads, writes := r.calls("Get"), r.calls("Update"); reads > 1 || writes > 2 {
			t.Errorf("%d reads and %d writes for the end of 50 owners", reads, writes)
		}
	})
}

// P4: after a restart, 200 owners that find everything in order cost one read for each list, and no write.
func TestUnchangedOwnersShareReads(t *testing.T) {
	simulate(t, func(r *rig) {
		targets := []firewall.Target{r.front, r.nodes}
		for i := range 2 {
			targets = append(targets, firewall.Target{Kind: firewall.SecurityList, ID: r.region.AddSecurityList(ocisim.SecurityList{VCN: r.vcn, Name: fmt.Sprint("more-", i)})})
		}
		claimOf := func(i int) firewall.Claim {
			c := firewall.Claim{Owner: fmt.Sprint("owner-", i), Rules: map[firewall.Target][]firewall.Rule{}}
			for _, t := range targets {
				c.Rules[t] = rules(fmt.Sprintf("ingress TCP %d from 0.0.0.0/0", 1000+i%10), "egress TCP 10256 to 10.0.8.0/21")
			}
			return c
		}
		for i := range 200 {
			r.born(claimOf(i).Owner)
			r.sync(claimOf(i))
		}
		r.restart()
		r.region.ResetCalls()
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() { r.sync(claimOf(i)) })
		}
		wg.Wait()
		if r.calls("") != 4 || r.calls("GetSecurityList") != 4 {
			t.Errorf("calls %v, want one read for each of 4 lists", r.region.Counts())
		}
	})
}

// C077: what does not fit is refused before anything is written, anywhere; others are not affected.
func TestLimit(t *testing.T) {
	simulate(t, func(r *rig) {
		r.somebody(r.nodes, func(l *core.SecurityList) {
			for port := len(l.IngressSecurityRules); port < 199; port++ {
				l.IngressSecurityRules = append(l.IngressSecurityRules, foreignRule(20000+port, "192.0.2.0/24"))
			}
		})
		front, nodes := r.contents(r.front), r.contents(r.nodes)
		r.born("big", 1, 2, 3, 80)
		r.born("small")
		big := claim("big", r.nodes, "ingress TCP 1 from 0.0.0.0/0", "ingress TCP 2 from 0.0.0.0/0", "ingress TCP 3 from 0.0.0.0/0", "egress TCP 1 to 0.0.0.0/0")
		big.Rules[r.front] = rules("ingress TCP 80 from 0.0.0.0/0")
		for name, do := range map[string]func() error{
			"Check": func() error { _, err := r.m.Check(r.ctx, big); return err },
			"Open":  func() error { return r.m.Open(r.ctx, big) },
		} {
			var limit *firewall.LimitError
			err := do()
			if !errors.As(err, &limit) || *limit != (firewall.LimitError{Target: r.nodes, Direction: firewall.Ingress, Limit: 200, Have: 199, Need: 202}) {
				t.Errorf("%s: error %v", name, err)
			}
		}
		r.same("refused", r.front, front)
		r.same("refused", r.nodes, nodes)
		r.sync(claim("small", r.nodes, "ingress TCP 4 from 0.0.0.0/0", "egress TCP 4 to 0.0.0.0/0"))
		r.hasOurs("one that fits", r.nodes, "ingress TCP 4 from 0.0.0.0/0", "egress TCP 4 to 0.0.0.0/0")

		// Together with one that does not fit, too.
		var wg sync.WaitGroup
		var refused error
		wg.Go(func() { refused = r.m.Open(r.ctx, big) })
		wg.Go(func() { r.sync(claim("small", r.nodes, "egress TCP 5 to 0.0.0.0/0")) })
		wg.Wait()
		if refused == nil {
			t.Error("what does not fit was not refused")
		}
		r.hasOurs("one of two", r.nodes, "egress TCP 5 to 0.0.0.0/0")
		// The limit of a list that has more rules than we know of is the cloud's affair.
		r.region.SetBehaviour(func(b *ocisim.Behaviour) { b.MaxSecurityListRules = 1000 })
		r.somebody(r.nodes, func(l *core.SecurityList) {
			for port := range 5 {
				l.IngressSecurityRules = append(l.IngressSecurityRules, foreignRule(21000+port, "192.0.2.0/24"))
			}
		})
		time.Sleep(2 * time.Minute)
		r.sync(big)
	})
}

// Rules that nobody needs any more make room.
func TestLeaksMakeRoom(t *testing.T) {
	simulate(t, func(r *rig) {
		r.somebody(r.front, func(l *core.SecurityList) {
			for port := len(l.IngressSecurityRules); port < 200; port++ {
				leaked := foreignRule(20000+port, "192.0.2.0/24")
				leaked.Description = pointer("k8s cluster-1")
				l.IngressSecurityRules = append(l.IngressSecurityRules, leaked)
			}
		})
		r.born("a")
		r.born("b")
		r.sync(claim("b", r.nodes))
		c := claim("a", r.front, "ingress TCP 80 from 0.0.0.0/0")
		var limit *firewall.LimitError
		if _, err := r.m.Check(r.ctx, c); !errors.As(err, &limit) {
			t.Errorf("there is room in a full list before its owner is known: error %v", err)
		}
		r.sync(claim("a", r.nodes))
		if err := r.m.Open(r.ctx, c); err != nil {
			t.Error(err)
		}
		r.hasOurs("room was made", r.front, "ingress TCP 80 from 0.0.0.0/0")
	})
}
