// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Diff says what has to be written so that the balancer becomes what the model says. marks are the tags that say whose the
// balancer is; they are written only along with something else.
//
// The order of the steps: backend sets and rule sets before the listeners that refer to them; on each port, deletions before
// updates before creations of listeners; backend sets and rule sets go when no listener refers to them any more.
// Certificates come before what uses them, and go when nothing does any more. The Service's own network security group is joined
// before, and left after, the changes of traffic that its rules let through.
func Diff(have *oci.Balancer, want *Model, last Applied, marks map[string]string) (Plan, Problems) {
	d := differ{
		have: have, want: want, last: last,
		created: map[string]int{}, released: map[string][]int{}, foreignRuleSets: map[string]bool{},
	}
	d.newCertificates()
	d.grow()
	d.ruleSets()
	d.backendSets()
	d.listeners()
	problems := d.obsoleteBackendSets()
	problems = append(problems, d.obsoleteRuleSets()...)
	problems = append(problems, d.shrink()...)
	d.size()
	d.obsoleteCertificates()
	problems = append(problems, d.nsgs()...) // the last one, since it can move the others
	if len(d.plan) > 0 && !hasTags(have, marks) {
		problems = append(problems, d.mark(marks)...)
	}
	return d.plan, problems
}

// mark puts the marks before everything else: who is interrupted after that finds nothing else to do, and marks are never
// written alone.
func (d *differ) mark(marks map[string]string) Problems {
	if overTagLimit(oci.Tags{Freeform: withTags(d.have.Freeform, marks), Defined: d.have.Defined}) {
		return Problems{noMarks("its other tags leave no room")}
	}
	d.plan = d.plan.first(Step{Action: UpdateTags, Want: -1}, func(Step) bool { return false })
	return nil
}

// noMarks is the warning about a balancer of ours that does not say so.
func noMarks(why string) Problem {
	return Problem{Reason: ReasonNoMarks, Message: fmt.Sprintf(
		"the balancer is without the tags %s and %s, which say whose it is: %s; it is found by its display name, do not change that", TagCluster, TagOwner, why)}
}

// DiffBackends is the part of Diff that a change of nodes needs: backends of backend sets that exist.
func DiffBackends(have *oci.Balancer, want *Model) Plan {
	var plan Plan
	for i, bs := range want.BackendSets {
		old, exists := have.BackendSets[bs.Name]
		if exists && !sameBackends(old.Backends, want.mergeBackends(old, bs).Backends) {
			plan.add(Step{Action: UpdateBackendSet, Name: bs.Name, Want: i, BackendsOnly: true, Detail: backendChange(old, bs)})
		}
	}
	return plan
}

type differ struct {
	have *oci.Balancer
	want *Model
	last Applied
	plan Plan

	created  map[string]int // backend set to the step that creates it
	uploaded map[string]int // certificate to the step that creates it
	// leaving are the steps after which a backend set loses a listener.
	leaving map[string][]int
	// staying counts the listeners that refer to a backend set when the plan is done, by name of the set.
	staying map[string]int

	grown           int              // the step that makes an NLB dual stack; -1 if there is none
	ruleSteps       []int            // steps that create rule sets
	released        map[string][]int // rule set to the steps that take it off a listener
	foreignRuleSets map[string]bool  // rule sets that listeners of others refer to
}

func (d *differ) backendSets() {
	for i, bs := range d.want.BackendSets {
		old, exists := d.have.BackendSets[bs.Name]
		if !exists {
			if !bs.Withheld {
				d.created[bs.Name] = d.plan.add(Step{
					Action: CreateBackendSet, Name: bs.Name, Want: i, After: append(d.uploadOf(bs.TLS), d.afterGrowth(bs.IPVersion)...),
					Detail: fmt.Sprintf("%d backends", len(bs.Backends)),
				})
			}
			continue
		}
		if merged := d.want.mergeBackendSet(old, bs, d.last); !sameBackendSet(old, merged) {
			d.plan.add(Step{Action: UpdateBackendSet, Name: bs.Name, Want: i, After: d.uploadOf(bs.TLS), Detail: backendChange(old, bs) + tlsChange("; ", old.SSL, merged.SSL)})
		}
	}
}

func backendChange(old oci.BackendSet, want BackendSet) string {
	return fmt.Sprintf("%d backends, were %d", len(want.Backends), len(old.Backends))
}

