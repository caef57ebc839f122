// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"fmt"
	"slices"
	"strings"
)

// Action is what a step does.
type Action string

// Actions of steps.
const (
	CreateBackendSet  Action = "create backend set"
	UpdateBackendSet  Action = "update backend set"
	DeleteBackendSet  Action = "delete backend set"
	CreateListener    Action = "create listener"
	UpdateListener    Action = "update listener"
	DeleteListener    Action = "delete listener"
	UpdateShape       Action = "change shape"
	UpdateNSGs        Action = "change network security groups"
	UpdateTags        Action = "mark balancer"
	OpenRules         Action = "open security rules"
	CloseRules        Action = "close security rules"
	UpdateIPMode      Action = "change address families"
	CreateRuleSet     Action = "create rule set"
	UpdateRuleSet     Action = "update rule set"
	DeleteRuleSet     Action = "delete rule set"
	CreateCertificate Action = "create certificate"
	DeleteCertificate Action = "delete certificate"
)

// Step is one write. What exactly is written is worked out when the step runs, from the model and from what the cloud has
// then: see applier.
type Step struct {
	Action Action
	// Name of the listener, backend set, rule set or certificate in the cloud; empty for the others.
	Name string
	// Want is the index into the model's listeners or backend sets; -1 where the step is not about one.
	Want int
	// After are the indexes of the steps that have to be done before; they come earlier in the plan.
	After []int
	// BackendsOnly restricts the update of a backend set to its backends.
	BackendsOnly bool
	// Detail is for people.
	Detail string
}

func (s Step) String() string {
	text := string(s.Action)
	if s.Name != "" {
		text += " " + s.Name
	}
	if s.Detail != "" {
		text += " (" + s.Detail + ")"
	}
	return text
}

// Plan is a list of steps in an order in which they can be done one by one.
type Plan []Step

// String prints the steps, one per line, with the steps that each waits for.
func (p Plan) String() string {
	var b strings.Builder
	for i, s := range p {
		fmt.Fprintf(&b, "%d. %s", i+1, s)
		for j, after := range s.After {
			if j == 0 {
				b.WriteString(" after")
			}
			fmt.Fprintf(&b, " %d", after+1)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// add appends a step and returns its index.
func (p *Plan) add(s Step) int {
	*p = append(*p, s)
	return len(*p) - 1
}

// first puts a step before all others. Those that need it wait for it.
func (p Plan) first(s Step, needed func(Step) bool) Plan {
	for i := range p {
		after := []int{}
		if needed(p[i]) {
			after = append(after, 0)
		}
		for _, before := range p[i].After {
			after = append(after, before+1)
		}
		p[i].After = after
	}
	return slices.Insert(p, 0, s)
}
