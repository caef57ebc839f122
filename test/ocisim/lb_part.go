// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// lbPart describes the named parts of one sort that a load balancer has, and the operations on them. T is a part, C and
// U are the bodies of its create and its update.
type lbPart[T, C, U any] struct {
	one, many string // in names of operations: "Hostname", "Hostnames"
	path      string // "hostnames"; also the name of the limit of their number
	param     string // of the path: "name"
	label     string // in messages: "Hostname"

	of     func(*loadbalancer.LoadBalancer) *map[string]T
	nameOf func(*C) *string

	// check refuses a part that is not valid in its load balancer, and fills the defaults in.
	check func(cl *cloud, v *loadbalancer.LoadBalancer, name string, part *T) error
	// merge applies an update to a part; nil where an update replaces the whole.
	merge func(part *T, update *U)
	// used refuses the deletion of a part that something refers to.
	used func(cl *cloud, v *loadbalancer.LoadBalancer, name string) error
}

// item is the path of one part.
func (p lbPart[T, C, U]) item() string { return p.collection() + "/{" + p.param + "}" }

func (p lbPart[T, C, U]) collection() string { return "/{loadBalancerId}/" + p.path }

// writes are the operations that change parts.
func (p lbPart[T, C, U]) writes() []Operation {
	return []Operation{
		lbOperation("Create"+p.one, http.MethodPost, p.collection(), Use, p.create),
		lbOperation("Update"+p.one, http.MethodPut, p.item(), Use, p.update),
		lbOperation("Delete"+p.one, http.MethodDelete, p.item(), Use, p.remove),
	}
}

// reads are the operations that show parts. Most lists have no pages.
func (p lbPart[T, C, U]) reads() []Operation {
	return []Operation{
		lbOperation("Get"+p.one, http.MethodGet, p.item(), Read, func(c *call) (*answer, error) {
			return showPart(c, *p.of(loadBalancers.of(c.target)), c.param(p.param))
		}),
		lbOperation("List"+p.many, http.MethodGet, p.collection(), Read, func(c *call) (*answer, error) {
			return c.wholeList(valuesOf(*p.of(loadBalancers.of(c.target))))
		}),
	}
}

func (p lbPart[T, C, U]) create(c *call) (*answer, error) {
	d, err := decode[C](c)
	if err != nil {
		return nil, err
	}
	name := value(p.nameOf(d))
	return c.changeLoadBalancer("Create"+p.one, func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		if _, exists := (*p.of(v))[name]; exists {
			return cl.rule(PartExists, p.label, name)
		}
		return p.put(cl, v, name, recast[T](d))
	})
}

func (p lbPart[T, C, U]) update(c *call) (*answer, error) {
	d, err := decode[U](c)
	if err != nil {
		return nil, err
	}
	name := c.param(p.param)
	return c.changeLoadBalancer("Update"+p.one, func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		part, exists := (*p.of(v))[name]
		if !exists {
			return errNotFound()
		}
		if p.merge != nil {
			p.merge(&part, d)
		} else {
			part = recast[T](d)
		}
		return p.put(cl, v, name, part)
	})
}

func (p lbPart[T, C, U]) remove(c *call) (*answer, error) {
	name := c.param(p.param)
	return c.changeLoadBalancer("Delete"+p.one, func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		if _, exists := (*p.of(v))[name]; !exists {
			return errNotFound()
		}
		if p.used != nil {
			if err := p.used(cl, v, name); err != nil {
				return err
			}
		}
		delete(*p.of(v), name)
		return nil
	})
}

// put checks a part and stores it in its load balancer.
func (p lbPart[T, C, U]) put(cl *cloud, v *loadbalancer.LoadBalancer, name string, part T) error {
	if err := p.check(cl, v, name, &part); err != nil {
		return err
	}
	parts := p.of(v)
	if *parts == nil {
		*parts = map[string]T{}
	}
	(*parts)[name] = part
	return cl.balancerLimit(p.path, len(*parts))
}

// balancerLimit refuses more parts than Behaviour.BalancerLimits allows. A limit without an entry is none.
func (cl *cloud) balancerLimit(name string, n int) error {
	limit, limited := cl.behaviour.BalancerLimits[name]
	if !limited || n <= limit {
		return nil
	}
	return cl.rule(TooManyParts, limit, name)
}

// showPart answers with a part of a balancer and the etag of the whole.
func showPart[T any](c *call, parts map[string]T, name string) (*answer, error) {
	part, ok := parts[name]
	if !ok {
		return nil, errNotFound()
	}
	return c.sendOfTarget(part), nil
}

