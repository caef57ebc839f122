// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"encoding/json"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// rules are those of all security lists.
func (b *bed) rules() string {
	b.t.Helper()
	var all []any
	for _, l := range b.region.SecurityLists() {
		all = append(all, l.IngressSecurityRules, l.EgressSecurityRules)
	}
	text, err := json.Marshal(all)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// Under the framework: security lists are opened for Services, with the subnets of the nodes from the inventory and the
// owners from the informer; then there is peace; two Services share rules, and the last one takes them along.
func TestRulesUnderTheFramework(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		var support *cloudprovider.ServiceSupport
		b.options.NewBalancers = func(s *cloudprovider.ServiceSupport) cloudprovider.Balancers {
			if _, known := s.Services(); known {
				t.Error("the Services are known before the informer is")
			}
			support = s
			subnet := ""
			for _, n := range b.region.Subnets() {
				if *n.DisplayName == "balancers" {
					subnet = *n.Id
				}
			}
			cfg := loadbalancer.Config{
				ClusterID: "cluster-1", CompartmentID: b.compartment, Subnet1: subnet, OperationTimeout: cloudprovider.OperationTimeout,
			}
			rules := firewall.New(firewall.Config{ClusterID: "cluster-1", KeepAnonymous: true, Owners: func() []firewall.Owner {
				services, known := s.Services()
				return loadbalancer.RuleOwners(services, known, cfg)
			}}, b.oci.Network(), b.oci.Network())
			return loadbalancer.New(cfg, loadbalancer.Deps{
				LB: b.oci.LoadBalancers(), NLB: b.oci.NetworkLoadBalancers(), Subnets: b.oci.Network(), PublicIPs: b.oci.Network(),
				Events: s.Event, Records: s, Conditions: s, Fresh: s.Fresh, Nodes: s.Nodes,
				Firewall: loadbalancer.Firewall{Rules: rules, Lists: b.oci.Network(), NodeSubnets: s.NodeSubnets},
			})
		}
		b.addWorker("w-1", "10.0.1.1")
		b.addWorker("w-2", "10.0.1.2")
		start := b.rules()
		b.startServices()
		b.addService("one")
		b.addService("two", func(s *v1.Service) { s.Spec.Ports[0].NodePort = 30081 })
		b.hold(5 * time.Minute)
		for _, name := range []string{"one", "two"} {
			if !synced(b.service(name)) {
				t.Fatalf("%s: %+v", name, b.service(name).Status)
			}
		}
		if b.rules() == start {
			t.Error("no rules were opened")
		}
		if w := b.warnings(); len(w) != 0 {
			t.Errorf("warnings: %q", w)
		}
		b.client.ClearActions()
		b.region.ResetCalls()
		b.hold(time.Hour)
		if w := b.cloudWrites(); len(w) != 0 {
			t.Errorf("writes in an hour without changes: %v", w)
		}
		// Each pass: a list of each kind of balancers and one of security lists; two lists are read.
		if n := len(b.region.Calls()); n > 7*5+2 {
			t.Errorf("%d calls in an hour: %v", n, b.region.Counts())
		}
		services, known := support.Services()
		if !known || len(services) != 2 {
			t.Errorf("%d Services, known %t", len(services), known)
		}
		node, err := b.client.CoreV1().Nodes().Get(b.ctx, "w-1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b.region.ResetCalls()
		subnets, unknown := support.NodeSubnets(b.ctx, []*v1.Node{node, {ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}})
		if subnets["w-1"] != b.nodes || len(unknown) != 1 || unknown["foreign"] == nil || len(b.region.Calls()) != 0 {
			t.Errorf("subnets %v, unknown %v, calls %v", subnets, unknown, b.region.Counts())
		}

		middle := b.rules()
		for i, name := range []string{"one", "two"} {
			b.updateService(name, func(s *v1.Service) { s.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
			b.hold(10 * time.Minute)
			if now := b.rules(); i == 0 && (now == start || now == middle) || i == 1 && now != start {
				t.Errorf("rules after the deletion of %s: %s\nat the start: %s", name, now, start)
			}
		}
	})
}
