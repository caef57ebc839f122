// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
)

// RuleOwners returns who may need security rules, of the Services of a cluster: those that want a balancer, and those that
// have to be rid of one. Where the Services are not known, it is somebody who may need any.
func RuleOwners(svcs []*v1.Service, known bool, cfg Config) []firewall.Owner {
	if !known {
		return []firewall.Owner{{ID: "unknown Services"}}
	}
	var owners []firewall.Owner
	for _, svc := range svcs {
		wants := svc.Spec.Type == v1.ServiceTypeLoadBalancer && svc.Spec.LoadBalancerClass == nil
		if wants && svc.DeletionTimestamp == nil || slices.Contains(svc.Finalizers, cleanupFinalizer) {
			owners = append(owners, firewall.Owner{ID: string(svc.UID), MayNeed: mayNeed(svc, cfg)})
		}
	}
	return owners
}

// mayNeed says which rules a Service can possibly need: those for ports that it has, or had when it was last in order. One
// of which nothing is recorded, and that has no rules managed, needs none, and what the existing implementation wrote for it
// does not carry our mark.
func mayNeed(svc *v1.Service, cfg Config) func(firewall.Rule) bool {
	var ports map[int]bool // made when it is asked for the first time: most Services never are
	return func(r firewall.Rule) bool {
		if ports == nil {
			ports = portsOf(svc)
			settings, _ := ParseAnnotations(svc.Annotations, WantedKind(svc.Annotations))
			if lastApplied(svc).Rules == nil && chooseRules(settings, cfg).Mode == RulesNone {
				ports = map[int]bool{}
			}
		}
		return ports[r.Port]
	}
}

func portsOf(svc *v1.Service) map[int]bool {
	ports := map[int]bool{kubeProxyHealthPort: true, checker(svc).Port: true}
	for _, p := range svc.Spec.Ports {
		ports[int(p.Port)], ports[int(p.NodePort)] = true, true
	}
	applied := lastApplied(svc).Rules
	if applied == nil {
		return ports
	}
	for _, n := range append(applied.unkempt(), applied.Need) {
		ports[n.HealthPort] = true
		for _, p := range n.Ports {
			ports[p.Port], ports[p.NodePort] = true, true
		}
	}
	return ports
}
