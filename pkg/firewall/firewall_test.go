// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// C072: rules come before what needs them, and what was needed goes after it; at the end of the life of the owner the list
// is what it was.
func TestLifeOfAnOwner(t *testing.T) {
	simulate(t, func(r *rig) {
		before := r.contents(r.front)
		r.born("a")
		first := claim("a", r.front, "ingress TCP 443 from 0.0.0.0/0", "ingress UDP 53 from 10.1.2.3/16", "egress TCP 30080 to 10.0.8.0/21")
		changes, err := r.m.Check(r.ctx, first)
		want := "add ingress UDP 53 from 10.1.0.0/16 on " + r.front.String() + "\nadd ingress TCP 443 from 0.0.0.0/0 on " + r.front.String() +
			"\nadd egress TCP 30080 to 10.0.8.0/21 on " + r.front.String()
		if err != nil || changes.String() != want {
			t.Errorf("changes:\n%s\nerror %v, want:\n%s", changes, err, want)
		}
		r.same("after Check", r.front, before)
		r.sync(first)
		r.hasOurs("first claim", r.front, "ingress TCP 443 from 0.0.0.0/0", "ingress UDP 53 from 10.1.0.0/16", "egress TCP 30080 to 10.0.8.0/21")

		// W2: a narrowed source range closes the wide one, a moved node port the old one.
		second := claim("a", r.front, "ingress TCP 443 from 192.0.2.0/24", "egress TCP 30081 to 10.0.8.0/21")
		changes, err = r.m.Check(r.ctx, second)
		if change := changes[r.front]; err != nil || len(change.Add) != 2 || len(change.Remove) != 3 {
			t.Errorf("changes %v, error %v", changes, err)
		}
		if err := r.m.Open(r.ctx, second); err != nil {
			t.Fatal(err)
		}
		r.hasOurs("both claims", r.front, "ingress TCP 443 from 0.0.0.0/0", "ingress UDP 53 from 10.1.0.0/16", "egress TCP 30080 to 10.0.8.0/21",
			"ingress TCP 443 from 192.0.2.0/24", "egress TCP 30081 to 10.0.8.0/21")
		if _, err := r.m.Settle(r.ctx, second); err != nil {
			t.Fatal(err)
		}
		r.hasOurs("second claim", r.front, "ingress TCP 443 from 192.0.2.0/24", "egress TCP 30081 to 10.0.8.0/21")

		// Settled, nothing is written or read within a minute.
		r.region.ResetCalls()
		changes, err = r.m.Check(r.ctx, second)
		if len(changes) != 0 || err != nil {
			t.Errorf("changes of a settled claim: %s, error %v", changes, err)
		}
		r.sync(second)
		if n := r.calls(""); n != 0 {
			t.Errorf("%d calls for an unchanged claim: %v", n, r.region.Counts())
		}
		time.Sleep(61 * time.Second)
		r.sync(second)
		if n := r.calls(""); n != 1 || r.calls("Get") != 1 {
			t.Errorf("calls a minute later: %v", r.region.Counts())
		}

		// Another list: the old one is left as it was found.
		third := claim("a", r.nodes, "ingress TCP 30081 from 10.0.0.0/24")
		r.sync(third)
		r.same("left", r.front, before)
		nodes := r.contents(r.nodes)
		r.release(claim("a", r.nodes))
		r.hasOurs("released", r.nodes)
		if nodes == r.contents(r.nodes) {
			t.Error("nothing was removed")
		}
	})
}

// C070: a rule that several owners need lives until the last one is gone, in whatever order they go; the operator's own
// rule, which does what is needed, is used, and survives them all.
func TestSharedRule(t *testing.T) {
	for _, order := range [][]string{{"a", "b", "c"}, {"a", "c", "b"}, {"b", "a", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"c", "b", "a"}} {
		t.Run(strings.Join(order, ""), func(t *testing.T) {
			simulate(t, func(r *rig) {
				r.somebody(r.front, func(l *core.SecurityList) {
					l.IngressSecurityRules = append(l.IngressSecurityRules, foreignRule(443, "0.0.0.0/0"))
				})
				before := r.contents(r.front)
				shared := []string{"ingress TCP 443 from 0.0.0.0/0", "egress TCP 10256 to 10.0.8.0/21", "ingress TCP 443 from 198.51.100.0/24"}
				for _, owner := range order {
					r.born(owner)
				}
				for _, owner := range []string{"a", "b", "c"} {
					r.sync(claim(owner, r.front, shared...))
				}
				for i, owner := range order {
					r.hasOurs(fmt.Sprint("before deletion ", i), r.front, "egress TCP 10256 to 10.0.8.0/21")
					r.release(claim(owner, r.front, shared...))
				}
				r.same("all deleted", r.front, before)
			})
		})
	}
}

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