func (d *differ) listeners() {
	d.leaving, d.staying = map[string][]int{}, map[string]int{}
	taken, obsolete := d.match()
	foreign := func(l oci.Listener) bool {
		_, own := ownListener(d.have.Kind, l)
		return !own
	}
	for _, name := range sortedKeys(d.have.Listeners) {
		if l := d.have.Listeners[name]; foreign(l) {
			d.staying[l.BackendSetName]++
			for _, set := range l.RuleSetNames {
				d.foreignRuleSets[set] = true
			}
		}
	}
	freed := map[portKey][]int{} // steps that free a port or a protocol of it
	for _, l := range obsolete {
		step := d.plan.add(Step{Action: DeleteListener, Name: l.Name, Want: -1, Detail: fmt.Sprintf("%s :%d", l.Protocol, l.Port)})
		d.leaving[l.BackendSetName] = append(d.leaving[l.BackendSetName], step)
		freed[keyOf(l)] = append(freed[keyOf(l)], step)
		d.releases(step, l.RuleSetNames)
	}
	updated := map[portKey][]int{}
	for i, l := range d.want.Listeners {
		d.staying[l.BackendSet]++
		old, exists := taken[i]
		if !exists {
			continue
		}
		if _, setLives := d.have.BackendSets[l.BackendSet]; l.frozen(old, setLives) {
			d.staying[old.BackendSetName]++
			continue
		}
		merged := d.want.mergeListener(old, l, d.last)
		if sameListener(old, merged) {
			continue
		}
		after := slices.Concat(d.uploadOf(l.TLS), freed[l.key()], d.ruleSteps)
		if step, ok := d.created[l.BackendSet]; ok {
			after = append(after, step)
		}
		slices.Sort(after)
		step := d.plan.add(Step{Action: UpdateListener, Name: old.Name, Want: i, After: after, Detail: listenerChange(old, merged)})
		if old.BackendSetName != l.BackendSet {
			d.leaving[old.BackendSetName] = append(d.leaving[old.BackendSetName], step)
		}
		updated[l.key()] = append(updated[l.key()], step)
		d.releases(step, old.RuleSetNames)
	}
	for i, l := range d.want.Listeners {
		if _, exists := taken[i]; exists || l.Withheld {
			continue
		}
		after := slices.Concat(d.uploadOf(l.TLS), freed[l.key()], updated[l.key()], d.ruleSteps, d.afterGrowth(l.IPVersion))
		if step, ok := d.created[l.BackendSet]; ok {
			after = append(after, step)
		}
		slices.Sort(after)
		d.plan.add(Step{Action: CreateListener, Name: l.Name, Want: i, After: after, Detail: fmt.Sprintf("%s :%d", l.Protocol, l.Port)})
	}
}

// portKey is what two listeners cannot share, protocols aside.
type portKey struct {
	port int
	v6   bool
}

func keyOf(l oci.Listener) portKey { return portKey{l.Port, l.IPVersion == ipV6} }

func (l Listener) key() portKey { return portKey{l.Port, l.v6()} }

// match finds for each desired listener the one of ours that becomes it: of the same name, else of the same name but for
// legacy spellings, else any on the same port. A listener is thus changed in place, whatever its protocol or name was. The
// rest of ours is obsolete.
func (d *differ) match() (taken map[int]oci.Listener, obsolete []oci.Listener) {
	free := map[string]parsedName{}
	for name, l := range d.have.Listeners {
		if p, own := ownListener(d.have.Kind, l); own {
			free[name] = p
		}
	}
	taken = map[int]oci.Listener{}
	rules := []func(want Listener, name string, p parsedName) bool{
		func(want Listener, name string, _ parsedName) bool { return name == want.Name },
		func(want Listener, _ string, p parsedName) bool {
			return p.port == want.Port && p.v6 == want.v6() && transport(p.protocol) == transport(want.Protocol)
		},
		func(want Listener, _ string, p parsedName) bool { return p.port == want.Port && p.v6 == want.v6() },
	}
	for _, fits := range rules {
		for i, want := range d.want.Listeners {
			if _, done := taken[i]; done {
				continue
			}
			for _, name := range sortedKeys(free) {
				if fits(want, name, free[name]) {
					taken[i] = d.have.Listeners[name]
					delete(free, name)
					break
				}
			}
		}
	}
	for _, name := range sortedKeys(free) {
		obsolete = append(obsolete, d.have.Listeners[name])
	}
	return taken, obsolete
}

