// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// rulesOfOurs are the rules in security lists that the program says it has made: "load-balancers ingress 80".
func (l *lab) rulesOfOurs() []string {
	var rules []string
	add := func(list, direction string, port int, description *string) {
		if description != nil && (*description == oracle.ListRuleMark || strings.HasPrefix(*description, oracle.ListRuleMark+" ")) {
			rules = append(rules, fmt.Sprintf("%s %s %d", list, direction, port))
		}
	}
	for _, list := range l.Region.SecurityLists() {
		for _, r := range list.IngressSecurityRules {
			if r.TcpOptions != nil {
				add(*list.DisplayName, "ingress", *r.TcpOptions.DestinationPortRange.Min, r.Description)
			}
		}
		for _, r := range list.EgressSecurityRules {
			if r.TcpOptions != nil {
				add(*list.DisplayName, "egress", *r.TcpOptions.DestinationPortRange.Min, r.Description)
			}
		}
	}
	slices.Sort(rules)
	return rules
}

// wantRules waits for exactly these rules of ours.
func (l *lab) wantRules(rules ...string) {
	l.t.Helper()
	slices.Sort(rules)
	l.until("security rules", func() (bool, string) {
		got := l.rulesOfOurs()
		return slices.Equal(got, rules), strings.Join(got, "; ")
	})
}

// listRules are the rules that one LB with a port needs by default.
func listRules(port, nodePort int32) []string {
	rules := []string{fmt.Sprintf("load-balancers ingress %d", port)}
	for _, p := range []int32{nodePort, 10256} {
		rules = append(rules, fmt.Sprintf("load-balancers egress %d", p), fmt.Sprintf("nodes ingress %d", p))
	}
	return rules
}

// TestDefaultRules: of load balancers security lists are kept in step by default, of network load balancers they are not. Two
// Services share rules; the last one takes them along, and the rules of others stay as they are.
func TestDefaultRules(t *testing.T) {
	l := newLab(t, testbed.Options{}).ready()
	lists := l.Region.SecurityLists()
	l.service("n", "nlb", nil)
	l.served("n")
	l.wantRules()
	l.service("a", "lb", nil)
	l.service("b", "lb", nil)
	a, b := l.served("a"), l.served("b")
	both := slices.Concat(listRules(80, a.Spec.Ports[0].NodePort), listRules(80, b.Spec.Ports[0].NodePort))
	slices.Sort(both)
	l.wantRules(slices.Compact(both)...)

	l.edit("a", func(svc *v1.Service) { svc.Spec.Ports[0].Port = 81 })
	l.wantRules(slices.Compact(slices.Sorted(slices.Values(slices.Concat(
		listRules(81, a.Spec.Ports[0].NodePort), listRules(80, b.Spec.Ports[0].NodePort)))))...)
	l.gone("a")
	l.wantRules(listRules(80, b.Spec.Ports[0].NodePort)...)
	for _, name := range []string{"b", "n"} {
		l.gone(name)
	}
	l.empty()
	if diff := cmp.Diff(lists, l.Region.SecurityLists()); diff != "" {
		t.Errorf("the security lists are not what they were (-before +now):\n%s", diff)
	}
	l.onlyTheServiceAccount()
}

// TestC072RulesWithoutAService: a Service goes while no process runs, with its finalizer taken off by hand and its balancer
// deleted in the console. The next process finds no Service at all, and removes the rules in its first pass.
func TestC072RulesWithoutAService(t *testing.T) {
	l := newLab(t, testbed.Options{}).ready()
	lists := l.Region.SecurityLists()
	l.service("a", "lb", nil)
	l.served("a")
	l.settled()
	l.ccm.Kill()
	l.edit("a", func(svc *v1.Service) { svc.Finalizers = nil })
	l.gone("a")
	if err := l.Region.Foreign().Delete(*l.Region.LoadBalancers()[0].Id); err != nil {
		t.Fatal(err)
	}
	if len(l.rulesOfOurs()) == 0 {
		t.Fatal("no rule is left over, so that there is nothing to see")
	}
	before := l.calls(writes)
	l.run("--oci-service-resync-period=2s")
	l.wantRules()
	l.settled()
	if diff := cmp.Diff(lists, l.Region.SecurityLists()); diff != "" {
		t.Errorf("the security lists are not what they were (-before +now):\n%s", diff)
	}
	if n := l.calls(writes) - before; n != 2 {
		t.Errorf("%d writes, want one to each of the two lists:\n%s", n, l.CallLog(10))
	}
	l.onlyTheServiceAccount()
}

// TestC026KilledInADeletion: the process is killed while it closes rules, and the next one when it has deleted the balancer;
// each time the finalizer says that there is more to do, and in the end nothing is left.
func TestC026KilledInADeletion(t *testing.T) {
	l := newLab(t, testbed.Options{}).ready()
	lists := l.Region.SecurityLists()
	l.service("a", "lb", nil)
	l.served("a")
	l.settled()
	// killAt lets the next process be killed, once it is known, when an operation of it has been applied.
	killAt := func(operation string) (next chan *testbed.CCM, wait func()) {
		next, killed := make(chan *testbed.CCM, 1), make(chan struct{})
		l.Region.Foreign().After(ocisim.Trigger{Operation: operation}, func(*ocisim.Foreign, ocisim.Call) {
			(<-next).Kill()
			close(killed)
		})
		return next, func() {
			l.t.Helper()
			l.until("killed after "+operation, func() (bool, string) {
				select {
				case <-killed:
					return true, ""
				default:
					return false, l.CallLog(5)
				}
			})
			if len(l.get("a").Finalizers) == 0 {
				t.Errorf("the finalizer is gone after %s", operation)
			}
		}
	}
	next, wait := killAt("UpdateSecurityList")
	next <- l.ccm
	l.delete("a")
	wait()
	next, wait = killAt("DeleteLoadBalancer")
	next <- l.run().ccm
	wait()
	l.run()
	l.eventually("a is gone", func(ctx ctxT) error { return l.ServiceGone(ctx, v1.NamespaceDefault, "a") })
	l.wantRules()
	l.empty()
	if diff := cmp.Diff(lists, l.Region.SecurityLists()); diff != "" {
		t.Errorf("the security lists are not what they were (-before +now):\n%s", diff)
	}
}