func stripped(in []firewall.Rule) []firewall.Rule {
	out := slices.Clone(in)
	for i := range out {
		if out[i].PeerKind == firewall.PeerCIDR {
			out[i].PeerKind = ""
		}
	}
	return out
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

// What the existing implementation wrote has no description: it is used, and kept and reported, or removed.
func TestAnonymousRules(t *testing.T) {
	for _, keep := range []bool{true, false} {
		t.Run(fmt.Sprint("keep ", keep), func(t *testing.T) {
			simulate(t, func(r *rig) {
				untouched := r.contents(r.front)
				r.somebody(r.front, func(l *core.SecurityList) {
					described := foreignRule(80, "10.0.0.0/8")
					described.Description = pointer("of a person")
					l.IngressSecurityRules = append(l.IngressSecurityRules, foreignRule(80, "0.0.0.0/0"), foreignRule(443, "0.0.0.0/0"), described)
				})
				taken := r.contents(r.front)
				r.born("a")
				legacy := map[firewall.Target][]firewall.Rule{r.front: rules(
					"ingress TCP 80 from 0.0.0.0/0", "ingress TCP 443 from 0.0.0.0/0", "ingress TCP 80 from 10.0.0.0/8", "ingress TCP 8080 from 0.0.0.0/0", "ingress TCP 22 from 0.0.0.0/0")}
				c := claim("a", r.front, "ingress TCP 80 from 0.0.0.0/0", "ingress TCP 443 from 0.0.0.0/0", "ingress TCP 22 from 0.0.0.0/0")
				c.Legacy = legacy
				r.sync(c)
				r.same("taken over", r.front, taken)
				r.born("b")
				r.sync(claim("b", r.front, "ingress TCP 443 from 0.0.0.0/0"))

				report := r.sync(claim("a", r.front, "ingress TCP 80 from 192.0.2.0/24", "ingress TCP 22 from 0.0.0.0/0"))
				r.hasOurs("narrowed", r.front, "ingress TCP 80 from 192.0.2.0/24")
				kept := stripped(report.Kept[r.front])
				if keep != cmp.Equal(kept, rules("ingress TCP 80 from 0.0.0.0/0")) || !keep && (len(kept) > 0 || len(report.Changed[r.front].Remove) != 1) {
					t.Errorf("report %+v", report)
				}
				r.release(claim("b", r.front))
				r.sweep(firewall.SecurityList)
				r.sync(claim("a", r.front, "ingress TCP 22 from 0.0.0.0/0"))
				if keep {
					r.same("kept", r.front, taken)
					return
				}
				r.somebody(r.front, func(l *core.SecurityList) { // what a person has made is all that is left
					l.IngressSecurityRules = l.IngressSecurityRules[:len(l.IngressSecurityRules)-1]
				})
				r.same("removed", r.front, untouched)
			}, func(c *firewall.Config) { c.KeepAnonymous = keep })
		})
	}
}

// Rules with our description that somebody made something else are left alone and reported; what we need is made again.
// Those of another cluster are not ours, and not used.
func TestRulesOfOthers(t *testing.T) {
	simulate(t, func(r *rig) {
		r.born("a")
		c := claim("a", r.front, "ingress TCP 80 from 0.0.0.0/0", "ingress TCP 81 from 0.0.0.0/0", "ingress TCP 82 from 0.0.0.0/0")
		r.sync(c)
		r.somebody(r.front, func(l *core.SecurityList) {
			for i, rule := range l.IngressSecurityRules {
				if rule.Description == nil || *rule.Description != "k8s cluster-1" {
					continue
				}
				switch *rule.TcpOptions.DestinationPortRange.Min {
				case 80:
					l.IngressSecurityRules[i].TcpOptions.DestinationPortRange.Max = pointer(89)
				case 81:
					l.IngressSecurityRules[i].IsStateless = pointer(true)
				case 82:
					l.IngressSecurityRules[i].Description = pointer("k8s cluster-2")
				}
			}
			l.IngressSecurityRules = append(l.IngressSecurityRules, foreignRule(83, "2001:0DB8::/32"), foreignRule(84, "10.9.8.7/16"))
		})
		edited := r.contents(r.front)
		time.Sleep(2 * time.Minute)
		c.Rules[r.front] = append(c.Rules[r.front], rules("ingress TCP 83 from 2001:db8::/32", "ingress TCP 84 from 10.9.0.0/16")...)
		report := r.sync(c)
		if diff := cmp.Diff([]string{"ingress TCP 80-89 from 0.0.0.0/0", "ingress TCP 81 from 0.0.0.0/0 stateless"}, report.Edited[r.front]); diff != "" {
			t.Errorf("edited (-want +got):\n%s", diff)
		}
		r.hasOurs("made again", r.front, "ingress TCP 80 from 0.0.0.0/0 up to 89", "ingress TCP 80 from 0.0.0.0/0",
			"ingress TCP 81 from 0.0.0.0/0", "ingress TCP 81 from 0.0.0.0/0", "ingress TCP 82 from 0.0.0.0/0", "ingress TCP 82 from 0.0.0.0/0")
		r.release(c)
		r.same("released", r.front, edited)
	})
}

// A cluster that has no identity removes only what it has claimed itself.
func TestWithoutIdentity(t *testing.T) {
	simulate(t, func(r *rig) {
		r.somebody(r.front, func(l *core.SecurityList) {
			other := foreignRule(9000, "0.0.0.0/0")
			other.Description = pointer("k8s")
			l.IngressSecurityRules = append(l.IngressSecurityRules, other)
		})
		before := r.contents(r.front)
		r.born("a")
		c := claim("a", r.front, "ingress TCP 80 from 0.0.0.0/0")
		r.sync(c)
		if r.contents(r.front) == before {
			t.Error("nothing was added")
		}
		r.sweep(firewall.SecurityList)
		r.restart()
		r.release(c)
		r.same("released", r.front, before)
	}, func(c *firewall.Config) { c.ClusterID = "" })
}

// C051: where a policy is missing, the error names the statement, for each of the calls.
func TestMissingPolicy(t *testing.T) {
	tests := []struct {
		verb ocisim.Verb
		kind firewall.TargetKind
		want string
	}{
		{ocisim.Read, firewall.SecurityList, "manage security-lists"},
		{ocisim.Manage, firewall.SecurityList, "manage security-lists"},
		{ocisim.Read, firewall.NSG, "manage network-security-groups"},
		{ocisim.Use, firewall.NSG, "manage network-security-groups"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.verb, " ", tt.kind), func(t *testing.T) {
			simulate(t, func(r *rig) {
				target := map[firewall.TargetKind]firewall.Target{firewall.SecurityList: r.front, firewall.NSG: r.group}[tt.kind]
				resource := map[firewall.TargetKind]string{firewall.SecurityList: "security-lists", firewall.NSG: "network-security-groups"}[tt.kind]
				allow := r.region.Deny(ocisim.Policy{Verb: tt.verb, ResourceType: resource})
				before := r.contents(target)
				r.born("a")
				c := claim("a", target, "ingress TCP 80 from 0.0.0.0/0")
				err := r.m.Open(r.ctx, c)
				var access *firewall.AccessError
				if !errors.As(err, &access) || access.Target != target || !strings.Contains(access.Statement, tt.want) || !errors.Is(err, oci.ErrNotFound) ||
					!strings.Contains(err.Error(), access.Statement) {
					t.Errorf("error %v", err)
				}
				if _, err := r.m.Settle(r.ctx, c); !errors.As(err, &access) {
					t.Errorf("settle: error %v", err)
				}
				if _, err := r.m.Release(r.ctx, "a", c); tt.verb == ocisim.Read && !errors.As(err, &access) {
					t.Errorf("release: error %v", err)
				}
				r.same("denied", target, before)
				allow()
				r.sync(c)
				if len(r.ours(target)) != 1 {
					t.Errorf("allowed again: %v", r.ours(target))
				}
			})
		})
	}
}

