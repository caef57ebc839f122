// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Operations that change rules of groups.
const (
	addGroupRules    = "AddNetworkSecurityGroupSecurityRules"
	removeGroupRules = "RemoveNetworkSecurityGroupSecurityRules"
)

// RuleWrites are the operations with which security rules are kept: for Us.Writes.
func RuleWrites() []string {
	return []string{
		"UpdateSecurityList", addGroupRules, removeGroupRules,
		"CreateNetworkSecurityGroup", "UpdateNetworkSecurityGroup", "DeleteNetworkSecurityGroup",
	}
}

// The kinds of a snapshot that have to do with security rules. Rules of lists are fields of the list, those of groups
// are objects.
const (
	securityListKind  = "security list"
	securityGroupKind = "network security group"
	groupRuleKind     = "security rule"
)

// Descriptions of rules of ours.
const (
	// ListRuleMark begins those of rules of security lists; a blank and the identity of the cluster follow, if that is known.
	ListRuleMark = "k8s"
	// GroupRuleMark begins those of rules of security groups; the UID of the Service follows, as the implementation before
	// this one has it.
	GroupRuleMark = "service-uid-"
)

// Fields of a security list that hold rules.
const (
	ingressField = "ingressSecurityRules"
	egressField  = "egressSecurityRules"
)

// Protocols of the rules that we write, by IANA's numbers.
const (
	protocolTCP = "6"
	protocolUDP = "17"
)

// rule is a security rule, of a list or a group.
type rule struct {
	ingress bool
	fields  map[string]any
	text    string // everything that it says
}

// newRule makes a rule of its representation in the API. What a group's rule has by its existence does not count.
func newRule(ingress bool, fields map[string]any) rule {
	said := maps.Clone(fields)
	for _, field := range []string{"id", "timeCreated", "isValid"} {
		delete(said, field)
	}
	text, err := json.Marshal(said) // with the fields in the order of their names
	if err != nil {
		text = fmt.Append(nil, said)
	}
	return rule{ingress, fields, string(text)}
}

// rulesOf are the rules of one direction of a security list, in their order.
func rulesOf(list *object, field string) []rule {
	all, _ := list.value[field].([]any)
	rules := make([]rule, 0, len(all))
	for _, one := range all {
		if fields, ok := one.(map[string]any); ok {
			rules = append(rules, newRule(field == ingressField, fields))
		}
	}
	return rules
}

func (r rule) field(name string) string {
	s, _ := r.fields[name].(string)
	return s
}

// ports are the destination ports that the rule names.
func (r rule) ports() (least, most int64) { return r.portRange("destinationPortRange") }

func (r rule) portRange(name string) (least, most int64) {
	for _, options := range []string{"tcpOptions", "udpOptions"} {
		o, _ := r.fields[options].(map[string]any)
		if of, ok := o[name].(map[string]any); ok {
			return number(of["min"]), number(of["max"])
		}
	}
	return 0, 0
}

// number is 0 for what is none.
func number(v any) int64 {
	n, ok := v.(json.Number)
	if !ok {
		return 0
	}
	i, err := n.Int64()
	if err != nil {
		return 0
	}
	return i
}

// plain says whether the rule is of the form of those that we write: stateful, TCP or UDP, to one port, from any. What
// somebody has made another form of is not ours any more.
func (r rule) plain() bool {
	stateless, _ := r.fields["isStateless"].(bool)
	from, _ := r.portRange("sourcePortRange")
	least, most := r.ports()
	protocol := r.field("protocol")
	return !stateless && from == 0 && least > 0 && least == most && (protocol == protocolTCP || protocol == protocolUDP)
}

// String is the rule for people: `ingress TCP 443 from 0.0.0.0/0 "k8s c1"`. What is not of the form of our rules is
// written as the API has it.
func (r rule) String() string {
	if !r.plain() {
		return r.text
	}
	direction, preposition, peer := "ingress", "from", r.field("source")
	if !r.ingress {
		direction, preposition, peer = "egress", "to", r.field("destination")
	}
	protocol := "TCP"
	if r.field("protocol") == protocolUDP {
		protocol = "UDP"
	}
	port, _ := r.ports()
	text := fmt.Sprintf("%s %s %d %s %s", direction, protocol, port, preposition, peer)
	if description := r.field("description"); description != "" {
		text += fmt.Sprintf(" %q", description)
	}
	return text
}

