// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"slices"

	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// loadBalancerPartOperations are the operations on backend sets, listeners, certificates and rule sets.
func loadBalancerPartOperations() []Operation {
	const (
		sets         = "/{loadBalancerId}/backendSets"
		listeners    = "/{loadBalancerId}/listeners"
		certificates = "/{loadBalancerId}/certificates"
		ruleSets     = "/{loadBalancerId}/ruleSets"
	)
	return []Operation{
		lbOperation("CreateBackendSet", http.MethodPost, sets, Use, createBackendSet),
		lbOperation("UpdateBackendSet", http.MethodPut, sets+"/{backendSetName}", Use, updateBackendSet),
		lbOperation("DeleteBackendSet", http.MethodDelete, sets+"/{backendSetName}", Use, deleteBackendSet),
		lbOperation("GetBackendSet", http.MethodGet, sets+"/{backendSetName}", Read, func(c *call) (*answer, error) {
			return showPart(c, loadBalancers.of(c.target).BackendSets, c.param("backendSetName"))
		}),
		lbOperation("CreateListener", http.MethodPost, listeners, Use, createListener),
		lbOperation("UpdateListener", http.MethodPut, listeners+"/{listenerName}", Use, updateListener),
		lbOperation("DeleteListener", http.MethodDelete, listeners+"/{listenerName}", Use, deleteListener),
		lbOperation("ListCertificates", http.MethodGet, certificates, Read, listCertificates),
		lbOperation("CreateCertificate", http.MethodPost, certificates, Use, createCertificate),
		lbOperation("DeleteCertificate", http.MethodDelete, certificates+"/{certificateName}", Use, deleteCertificate),
		lbOperation("CreateRuleSet", http.MethodPost, ruleSets, Use, createRuleSet),
		lbOperation("UpdateRuleSet", http.MethodPut, ruleSets+"/{ruleSetName}", Use, updateRuleSet),
		lbOperation("DeleteRuleSet", http.MethodDelete, ruleSets+"/{ruleSetName}", Use, deleteRuleSet),
	}
}

// showPart answers with a part of a balancer and the etag of the whole.
func showPart[T any](c *call, parts map[string]T, name string) (*answer, error) {
	part, ok := parts[name]
	if !ok {
		return nil, errNotFound()
	}
	a := c.send(http.StatusOK, part)
	a.etag = c.target.etag
	return a, nil
}

func createBackendSet(c *call) (*answer, error) {
	d, err := decode[loadbalancer.CreateBackendSetDetails](c)
	if err != nil {
		return nil, err
	}
	return c.changeLoadBalancer("CreateBackendSet", func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		if _, exists := v.BackendSets[value(d.Name)]; exists {
			return cl.rule(PartExists, "Backend set", value(d.Name))
		}
		return cl.putBackendSet(v, value(d.Name), recast[loadbalancer.BackendSet](d))
	})
}

func updateBackendSet(c *call) (*answer, error) {
	d, err := decode[loadbalancer.UpdateBackendSetDetails](c)
	if err != nil {
		return nil, err
	}
	name := c.param("backendSetName")
	return c.changeLoadBalancer("UpdateBackendSet", func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		if _, exists := v.BackendSets[name]; !exists {
			return errNotFound()
		}
		return cl.putBackendSet(v, name, recast[loadbalancer.BackendSet](d))
	})
}

func deleteBackendSet(c *call) (*answer, error) {
	name := c.param("backendSetName")
	return c.changeLoadBalancer("DeleteBackendSet", func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		if _, exists := v.BackendSets[name]; !exists {
			return errNotFound()
		}
		for _, l := range sortedKeys(v.Listeners) {
			if value(v.Listeners[l].DefaultBackendSetName) == name {
				if err := cl.rule(BackendSetInUse, name, l); err != nil {
					return err
				}
			}
		}
		delete(v.BackendSets, name)
		return nil
	})
}