// A sweep that may not look says so, and does what it can elsewhere.
func TestSweepWithoutPolicy(t *testing.T) {
	for _, kind := range []firewall.TargetKind{firewall.SecurityList, firewall.NSG} {
		simulate(t, func(r *rig) {
			r.region.Fault(ocisim.Fault{Operation: map[firewall.TargetKind]string{firewall.SecurityList: "ListSecurityLists", firewall.NSG: "ListNetworkSecurityGroups"}[kind], Status: 404, Nth: 1})
			r.somebody(r.front, func(l *core.SecurityList) {
				leaked := foreignRule(80, "0.0.0.0/0")
				leaked.Description = pointer("k8s cluster-1")
				l.IngressSecurityRules = append(l.IngressSecurityRules, leaked)
			})
			place := firewall.Place{CompartmentID: r.compartment, VCNID: r.vcn}
			_, err := r.m.Sweep(r.ctx, kind, place, place)
			var access *firewall.AccessError
			if !errors.As(err, &access) || access.Target.Kind != kind {
				t.Errorf("%s: error %v", kind, err)
			}
			if kind == firewall.SecurityList {
				r.hasOurs("swept", r.front)
			}
		})
	}
}

// Errors are read by the users of Services, in events.
func TestErrorTexts(t *testing.T) {
	simulate(t, func(r *rig) {
		r.born("a")
		r.region.Fault(ocisim.Fault{Operation: "UpdateSecurityList", Status: 412, Code: "NoEtagMatch", Message: "changed", Nth: 1, Times: 12})
		err := r.m.Open(r.ctx, claim("a", r.front, "ingress TCP 80 from 0.0.0.0/0"))
		if want := r.front.String() + " was changed by others during each of 12 attempts: virtualnetwork UpdateSecurityList: 412 NoEtagMatch: changed"; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got  %v\nwant %s…", err, want)
		}
		r.region.Fault(ocisim.Fault{Operation: "UpdateSecurityList", Status: 400, Code: "LimitExceeded", Message: "rules", Nth: 1})
		err = r.m.Open(r.ctx, claim("a", r.front, "ingress TCP 80 from 0.0.0.0/0"))
		if want := r.front.String() + ": virtualnetwork UpdateSecurityList: 400 LimitExceeded: rules"; err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, oci.ErrLimitExceeded) {
			t.Errorf("got  %v\nwant %s…", err, want)
		}
		r.region.Fault(ocisim.Fault{Operation: "UpdateSecurityList", Status: 404, Nth: 1})
		err = r.m.Open(r.ctx, claim("a", r.front, "ingress TCP 80 from 0.0.0.0/0"))
		if err == nil || !strings.HasPrefix(err.Error(), r.front.String()+": virtualnetwork UpdateSecurityList: 404 ") ||
			!strings.HasSuffix(err.Error(), "; if it exists, the policy lacks: Allow <subject> to manage security-lists in compartment <compartment of the security list>") {
			t.Errorf("got %v", err)
		}
		for e, want := range map[*firewall.LimitError]string{
			{Target: firewall.Target{Kind: firewall.SecurityList, ID: "l"}, Direction: firewall.Egress, Limit: 200, Have: 199, Need: 202}: "security list l has 199 egress rules, and would need 202, but can have 200",
			{Target: firewall.Target{Kind: firewall.NSG, ID: "g"}, Limit: 120, Have: 1, Need: 121}:                                        "network security group g has 1 rules, and would need 121, but can have 120",
		} {
			if e.Error() != want {
				t.Errorf("got  %v\nwant %s", e, want)
			}
		}
	})
}

