// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
)

// ErrOption says that an option has a name or a value that it cannot have.
var ErrOption = errors.New("no such option")

// Options returns a copy of the options in effect, defaults included.
func (r *Region) Options() Options {
	cl := r.lock()
	defer r.mu.Unlock()
	return cl.options.clone()
}

// Durations returns how long every state change takes.
func (r *Region) Durations() map[string]Range {
	cl := r.lock()
	defer r.mu.Unlock()
	return maps.Clone(cl.durations)
}

// Configure changes options while the region is in use: those from Options.PageSize on. The function gets a copy of the
// options in effect, without the behaviour table. What is refused, by it or for its values, changes nothing. Budgets
// start full again when rates change; state changes that have begun end when they would have.
func (r *Region) Configure(change func(*Options) error) error {
	cl := r.lock()
	defer r.mu.Unlock()
	now := cl.options
	next := now.clone()
	next.Behaviour = nil
	if err := change(&next); err != nil {
		return err
	}
	if next.Behaviour != nil {
		return fmt.Errorf("%w: the behaviour table has a patch of its own", ErrOption)
	}
	if !reflect.DeepEqual(next.fixed(), now.fixed()) {
		return fmt.Errorf("%w: seed, names, signatures, bodies of attachments and balancers and the size of the log cannot be changed", ErrOption)
	}
	if err := next.Validate(); err != nil {
		return err
	}
	if next.Read != now.Read || next.Write != now.Write || !maps.Equal(next.Rates, now.Rates) {
		cl.buckets = map[bucketName]*bucketState{}
	}
	next.Behaviour = now.Behaviour
	cl.use(next)
	return nil
}

// use makes options those in effect.
func (cl *cloud) use(options Options) {
	cl.options = options
	cl.durations = defaultDurations()
	maps.Copy(cl.durations, expand(options.Durations, sortedKeys(cl.durations)))
	cl.rates = expand(options.Rates, budgets())
}

func (o Options) clone() Options {
	o.AvailabilityDomains = slices.Clone(o.AvailabilityDomains)
	o.Durations, o.Latency, o.Rates = maps.Clone(o.Durations), maps.Clone(o.Latency), maps.Clone(o.Rates)
	return o
}

// fixed is the part of the options that a region keeps for life.
func (o Options) fixed() Options {
	return Options{
		Seed: o.Seed, Region: o.Region, RegionKey: o.RegionKey, Realm: o.Realm, Tenancy: o.Tenancy,
		AvailabilityDomains: o.AvailabilityDomains, Signatures: o.Signatures, LogSize: o.LogSize, Attachments: o.Attachments,
		Balancers: o.Balancers,
	}
}

// Validate refuses names that no service has and values out of their range. Its error wraps ErrOption and names all
// that is wrong.
func (o Options) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrOption}, args...)...))
	}
	for name, p := range map[string]float64{"shortPages": o.ShortPages, "dropOptional": o.DropOptional} {
		if p < 0 || p > 1 {
			refuse("%s %g is not a probability from 0 to 1", name, p)
		}
	}
	for name, n := range map[string]int{"pageSize": o.PageSize, "eventualReads": o.EventualReads, "logSize": o.LogSize} {
		if n < 0 {
			refuse("%s is %d", name, n)
		}
	}
	if o.RetryAfter < 0 {
		refuse("retryAfter is %s", o.RetryAfter)
	}
	for _, name := range sortedKeys(o.Durations) {
		if len(matching(name, sortedKeys(defaultDurations()))) == 0 {
			refuse("no state change %q has a duration", name)
		}
	}
	for _, spans := range []map[string]Range{o.Durations, o.Latency} {
		for name, d := range spans {
			if d.Min < 0 || d.Max < 0 {
				refuse("%s is negative: %s", name, d)
			}
		}
	}
	for _, name := range sortedKeys(o.Latency) {
		if !knownLatency(name) {
			refuse("latency of an unknown operation %q", name)
		}
	}
	for _, name := range sortedKeys(o.Rates) {
		if len(matching(name, budgets())) == 0 {
			refuse("no budget %q; they are named as compute.read and compute.write", name)
		}
	}
	for name, rate := range mergeRates(o) {
		if rate.PerSecond < 0 || rate.Burst < 0 {
			refuse("rate of %s is negative", name)
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

func mergeRates(o Options) map[string]Rate {
	all := map[string]Rate{"reads": o.Read, "writes": o.Write}
	maps.Copy(all, o.Rates)
	return all
}

// defaultDurations are those of all services.
func defaultDurations() map[string]Range {
	all := map[string]Range{}
	for _, s := range services() {
		maps.Copy(all, s.durations)
	}
	return all
}

// budgets are the names that Options.Rates can have.
func budgets() []string {
	var names []string
	for _, s := range services() {
		for _, o := range s.operations {
			for _, direction := range []string{".read", ".write"} {
				if name := o.Service + direction; !contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

func knownLatency(name string) bool {
	service, operation, ok := strings.Cut(name, ".")
	if name == "*" {
		return true
	}
	for _, s := range services() {
		for _, o := range s.operations {
			if ok && o.Service == service && (operation == "*" || o.Name == operation) {
				return true
			}
		}
	}
	return false
}

// matching are the names that a pattern means.
func matching(pattern string, names []string) []string {
	var found []string
	for _, name := range names {
		if ok, err := path.Match(pattern, name); err == nil && ok {
			found = append(found, name)
		}
	}
	return found
}

// expand gives the names that patterns mean their values. Exact names win over patterns, longer patterns over shorter
// ones.
func expand[T any](given map[string]T, names []string) map[string]T {
	patterns := slices.SortedFunc(maps.Keys(given), func(a, b string) int {
		if exactA, exactB := !strings.Contains(a, "*"), !strings.Contains(b, "*"); exactA != exactB {
			if exactA {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	out := map[string]T{}
	for _, pattern := range patterns {
		for _, name := range matching(pattern, names) {
			out[name] = given[pattern]
		}
	}
	return out
}
