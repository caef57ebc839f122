// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// loadBalancerPartOperations are the operations on what a load balancer is made of.
func loadBalancerPartOperations() []Operation {
	sets, rules, hosts := backendSetPart(), ruleSetPart(), hostnamePart()
	policies, routes, suites := routingPolicyPart(), pathRouteSetPart(), cipherSuitePart()
	pagedPolicies := policies.reads()
	pagedPolicies[1].Query = "limit,page"
	pagedPolicies[1].handle = listRoutingPolicies
	certificates := "/{loadBalancerId}/certificates"
	var all []Operation
	for _, list := range [][]Operation{
		sets.writes(), sets.reads(), loadBalancerBackendOperations(),
		listenerPart().writes(),
		{lbOperation("ListListenerRules", http.MethodGet, "/{loadBalancerId}/listeners/{listenerName}/rules", Read, listListenerRules)},
		{
			lbOperation("ListCertificates", http.MethodGet, certificates, Read, func(c *call) (*answer, error) {
				return c.wholeList(valuesOf(loadBalancers.of(c.target).Certificates))
			}),
			lbOperation("CreateCertificate", http.MethodPost, certificates, Use, createCertificate),
			lbOperation("DeleteCertificate", http.MethodDelete, certificates+"/{certificateName}", Use, deleteCertificate),
		},
		rules.writes(), rules.reads(), hosts.writes(), hosts.reads(), policies.writes(), pagedPolicies,
		routes.writes(), routes.reads(), suites.writes(), suites.reads(),
	} {
		all = append(all, list...)
	}
	for i := range all {
		switch all[i].Name {
		case "CreateRoutingPolicy", "UpdateRoutingPolicy":
			all[i].Partial = "of the conditions only quotes and brackets are checked"
		case "CreateRuleSet", "UpdateRuleSet":
			all[i].Partial = "what a rule says is kept, not checked"
		}
	}
	return all
}

// backendSetUsed refuses the deletion of a backend set that something sends traffic to.
func (cl *cloud) backendSetUsed(v *loadbalancer.LoadBalancer, name string) error {
	for _, l := range sortedKeys(v.Listeners) {
		if value(v.Listeners[l].DefaultBackendSetName) == name {
			if err := cl.rule(BackendSetInUse, name, "listener", l); err != nil {
				return err
			}
		}
	}
	for _, p := range sortedKeys(v.RoutingPolicies) {
		for _, rule := range v.RoutingPolicies[p].Rules {
			if contains(routingTargets(rule), name) {
				if err := cl.rule(BackendSetInUse, name, "routing policy", p); err != nil {
					return err
				}
			}
		}
	}
	for _, s := range sortedKeys(v.PathRouteSets) {
		for _, route := range v.PathRouteSets[s].PathRoutes {
			if value(route.BackendSetName) == name {
				if err := cl.rule(BackendSetInUse, name, "path route set", s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// listListenerRules lists the rules of all rule sets of a listener.
func listListenerRules(c *call) (*answer, error) {
	v := loadBalancers.of(c.target)
	l, exists := v.Listeners[c.param("listenerName")]
	if !exists {
		return nil, errNotFound()
	}
	list := []loadbalancer.ListenerRuleSummary{}
	for _, name := range l.RuleSetNames {
		for _, rule := range v.RuleSets[name].Items {
			list = append(list, loadbalancer.ListenerRuleSummary{Rule: rule, RuleSetName: &name})
		}
	}
	return c.wholeList(list)
}

func listRoutingPolicies(c *call) (*answer, error) {
	policies := loadBalancers.of(c.target).RoutingPolicies
	a, err := c.listParts(sortedKeys(policies), func(name string) any { return policies[name] }, false)
	if err == nil {
		a.etag = c.target.etag
	}
	return a, err
}
