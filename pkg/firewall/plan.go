// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall

import (
	"slices"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// plan is one write to one target, for all requests that are joined in it.
type plan struct {
	target Target
	limits limits
	have   []held

	add  []oci.SecurityRule
	drop map[int]struct{} // indices of have
}

// limits bound the rules of a target; 0 is no bound.
type limits struct {
	direction int // for each of the two directions
	all       int
}

func (p *plan) empty() bool { return len(p.add)+len(p.drop) == 0 }

// take puts what one request wants on one target into the plan. A request that does not fit is refused as a whole, except
// for what it removes.
func (p *plan) take(r *request, v view, remove bool) {
	s := v.sift(p.have, r.want, remove)
	extra := p.extra(v.mark, s.missing)
	if err := p.fits(extra, s.stale); err != nil {
		// Rules that nobody needs at all make room first.
		room := v.sift(p.have, r.want, true)
		if p.fits(extra, room.stale) == nil {
			s.stale = room.stale
		} else {
			r.err = err
			extra, s.missing = nil, nil
		}
	}
	for _, i := range s.stale {
		p.drop[i] = struct{}{}
	}
	p.add = append(p.add, extra...)
	r.add = append(r.add, s.missing...)
	r.outcome.remove = append(r.outcome.remove, rulesAt(p.have, s.stale)...)
	r.kept, r.waiting, r.edited = append(r.kept, s.kept...), append(r.waiting, s.waiting...), append(r.edited, s.edited...)
}

// extra are the rules that the plan does not add yet.
func (p *plan) extra(mark string, missing []Rule) []oci.SecurityRule {
	var out []oci.SecurityRule
	for _, rule := range missing {
		r := rule.cloud(mark)
		if !slices.Contains(p.add, r) {
			out = append(out, r)
		}
	}
	return out
}

// fits says whether the target has room for more rules, when some more are dropped. A target that has more rules than the
// limit already must have a limit that we do not know: then the cloud has the word.
func (p *plan) fits(extra []oci.SecurityRule, drop []int) error {
	count := func(direction Direction, limit int) error {
		counts := func(r oci.SecurityRule) bool { return direction == "" || r.Direction == string(direction) }
		before, after, grows := 0, 0, false
		for i, h := range p.have {
			if !counts(h.cloud) {
				continue
			}
			before++
			if _, dropped := p.drop[i]; !dropped && !slices.Contains(drop, i) {
				after++
			}
		}
		for _, r := range slices.Concat(p.add, extra) {
			if counts(r) {
				after++
				grows = true
			}
		}
		if grows && after > limit && before <= limit {
			return &LimitError{Target: p.target, Direction: direction, Limit: limit, Have: before, Need: after}
		}
		return nil
	}
	if p.limits.all > 0 {
		return count("", p.limits.all)
	}
	if err := count(Ingress, p.limits.direction); err != nil {
		return err
	}
	return count(Egress, p.limits.direction)
}

// result are the rules of one direction as they will be: what is there in its order, then what is new.
func (p *plan) result(direction Direction) []oci.SecurityRule {
	var out []oci.SecurityRule
	for i, h := range p.have {
		if _, dropped := p.drop[i]; !dropped && h.cloud.Direction == string(direction) {
			out = append(out, h.cloud)
		}
	}
	for _, r := range p.add {
		if r.Direction == string(direction) {
			out = append(out, r)
		}
	}
	return out
}

// adding and dropping are the changes in words, for the log.
func (p *plan) adding() []string {
	var out []string
	for _, r := range p.add {
		out = append(out, describe(r))
	}
	return out
}

func (p *plan) dropping() []string {
	var out []string
	for i, h := range p.have {
		if _, dropped := p.drop[i]; dropped {
			out = append(out, describe(h.cloud))
		}
	}
	return out
}