// marks says whether a description is that of rules of ours in security lists.
func (u *Us) marks(description string) bool {
	cluster, named := strings.CutPrefix(description, ListRuleMark+" ")
	if u.Cluster == "" {
		return named || description == ListRuleMark
	}
	return named && cluster == u.Cluster
}

// split tells rules of ours in a security list from those of others.
func (j *judge) split(rules []rule) (ours, others []rule) {
	for _, r := range rules {
		if j.Us.marks(r.field("description")) && r.plain() {
			ours = append(ours, r)
		} else {
			others = append(others, r)
		}
	}
	return ours, others
}

// listChanges lists what is not as it was of a security list, rules of ours aside: they come and go on anybody's list.
// Rules of others must be there as they were, in the same order.
func (j *judge) listChanges(before, now *object) []Change {
	rest := func(o *object) map[string]any {
		value := maps.Clone(o.value)
		delete(value, ingressField)
		delete(value, egressField)
		return value
	}
	changes := differences("", rest(before), rest(now))
	for _, field := range []string{ingressField, egressField} {
		_, had := j.split(rulesOf(before, field))
		_, have := j.split(rulesOf(now, field))
		changes = append(changes, ruleChanges(field, had, have)...)
	}
	if len(changes) == 0 && before.etag != now.etag && !j.wrote(now.id, "UpdateSecurityList") {
		return []Change{{Field: etagField, Before: before.etag, After: now.etag}}
	}
	return changes
}

// ruleChanges compares rules that should be the same: which have gone, which have come, and the order of the others.
func ruleChanges(field string, before, now []rule) []Change {
	stayed, gone := common(before, now)
	still, came := common(now, before)
	var changes []Change
	for _, r := range gone {
		changes = append(changes, Change{Field: field, Before: r.String()})
	}
	for _, r := range came {
		changes = append(changes, Change{Field: field, After: r.String()})
	}
	for i := range stayed { // as many as still, and the same ones
		if stayed[i].text != still[i].text {
			return append(changes, Change{Field: field + ".order", Before: stayed[i].String(), After: still[i].String()})
		}
	}
	return changes
}

// common divides rules into those that are also in another list, as often as they are there, and the rest.
func common(rules, other []rule) (shared, rest []rule) {
	left := map[string]int{}
	for _, r := range other {
		left[r.text]++
	}
	for _, r := range rules {
		if left[r.text] > 0 {
			left[r.text]--
			shared = append(shared, r)
		} else {
			rest = append(rest, r)
		}
	}
	return shared, rest
}

// The mark of security groups of nodes on which we have written rules, as the implementation before this one sets it.
const (
	backendGroupTag   = "ManagedBy"
	backendGroupValue = "CCM"
)

// groupChanges lists what is not as it was of a security group of somebody else. We may mark it, and write rules of ours,
// for which some regions give the group another etag.
func (j *judge) groupChanges(before, now *object) []Change {
	value, marked := now.value, false
	if before.tag(backendGroupTag) == "" && now.tag(backendGroupTag) == backendGroupValue && j.wrote(now.id, "UpdateNetworkSecurityGroup") {
		tags, _ := value["freeformTags"].(map[string]any)
		tags = maps.Clone(tags)
		delete(tags, backendGroupTag)
		value, marked = maps.Clone(value), true
		value["freeformTags"] = tags
	}
	changes := differences("", before.value, value)
	if len(changes) > 0 || before.etag == now.etag || marked || j.onlyRules(now.id) {
		return changes
	}
	return []Change{{Field: etagField, Before: before.etag, After: now.etag}}
}

// onlyRules says whether our writes to a security group were about its rules, and nothing else.
func (j *judge) onlyRules(group string) bool {
	about := 0
	for _, c := range j.writes[group] {
		switch {
		case !j.Us.made(c):
		case c.Operation == addGroupRules, c.Operation == removeGroupRules:
			about++
		default:
			return false
		}
	}
	return about > 0
}

// wrote says whether a call of ours may have changed an object by an operation.
func (j *judge) wrote(id, operation string) bool {
	for _, c := range j.writes[id] {
		if j.Us.made(c) && c.Operation == operation {
			return true
		}
	}
	return false
}

// describe joins rules for a report.
func describe(rules []rule) string {
	texts := make([]string, 0, len(rules))
	for _, r := range rules {
		texts = append(texts, r.String())
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}