// transport maps HTTP to TCP, which are one and the same listener in legacy names.
func transport(protocol string) string {
	if protocol == "HTTP" {
		return "TCP"
	}
	return protocol
}

func listenerChange(old, merged oci.Listener) string {
	var changes []string
	changed := func(what string, from, to any) {
		if from != to {
			changes = append(changes, fmt.Sprintf("%s %v, was %v", what, to, from))
		}
	}
	changed("protocol", old.Protocol, merged.Protocol)
	changed("backend set", old.BackendSetName, merged.BackendSetName)
	changed("idle timeout", orDefault(old.IdleTimeoutSeconds, 0), orDefault(merged.IdleTimeoutSeconds, 0))
	changed("proxy protocol", orDefault(old.ProxyProtocolVersion, 0), orDefault(merged.ProxyProtocolVersion, 0))
	changed("proxy protocol v2", orDefault(old.PPv2, false), orDefault(merged.PPv2, false))
	changed("rule sets", listedRuleSets(old.RuleSetNames), listedRuleSets(merged.RuleSetNames))
	if change := tlsChange("", old.SSL, merged.SSL); change != "" {
		changes = append(changes, change)
	}
	return strings.Join(changes, "; ")
}

// obsoleteBackendSets deletes those of ours that nothing needs. One that a listener of somebody else refers to stays.
func (d *differ) obsoleteBackendSets() Problems {
	var problems Problems
	for _, name := range sortedKeys(d.have.BackendSets) {
		wanted := slices.ContainsFunc(d.want.BackendSets, func(bs BackendSet) bool { return bs.Name == name })
		switch {
		case wanted || !ownBackendSet(d.have.Kind, name):
		case d.staying[name] > 0:
			problems.warn(ReasonKeptInUse, fmt.Sprintf("backend set %s is no longer needed by the Service, but stays: a listener that is not ours refers to it", name))
		default:
			d.plan.add(Step{Action: DeleteBackendSet, Name: name, Want: -1, After: d.leaving[name]})
		}
	}
	return problems
}

func (d *differ) size() {
	if d.have.Kind != oci.KindLB || !d.want.Shape.Controlled {
		return
	}
	have, want := orDefault(d.have.Shape, oci.Shape{}), d.want.Shape.Value
	if strings.EqualFold(have.Name, want.Name) && have.MinMbps == want.MinMbps && have.MaxMbps == want.MaxMbps {
		return
	}
	d.plan.add(Step{Action: UpdateShape, Want: -1, Detail: fmt.Sprintf("%s, was %s", shapeText(want), shapeText(have))})
}

func shapeText(s oci.Shape) string {
	if s.Name == oci.ShapeFlexible {
		return fmt.Sprintf("%s %d-%d Mbps", s.Name, s.MinMbps, s.MaxMbps)
	}
	return s.Name
}

func (d *differ) nsgs() Problems {
	var problems Problems
	merged := d.want.mergeNSGs(d.have.NSGIDs, d.last)
	switch {
	case sameSet(merged, d.have.NSGIDs):
	case len(merged) > maxNSGs:
		problems.warn(ReasonInvalidAnnotation, fmt.Sprintf("the Service names %d network security groups and the balancer is in others already: %d together, and at most %d are possible; the groups are not changed", len(d.want.NSGIDs), len(merged), maxNSGs))
	default:
		step := Step{Action: UpdateNSGs, Want: -1, Detail: fmt.Sprintf("%d groups, were %d", len(merged), len(d.have.NSGIDs))}
		if d.want.Group != "" && !slices.Contains(d.have.NSGIDs, d.want.Group) {
			d.plan = d.plan.first(step, Step.bringsTraffic)
			break
		}
		leaves := func(id string) bool { return !slices.Contains(merged, id) }
		for i, other := range d.plan {
			if other.bringsTraffic() && slices.ContainsFunc(d.have.NSGIDs, leaves) {
				step.After = append(step.After, i)
			}
		}
		d.plan.add(step)
	}
	return problems
}

// hasTags says whether the balancer carries the free-form tags.
func hasTags(b *oci.Balancer, tags map[string]string) bool {
	for key, value := range tags {
		if b.Freeform[key] != value {
			return false
		}
	}
	return true
}
