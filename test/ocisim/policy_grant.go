// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"slices"
	"strings"
)

// Grant limits a principal to what policy statements allow. A principal without a grant may do everything that is not
// denied; one with several may do what any of them allows.
type Grant struct {
	Principal string `json:"principal"` // Principal.ID

	// Statements are of the form "Allow <subject> to <verb> <resource type or family> in compartment <OCID>", or "…in
	// tenancy". The subject is for people: the principal is meant. Conditions ("where …") are not understood.
	Statements []string `json:"statements"`
}

// Validate refuses a grant that cannot be understood. Its error wraps ErrOption.
func (g Grant) Validate() error {
	if g.Principal == "" {
		return fmt.Errorf("%w: a grant needs a principal", ErrOption)
	}
	_, err := g.parse()
	return err
}

func (g Grant) parse() ([]statement, error) {
	list := make([]statement, 0, len(g.Statements))
	for _, text := range g.Statements {
		s, err := parseStatement(text)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// permission is a verb on a resource type.
type permission struct {
	verb     Verb
	resource string
}

// statement is one that has been understood.
type statement struct {
	verbs       map[string]Verb // by resource type
	everything  Verb            // on all-resources; empty: none
	compartment string          // empty: the tenancy
}

func parseStatement(text string) (statement, error) {
	refuse := func(why string) (statement, error) {
		return statement{}, fmt.Errorf("%w: statement %q: %s", ErrOption, text, why)
	}
	words := strings.Fields(text)
	to := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, "to") })
	if to < 1 || !strings.EqualFold(words[0], "allow") {
		return refuse("want \"Allow <subject> to <verb> <resource type> in compartment <OCID>\"")
	}
	rest := words[to+1:]
	if len(rest) < 4 || !strings.EqualFold(rest[2], "in") {
		return refuse("want \"to <verb> <resource type> in …\"")
	}
	s := statement{verbs: map[string]Verb{}}
	switch place := rest[3:]; {
	case strings.EqualFold(place[0], "tenancy") && len(place) == 1:
	case strings.EqualFold(place[0], "compartment") && len(place) == 2:
		s.compartment = place[1]
	default:
		return refuse("want \"in tenancy\" or \"in compartment <OCID>\", and nothing after it")
	}
	verb, what := Verb(strings.ToLower(rest[0])), strings.ToLower(rest[1])
	if verbStrength[verb] == 0 {
		return refuse("the verbs are inspect, read, use and manage")
	}
	switch members := families()[what]; {
	case what == allResources:
		s.everything = verb
	case members != nil:
		for resource, v := range extras()[what] {
			s.verbs[resource] = v
		}
		for _, resource := range members {
			s.verbs[resource] = verb
		}
	case contains(grantTypes(), what):
		s.verbs[what] = verb
	default:
		return refuse("unknown resource type")
	}
	return s, nil
}

// grantTypes are the resource types that a statement may name.
func grantTypes() []string { return append(resourceTypes(), tagNamespacesPolicy) }

const (
	allResources        = "all-resources"
	tagNamespacesPolicy = "tag-namespaces"
)

// families are aggregate resource types, as far as the region knows their members (Oracle's policy reference).
func families() map[string][]string {
	return map[string][]string{
		"instance-family": {"instances"},
		"virtual-network-family": {
			"vcns", "subnets", "route-tables", "security-lists", "network-security-groups", "dhcp-options", "internet-gateways", "nat-gateways",
			"service-gateways", "private-ips", "ipv6s", "public-ips", "vnics", "vnic-attachments",
		},
		"volume-family": {"volumes", "volume-attachments", "volume-backups", "volume-groups", "volume-group-backups"},
		"file-family":   {"file-systems", "mount-targets", "export-sets"},
	}
}

// extras are what a family permits beside its members, with any verb. Oracle's reference says so of instance-family, for
// whoever works with instances and what is attached to them; the stronger of its extras are left out here.
func extras() map[string]map[string]Verb {
	return map[string]map[string]Verb{
		"instance-family": {"vnics": Inspect, "vnic-attachments": Inspect, "volume-attachments": Inspect},
	}
}

// permits says whether the statement is enough for a permission, wherever it is needed.
func (s statement) permits(need permission) bool {
	return max(verbStrength[s.verbs[need.resource]], verbStrength[s.everything]) >= verbStrength[need.verb]
}