// A 404 is no absence: only a list that is proven to be gone is given up. One that nobody could ever read is, too, once no
// owner names it.
func TestTargetThatIsGone(t *testing.T) {
	simulate(t, func(r *rig) {
		r.born("a")
		r.sync(claim("a", r.nodes, "ingress TCP 80 from 0.0.0.0/0"))
		allow := r.region.Deny(ocisim.Policy{ResourceType: "security-lists", Verb: ocisim.Inspect})
		time.Sleep(2 * time.Minute)
		if _, err := r.m.Release(r.ctx, "a", firewall.Claim{Owner: "a"}); !errors.Is(err, oci.ErrNotFound) {
			t.Errorf("denied: error %v", err)
		}
		allow()
		if err := r.region.Foreign().Delete(r.nodes.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := r.m.Release(r.ctx, "a", claim("a", r.nodes)); err != nil {
			t.Errorf("gone: error %v", err)
		}
		if _, err := r.m.Check(r.ctx, claim("a", r.nodes, "ingress TCP 80 from 0.0.0.0/0")); !errors.Is(err, oci.ErrNotFound) {
			t.Errorf("needed and gone: error %v", err)
		}

		mistake := firewall.Target{Kind: firewall.SecurityList, ID: "ocid1.securitylist.oc1.iad.mistake"}
		if _, err := r.m.Settle(r.ctx, claim("b", mistake, "ingress TCP 80 from 0.0.0.0/0")); !errors.Is(err, oci.ErrNotFound) {
			t.Errorf("mistake: error %v", err)
		}
		if _, err := r.m.Settle(r.ctx, claim("b", r.front, "ingress TCP 80 from 0.0.0.0/0")); err != nil {
			t.Errorf("mended: error %v", err)
		}
	})
}

// A caller who gives up does not stop the work for others, and is not kept waiting.
func TestCallerGivesUp(t *testing.T) {
	simulate(t, func(r *rig) {
		r.region.Fault(ocisim.Fault{Operation: "UpdateSecurityList", Delay: 10 * time.Second})
		r.born("a")
		r.born("b")
		ctx, cancel := context.WithTimeout(r.ctx, time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			started := time.Now()
			err := r.m.Open(ctx, claim("a", r.front, "ingress TCP 80 from 0.0.0.0/0"))
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(started) > 2*time.Second {
				t.Errorf("error %v after %v", err, time.Since(started))
			}
		})
		wg.Go(func() {
			time.Sleep(500 * time.Millisecond) // the first one is being written
			if err := r.m.Open(r.ctx, claim("b", r.front, "ingress TCP 81 from 0.0.0.0/0")); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		r.hasOurs("both", r.front, "ingress TCP 80 from 0.0.0.0/0", "ingress TCP 81 from 0.0.0.0/0")
	})
}

func TestInvalidClaims(t *testing.T) {
	simulate(t, func(r *rig) {
		good := rules("ingress TCP 80 from 0.0.0.0/0")[0]
		for name, spoil := range map[string]func(*firewall.Rule){
			"port 0":        func(x *firewall.Rule) { x.Port = 0 },
			"port 65536":    func(x *firewall.Rule) { x.Port = 65536 },
			"address":       func(x *firewall.Rule) { x.Peer = "10.0.0.1" },
			"protocol":      func(x *firewall.Rule) { x.Protocol = "132" },
			"direction":     func(x *firewall.Rule) { x.Direction = "" },
			"kind of peer":  func(x *firewall.Rule) { x.PeerKind = oci.PeerService },
			"group as peer": func(x *firewall.Rule) { x.PeerKind, x.Peer = firewall.PeerNSG, r.group.ID },
		} {
			bad := good
			spoil(&bad)
			c := firewall.Claim{Owner: "a", Rules: map[firewall.Target][]firewall.Rule{r.front: {good, bad}}}
			if err := r.m.Open(r.ctx, c); !errors.Is(err, firewall.ErrInvalidRule) {
				t.Errorf("%s: error %v", name, err)
			}
			if _, err := r.m.Settle(r.ctx, c); !errors.Is(err, firewall.ErrInvalidRule) {
				t.Errorf("%s: error %v", name, err)
			}
		}
		if n := r.calls(""); n != 0 {
			t.Errorf("calls %v", r.region.Counts())
		}
	})
}
