// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// TargetKind says what a target is.
type TargetKind string

// The kinds of targets.
const (
	SecurityList TargetKind = "security list"
	NSG          TargetKind = "network security group"
)

// Target is something that has rules.
type Target struct {
	Kind TargetKind
	ID   string // OCID
}

func (t Target) String() string { return string(t.Kind) + " " + t.ID }

func compareTargets(a, b Target) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
}

// Claim is what one owner needs.
type Claim struct {
	// Owner is the UID of a Service.
	Owner string
	// Rules that must exist. A target without rules is one that the owner may have had rules on: Settle looks there too.
	Rules map[Target][]Rule
	// Legacy are rules without description that the existing implementation has written for this owner: those of a
	// balancer of its making that was there at takeover, computed from the Service as it was then. They are remembered
	// until the owner is released, but only in memory. Once nobody needs such a rule, it is removed, or, with
	// Config.KeepAnonymous, reported.
	Legacy map[Target][]Rule
	// Inherited says that the existing implementation looked after the owner, which is as it was then: rules of NSGs with the
	// owner's description that are not on one of its targets may be needed all the same, and Sweep leaves them alone.
	Inherited bool
}

// Owner is somebody who may need rules.
type Owner struct {
	// ID is the UID of a Service.
	ID string
	// MayNeed says whether the owner can possibly need a rule, for the time in which its needs are not known: a rule to a
	// port that is none of the Service's ports, node ports and health check ports is not needed by it. Nil: it may need
	// any. It is called with locks held and must not call the Manager.
	MayNeed func(Rule) bool
}

// Change is what is to be written, or was written, to one target.
type Change struct{ Add, Remove []Rule }

// Changes are the changes by target; targets without a change are missing.
type Changes map[Target]Change

// String lists the changes, one per line.
func (c Changes) String() string {
	var lines []string
	for _, t := range slices.SortedFunc(maps.Keys(c), compareTargets) {
		for _, r := range c[t].Add {
			lines = append(lines, fmt.Sprintf("add %s on %s", r, t))
		}
		for _, r := range c[t].Remove {
			lines = append(lines, fmt.Sprintf("remove %s on %s", r, t))
		}
	}
	return strings.Join(lines, "\n")
}

// Report is what came of Settle, Release or Sweep.
type Report struct {
	// Changed is what was written; a write that served several owners at once is in the report of each.
	Changed Changes
	// Kept are rules without description that would have been removed but for Config.KeepAnonymous.
	Kept map[Target][]Rule
	// Waiting are rules of ours that go when other owners, which may need them, have settled.
	Waiting map[Target][]Rule
	// Edited are rules, in words, that have our description but were made something else by somebody. They are left
	// alone.
	Edited map[Target][]string
}

func newReport() Report {
	return Report{Changed: Changes{}, Kept: map[Target][]Rule{}, Waiting: map[Target][]Rule{}, Edited: map[Target][]string{}}
}

// take adds what came of a request.
func (r *Report) take(t Target, o outcome) {
	put := func(m map[Target][]Rule, rules []Rule) {
		if len(rules) > 0 {
			m[t] = rules
		}
	}
	put(r.Kept, o.kept)
	put(r.Waiting, o.waiting)
	if len(o.edited) > 0 {
		r.Edited[t] = o.edited
	}
	if len(o.add)+len(o.remove) > 0 {
		r.Changed[t] = Change{Add: o.add, Remove: o.remove}
	}
}

// needs are canonical rules by target.
type needs map[Target]ruleSet

// canonicalNeeds also refuses what a target cannot have.
func canonicalNeeds(rules map[Target][]Rule) (needs, error) {
	out := needs{}
	for target, list := range rules {
		set := ruleSet{}
		for _, rule := range list {
			canonical, err := rule.Canonical()
			if err == nil && target.Kind == SecurityList && canonical.PeerKind != PeerCIDR {
				err = fmt.Errorf("%w: a security list cannot name the network security group %s", ErrInvalidRule, rule.Peer)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", target, err)
			}
			set[canonical] = struct{}{}
		}
		out[target] = set
	}
	return out, nil
}