// grantedNeeds are the operations whose needs differ from the verb and type of their line in the service tables, where
// grants are concerned: permissions of the operation's own compartment. In doubt the stronger verb stands here.
func grantedNeeds() map[string][]permission {
	const groups = "network-security-groups"
	return map[string][]permission{
		// INSTANCE_READ, where other lists are content with inspect.
		"compute.ListInstances": {{Read, "instances"}},
		// VNIC_ATTACHMENT_READ and VNIC_READ belong to inspect.
		"compute.ListVnicAttachments": {{Inspect, "vnic-attachments"}, {Inspect, "instances"}},
		"compute.GetVnicAttachment":   {{Inspect, "vnic-attachments"}},
		"virtualnetwork.GetVnic":      {{Inspect, "vnics"}},
		// PUBLIC_IP_READ belongs to read. (Ephemeral addresses are said to need PRIVATE_IP_READ only.)
		"virtualnetwork.ListPublicIps": {{Read, "public-ips"}},
		// Writing addresses changes the VNIC too; IPV6_CREATE, _UPDATE and _DELETE belong to manage.
		"virtualnetwork.CreatePrivateIp": {{Use, "private-ips"}, {Use, "vnics"}, {Use, "subnets"}},
		"virtualnetwork.DeletePrivateIp": {{Use, "private-ips"}, {Use, "vnics"}, {Use, "subnets"}},
		"virtualnetwork.CreateIpv6":      {{Manage, "ipv6s"}, {Use, "vnics"}, {Use, "subnets"}},
		"virtualnetwork.UpdateIpv6":      {{Manage, "ipv6s"}},
		"virtualnetwork.DeleteIpv6":      {{Manage, "ipv6s"}, {Use, "vnics"}, {Use, "subnets"}},
		// Rules and members of a group are not part of reading it; writing rules is managing it.
		"virtualnetwork.ListNetworkSecurityGroupSecurityRules":   {{Use, groups}},
		"virtualnetwork.ListNetworkSecurityGroupVnics":           {{Use, groups}},
		"virtualnetwork.AddNetworkSecurityGroupSecurityRules":    {{Manage, groups}},
		"virtualnetwork.UpdateNetworkSecurityGroupSecurityRules": {{Manage, groups}},
		"virtualnetwork.RemoveNetworkSecurityGroupSecurityRules": {{Manage, groups}},
	}
}

// needs returns what a check of the engine means where grants are concerned. Two kinds of checks are more than they say:
// that of the operation itself, and that of what a write refers to, which it attaches something to (SUBNET_ATTACH,
// NETWORK_SECURITY_GROUP_UPDATE_MEMBERS belong to use, VCN_ATTACH to manage).
func (c *call) needs(check permission) []permission {
	o := c.operation
	if own := (permission{o.Verb, o.policy()}); check == own {
		if special := c.region.needs[o.FullName()]; special != nil {
			return special
		}
		return []permission{own}
	}
	if o.write() && check.verb == Read {
		check.verb = Use
		if check.resource == vcns.policy {
			check.verb = Manage
		}
	}
	return []permission{check}
}

// policy is the operation's resource type in policies.
func (o *Operation) policy() string {
	if o.Resource == "" && o.Target != nil {
		return o.Target.policy
	}
	return o.Resource
}

type grant struct {
	principal  string
	statements []statement
}

// Grant limits a principal to what the statements allow, until revoke is called.
func (r *Region) Grant(g Grant) (revoke func(), err error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	statements, err := g.parse()
	if err != nil {
		return nil, err
	}
	cl := r.lock()
	defer r.mu.Unlock()
	made := &grant{g.Principal, statements}
	cl.grants = append(cl.grants, made)
	return func() {
		cl := r.lock()
		defer r.mu.Unlock()
		cl.grants = without(cl.grants, made)
	}, nil
}

// granted asks whether the grants of the caller allow what a check asks for; without any they allow everything. An empty
// compartment stands for one that is not known yet, and is checked later.
func (c *call) granted(check permission, compartment string) bool {
	limited := false
	var statements []statement
	for _, g := range c.grants {
		if g.principal == c.principal.ID {
			limited, statements = true, append(statements, g.statements...)
		}
	}
	if !limited {
		return true
	}
	for _, need := range c.needs(check) {
		if !slices.ContainsFunc(statements, func(s statement) bool { return s.permits(need) && c.within(compartment, s.compartment) }) {
			return false
		}
	}
	return true
}

// within says whether a compartment is another one or below it; every compartment is in the tenancy.
func (c *call) within(compartment, ancestor string) bool {
	for compartment != "" && ancestor != "" && compartment != ancestor {
		res := compartments.lookup(c.cloud, compartment)
		if res == nil || res.compartment == compartment {
			return false
		}
		compartment = res.compartment
	}
	return true
}