func createListener(c *call) (*answer, error) {
	d, err := decode[loadbalancer.CreateListenerDetails](c)
	if err != nil {
		return nil, err
	}
	return c.changeLoadBalancer("CreateListener", func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		if _, exists := v.Listeners[value(d.Name)]; exists {
			return cl.rule(PartExists, "Listener", value(d.Name))
		}
		return cl.putListener(v, value(d.Name), recast[loadbalancer.Listener](d))
	})
}

func updateListener(c *call) (*answer, error) {
	d, err := decode[loadbalancer.UpdateListenerDetails](c)
	if err != nil {
		return nil, err
	}
	name := c.param("listenerName")
	return c.changeLoadBalancer("UpdateListener", func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		if _, exists := v.Listeners[name]; !exists {
			return errNotFound()
		}
		return cl.putListener(v, name, recast[loadbalancer.Listener](d))
	})
}

func deleteListener(c *call) (*answer, error) {
	name := c.param("listenerName")
	return c.changeLoadBalancer("DeleteListener", func(_ *cloud, v *loadbalancer.LoadBalancer) error {
		if _, exists := v.Listeners[name]; !exists {
			return errNotFound()
		}
		delete(v.Listeners, name)
		return nil
	})
}

func listCertificates(c *call) (*answer, error) {
	v := loadBalancers.of(c.target)
	list := make([]loadbalancer.Certificate, 0, len(v.Certificates))
	for _, name := range sortedKeys(v.Certificates) {
		list = append(list, v.Certificates[name])
	}
	a := c.send(http.StatusOK, list)
	a.etag = c.target.etag
	return a, nil
}

func createCertificate(c *call) (*answer, error) {
	d, err := decode[loadbalancer.CreateCertificateDetails](c)
	if err != nil {
		return nil, err
	}
	details := recast[loadbalancer.CertificateDetails](d)
	return c.changeLoadBalancer("CreateCertificate", func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		if _, exists := v.Certificates[value(d.CertificateName)]; exists {
			return cl.rule(PartExists, "Certificate", value(d.CertificateName))
		}
		return cl.putCertificate(v, details)
	})
}

func deleteCertificate(c *call) (*answer, error) {
	name := c.param("certificateName")
	return c.changeLoadBalancer("DeleteCertificate", func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		if _, exists := v.Certificates[name]; !exists {
			return errNotFound()
		}
		uses := func(ssl *loadbalancer.SslConfiguration) bool {
			return ssl != nil && value(ssl.CertificateName) == name
		}
		for _, l := range v.Listeners {
			if uses(l.SslConfiguration) {
				return cl.rule(CertificateInUse, name)
			}
		}
		for _, s := range v.BackendSets {
			if uses(s.SslConfiguration) {
				return cl.rule(CertificateInUse, name)
			}
		}
		delete(v.Certificates, name)
		return nil
	})
}

func createRuleSet(c *call) (*answer, error) {
	d, err := decode[loadbalancer.CreateRuleSetDetails](c)
	if err != nil {
		return nil, err
	}
	return c.changeLoadBalancer("CreateRuleSet", func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		if _, exists := v.RuleSets[value(d.Name)]; exists {
			return cl.rule(PartExists, "Rule set", value(d.Name))
		}
		return cl.putRuleSet(v, value(d.Name), d.Items)
	})
}

func updateRuleSet(c *call) (*answer, error) {
	d, err := decode[loadbalancer.UpdateRuleSetDetails](c)
	if err != nil {
		return nil, err
	}
	name := c.param("ruleSetName")
	return c.changeLoadBalancer("UpdateRuleSet", func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		if _, exists := v.RuleSets[name]; !exists {
			return errNotFound()
		}
		return cl.putRuleSet(v, name, d.Items)
	})
}

func deleteRuleSet(c *call) (*answer, error) {
	name := c.param("ruleSetName")
	return c.changeLoadBalancer("DeleteRuleSet", func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		if _, exists := v.RuleSets[name]; !exists {
			return errNotFound()
		}
		for _, l := range v.Listeners {
			if slices.Contains(l.RuleSetNames, name) {
				return cl.rule(RuleSetInUse, name)
			}
		}
		delete(v.RuleSets, name)
		return nil
	})
}