// sendOfTarget answers with a value that belongs to the target, and the target's etag.
func (c *call) sendOfTarget(v any) *answer {
	a := c.send(http.StatusOK, v)
	a.etag = c.target.etag
	return a
}

// wholeList answers with a list that has no pages.
func (c *call) wholeList(list any) (*answer, error) { return c.sendOfTarget(list), nil }

// valuesOf are the values of a map in the order of their names.
func valuesOf[T any](m map[string]T) []T {
	list := make([]T, 0, len(m))
	for _, name := range sortedKeys(m) {
		list = append(list, m[name])
	}
	return list
}

// checkPartName refuses a name that is too long or has other characters than letters, digits, dashes and underscores.
func checkPartName(label, name string, most int) error {
	if err := checkSize(label, name, 1, most); err != nil {
		return err
	}
	return checkPattern(label, name, partName)
}

// attached refuses the deletion of a part that listeners refer to.
func attached(label string, uses func(*loadbalancer.Listener, string) bool) func(*cloud, *loadbalancer.LoadBalancer, string) error {
	return func(cl *cloud, v *loadbalancer.LoadBalancer, name string) error {
		for _, l := range v.Listeners {
			if uses(&l, name) {
				return cl.rule(PartInUse, label, name)
			}
		}
		return nil
	}
}

func backendSetPart() lbPart[loadbalancer.BackendSet, loadbalancer.CreateBackendSetDetails, loadbalancer.UpdateBackendSetDetails] {
	return lbPart[loadbalancer.BackendSet, loadbalancer.CreateBackendSetDetails, loadbalancer.UpdateBackendSetDetails]{
		one: "BackendSet", many: "BackendSets", path: "backendSets", param: "backendSetName", label: "Backend set",
		of:     func(v *loadbalancer.LoadBalancer) *map[string]loadbalancer.BackendSet { return &v.BackendSets },
		nameOf: func(d *loadbalancer.CreateBackendSetDetails) *string { return d.Name },
		check:  (*cloud).checkBackendSet,
		used:   (*cloud).backendSetUsed,
	}
}

func listenerPart() lbPart[loadbalancer.Listener, loadbalancer.CreateListenerDetails, loadbalancer.UpdateListenerDetails] {
	return lbPart[loadbalancer.Listener, loadbalancer.CreateListenerDetails, loadbalancer.UpdateListenerDetails]{
		one: "Listener", many: "Listeners", path: "listeners", param: "listenerName", label: "Listener",
		of:     func(v *loadbalancer.LoadBalancer) *map[string]loadbalancer.Listener { return &v.Listeners },
		nameOf: func(d *loadbalancer.CreateListenerDetails) *string { return d.Name },
		check:  (*cloud).checkListener,
	}
}

func ruleSetPart() lbPart[loadbalancer.RuleSet, loadbalancer.CreateRuleSetDetails, loadbalancer.UpdateRuleSetDetails] {
	return lbPart[loadbalancer.RuleSet, loadbalancer.CreateRuleSetDetails, loadbalancer.UpdateRuleSetDetails]{
		one: "RuleSet", many: "RuleSets", path: "ruleSets", param: "ruleSetName", label: "Rule set",
		of:     func(v *loadbalancer.LoadBalancer) *map[string]loadbalancer.RuleSet { return &v.RuleSets },
		nameOf: func(d *loadbalancer.CreateRuleSetDetails) *string { return d.Name },
		check: func(cl *cloud, _ *loadbalancer.LoadBalancer, name string, set *loadbalancer.RuleSet) error {
			if err := checkSize("rule set name", name, 1, maxSetName); err != nil {
				return err
			}
			if len(set.Items) == 0 {
				return errMissing("items")
			}
			set.Name = common.String(name)
			for i := range set.Items {
				set.Items[i] = withRuleDefaults(set.Items[i])
			}
			return cl.balancerLimit("rules", len(set.Items))
		},
		used: func(cl *cloud, v *loadbalancer.LoadBalancer, name string) error {
			for _, l := range v.Listeners {
				if contains(l.RuleSetNames, name) {
					return cl.rule(RuleSetInUse, name)
				}
			}
			return nil
		},
	}
}

// putBackendSet and putListener store a part that a seed describes.
func (cl *cloud) putBackendSet(v *loadbalancer.LoadBalancer, name string, set loadbalancer.BackendSet) error {
	return backendSetPart().put(cl, v, name, set)
}

func (cl *cloud) putListener(v *loadbalancer.LoadBalancer, name string, l loadbalancer.Listener) error {
	return listenerPart().put(cl, v, name, l)
}
