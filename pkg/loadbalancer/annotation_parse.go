// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// WantedKind returns the kind of balancer that a Service's annotations ask for. An illegal value counts as the default;
// ParseAnnotations reports it.
func WantedKind(annotations map[string]string) oci.BalancerKind {
	if strings.EqualFold(strings.TrimSpace(annotations[annotationType]), string(oci.KindNLB)) {
		return oci.KindNLB
	}
	return oci.KindLB
}

// legalKind says whether the annotations ask for a kind of balancer, or leave it to the default.
func legalKind(annotations map[string]string) bool {
	value := strings.TrimSpace(annotations[annotationType])
	return value == "" || strings.EqualFold(value, string(oci.KindLB)) || strings.EqualFold(value, string(oci.KindNLB))
}

// ParseAnnotations reads the annotations of a Service whose balancer is of the given kind. That is the kind of the live
// balancer if there is one: what the annotations ask for is WantedKind.
//
// An empty value counts as an absent annotation. Values are taken in any case. What is illegal is fatal; what is unknown,
// or meant for the other kind of balancer, is a warning.
func ParseAnnotations(annotations map[string]string, kind oci.BalancerKind) (Settings, Problems) {
	s := Settings{Kind: kind}
	var problems Problems
	table := Annotations()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		value := strings.TrimSpace(annotations[key])
		i := slices.IndexFunc(table, func(a Annotation) bool { return a.Key == key })
		switch {
		case i < 0 && !ours(key):
		case i < 0:
			problems.warn(ReasonUnknownAnnotation, fmt.Sprintf("annotation %s is not known and has no effect; did you mean %s?", key, nearest(key, kind, table)))
		default:
			problems = append(problems, read(&s, table, table[i], kind, value)...)
		}
	}
	s.Kind = kind
	problems = append(problems, s.combinations()...)
	problems = append(problems, s.TLS.combinations()...)
	if s.Tags.empty() {
		s.Tags = s.DeprecatedTags
	}
	return s, problems
}

// read puts one known annotation into the settings.
func read(s *Settings, table []Annotation, a Annotation, kind oci.BalancerKind, value string) Problems {
	var problems Problems
	switch {
	case value == "" && !a.EmptyCounts || a.Internal:
	case !a.AppliesTo(kind):
		message := fmt.Sprintf("annotation %s applies to balancers of type %s only; this one is of type %s, so it has no effect", a.Key, a.Kinds[0], kind)
		if counterpart := counterpartOf(a, kind, table); counterpart != "" {
			message += "; use " + counterpart
		}
		problems.warn(ReasonAnnotationIgnored, message)
	default:
		if err := a.set(s, value); err != nil {
			problems = append(problems, Problem{
				Reason:  ReasonInvalidAnnotation,
				Message: fmt.Sprintf("annotation %s has the value %q: %v", a.Key, shortened(value, maxShownValue), err),
				Fatal:   true,
				Nodes:   a.Type == TypeSelector,
			})
		} else if a.Deprecated != "" {
			problems.warn(ReasonDeprecatedAnnotation, fmt.Sprintf("annotation %s is deprecated; use %s", a.Key, a.Deprecated))
		}
	}
	return problems
}

// combinations checks values that are legal alone but not together.
func (s *Settings) combinations() Problems {
	var problems Problems
	invalid := func(format string, args ...any) {
		problems.fatal(ReasonInvalidAnnotation, fmt.Sprintf(format, args...))
	}
	const shapeKey = prefixLB + "load-balancer-shape"
	switch {
	case s.FlexMin == nil && s.FlexMax == nil:
	case s.FlexMin == nil || s.FlexMax == nil:
		invalid("annotations %s-flex-min and %s-flex-max: both are needed, and one is missing", shapeKey, shapeKey)
	case *s.FlexMin > *s.FlexMax:
		invalid("annotations %s-flex-min and %s-flex-max: the minimum %d is above the maximum %d", shapeKey, shapeKey, *s.FlexMin, *s.FlexMax)
	case s.Shape != "" && s.Shape != oci.ShapeFlexible:
		problems.warn(ReasonAnnotationIgnored, fmt.Sprintf("annotations %s-flex-min and %s-flex-max have no effect on the fixed shape %s", shapeKey, shapeKey, s.Shape))
	}
	if timeout, interval := orDefault(s.TimeoutMillis, defaultTimeoutMillis), orDefault(s.IntervalMillis, defaultIntervalMillis); timeout > interval {
		invalid("annotations health-check-timeout and health-check-interval: the timeout of %d ms is longer than the interval of %d ms", timeout, interval)
	}
	return problems
}

// ours says whether a key is under one of our prefixes.
func ours(key string) bool {
	for _, prefix := range []string{prefixLB, prefixCommon, prefixNLB} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// counterpartOf returns the key for the other kind of balancer that does the same, recognised by what it says.
func counterpartOf(a Annotation, kind oci.BalancerKind, table []Annotation) string {
	for _, b := range table {
		if b.Key != a.Key && b.AppliesTo(kind) && b.Text == a.Text && b.Deprecated == "" {
			return b.Key
		}
	}
	return ""
}

// nearest returns the known key that looks most like the given one. Keys that apply to the Service's kind of balancer come
// first among equals.
func nearest(key string, kind oci.BalancerKind, table []Annotation) string {
	best, bestScore := "", -1.0
	for _, a := range table {
		if a.Internal || a.Deprecated != "" {
			continue
		}
		score := likeness(lastPart(key), lastPart(a.Key))
		if a.AppliesTo(kind) {
			score += 0.01
		}
		if prefix, _, _ := strings.Cut(a.Key, "/"); strings.HasPrefix(key, prefix+"/") {
			score += 0.01
		}
		if score > bestScore {
			best, bestScore = a.Key, score
		}
	}
	return best
}

// lastPart is what follows the prefix of a key, without the words that half of the keys begin with.
func lastPart(key string) string {
	_, name, _ := strings.Cut(key, "/")
	return strings.TrimPrefix(name, "oci-load-balancer-")
}

// likeness is Dice's coefficient over pairs of neighbouring letters: 1 for equal texts, 0 for those that share no pair.
func likeness(a, b string) float64 {
	pairs := func(s string) map[string]int {
		s = strings.ToLower(s)
		out := map[string]int{}
		for i := 0; i+2 <= len(s); i++ {
			out[s[i:i+2]]++
		}
		return out
	}
	x, y := pairs(a), pairs(b)
	common, total := 0, 0
	for p, n := range x {
		common += min(n, y[p])
		total += n
	}
	for _, n := range y {
		total += n
	}
	if total == 0 {
		return 0
	}
	return 2 * float64(common) / float64(total)
}

// maxShownValue is how much of a value an event shows.
const maxShownValue = 80

// shortened cuts a text that has more than a number of bytes, between characters.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

func orDefault[T any](v *T, byDefault T) T {
	if v == nil {
		return byDefault
	}
	return *v
}
