// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

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
