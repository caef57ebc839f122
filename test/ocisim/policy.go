// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"strings"
)

// Policy names permissions that are taken away. Empty fields match everything. As in OCI's policy language a verb
// includes the weaker ones, so without "read" there is no "use" and no "manage" either; "inspect" is what lists
// need, "read" what gets need.
type Policy struct {
	Principal    string `json:"principal,omitempty"`    // Principal.ID
	Verb         Verb   `json:"verb,omitempty"`         // the weakest verb that is gone
	ResourceType string `json:"resourceType,omitempty"` // "instances", "load-balancers", …
	Compartment  string `json:"compartment,omitempty"`  // OCID
	Operation    string `json:"operation,omitempty"`    // "GetInstance", "compute.GetInstance" or "compute.*": only these
}

// Validate refuses a policy that can never match. Its error wraps ErrOption.
func (p Policy) Validate() error {
	switch {
	case p.Verb != "" && verbStrength[p.Verb] == 0:
		return fmt.Errorf("%w: unknown verb %q; the verbs are inspect, read, use and manage", ErrOption, p.Verb)
	case p.ResourceType != "" && !contains(resourceTypes(), p.ResourceType):
		return fmt.Errorf("%w: unknown resource type %q; the types are %s", ErrOption, p.ResourceType, strings.Join(resourceTypes(), ", "))
	case p.Operation != "" && !knownOperation(p.Operation):
		return fmt.Errorf("%w: unknown operation %q", ErrOption, p.Operation)
	}
	return nil
}

// resourceTypes are those that policies know.
func resourceTypes() []string {
	known := map[string]bool{}
	for _, s := range services() {
		for _, o := range s.operations {
			known[o.Resource] = true
			if o.Target != nil {
				known[o.Target.policy] = true
			}
		}
	}
	delete(known, "")
	return sortedKeys(known)
}

type denial struct {
	Policy
}

// Deny takes permissions away until restore is called. A refused call is answered as if the resource did not exist.
func (r *Region) Deny(p Policy) (restore func()) {
	cl := r.lock()
	defer r.mu.Unlock()
	d := &denial{p}
	cl.denials = append(cl.denials, d)
	return func() {
		cl := r.lock()
		defer r.mu.Unlock()
		cl.denials = without(cl.denials, d)
	}
}

// denied asks whether the caller lacks a permission: because it was taken away, or because its grants do not give it.
func (c *call) denied(resourceType string, verb Verb, compartment string) bool {
	for _, d := range c.denials {
		if d.matches(c, resourceType, verb, compartment) {
			return true
		}
	}
	return !c.granted(permission{verb, resourceType}, compartment)
}

func (d *denial) matches(c *call, resourceType string, verb Verb, compartment string) bool {
	switch {
	case d.Principal != "" && d.Principal != c.principal.ID,
		d.ResourceType != "" && d.ResourceType != resourceType,
		d.Compartment != "" && d.Compartment != compartment,
		d.Operation != "" && !c.operation.named(d.Operation),
		d.Verb != "" && verbStrength[verb] < verbStrength[d.Verb]:
		return false
	}
	return true
}

// named says whether a name that a person wrote means this operation. A * at its end stands for anything.
func (o *Operation) named(name string) bool {
	if start, ok := strings.CutSuffix(name, "*"); ok {
		return strings.HasPrefix(o.Name, start) || strings.HasPrefix(o.FullName(), start)
	}
	return name == o.Name || name == o.FullName()
}

func without[T comparable](list []T, element T) []T {
	kept := make([]T, 0, len(list))
	for _, e := range list {
		if e != element {
			kept = append(kept, e)
		}
	}
	return kept
}
