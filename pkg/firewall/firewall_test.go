// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
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

func stripped(in []firewall.Rule) []firewall.Rule {
	out := slices.Clone(in)
	for i := range out {
		if out[i].PeerKind == firewall.PeerCIDR {
			out[i].PeerKind = ""
		}
	}
	return out
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
