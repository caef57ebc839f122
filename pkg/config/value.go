// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// value is how one key is read from YAML, and shown again.
type value interface {
	// kind names the type for people.
	kind() string
	// decode stores node n, which is neither null nor an alias, and returns what is wrong with it.
	decode(n *yaml.Node, d *document) []fault
	// show returns what Describe prints: nil if the value is the zero value.
	show(d *document) any
}

// fault is something wrong with a value.
type fault struct {
	node    *yaml.Node
	sub     string // key below the key of the value, where it is a mapping
	message string
	warning bool // not worth stopping a start
}

func wrong(n *yaml.Node, format string, args ...any) []fault {
	return []fault{{node: n, message: fmt.Sprintf(format, args...)}}
}

// scalar is a value that is one word, number or text.
type scalar[T comparable] struct {
	name string
	at   func(*document) *T
	read func(*yaml.Node) (T, []fault)
}

func (s scalar[T]) kind() string { return s.name }

func (s scalar[T]) decode(n *yaml.Node, d *document) []fault {
	if n.Kind != yaml.ScalarNode {
		return wrong(n, "want %s, got a %s", article(s.name), shape(n))
	}
	v, faults := s.read(n)
	if v != *new(T) || len(faults) == 0 {
		*s.at(d) = v
	}
	return faults
}

func (s scalar[T]) show(d *document) any {
	v := *s.at(d)
	if v == *new(T) {
		return nil
	}
	return v
}

// boolean reads the words that YAML 1.1 knows, as the existing implementation does.
func boolean(at func(*document) *bool) value {
	return scalar[bool]{"bool", at, func(n *yaml.Node) (bool, []fault) {
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			return false, wrong(n, "want a bool (true or false), got text: remove the quotes")
		}
		switch strings.ToLower(n.Value) {
		case "true", "yes", "on", "y":
			return true, nil
		case "false", "no", "off", "n":
			return false, nil
		}
		return false, wrong(n, "want a bool (true or false), got %q", n.Value)
	}}
}

// text reads any scalar as it is written. check may refuse it.
func text[T ~string](at func(*document) *T, check func(string) (message string, warning bool)) value {
	return scalar[T]{"string", at, func(n *yaml.Node) (T, []fault) {
		if check != nil && n.Value != "" {
			if message, warning := check(n.Value); message != "" {
				return T(n.Value), []fault{{node: n, message: message, warning: warning}}
			}
		}
		return T(n.Value), nil
	}}
}

func secret(at func(*document) *Secret) value {
	return scalar[Secret]{"secret string", at, func(n *yaml.Node) (Secret, []fault) { return Secret(n.Value), nil }}
}

// ocid reads the OCID of a resource of one of the types. That of another resource is only a warning: the types are not
// part of the API's contract.
func ocid(at func(*document) *string, types ...string) value {
	return scalar[string]{"OCID of a " + strings.Join(types, " or "), at, func(n *yaml.Node) (string, []fault) {
		return n.Value, ocidFaults(n, "", types...)
	}}
}

func ocidFaults(n *yaml.Node, sub string, types ...string) []fault {
	if n.Value == "" {
		return nil
	}
	if f := ocidFault(n.Value); f != "" {
		return []fault{{node: n, sub: sub, message: f}}
	}
	if f := ocidTypeFault(n.Value, types); f != "" {
		return []fault{{node: n, sub: sub, message: f, warning: true}}
	}
	return nil
}

func number(at func(*document) *float32) value {
	return scalar[float32]{"number", at, func(n *yaml.Node) (float32, []fault) {
		f, ok := float(n)
		switch {
		case !ok || math.IsNaN(f) || math.Abs(f) > math.MaxFloat32:
			return 0, wrong(n, "want a number, got %s", written(n))
		case f < 0:
			return 0, wrong(n, "must not be negative, got %s", n.Value)
		}
		return float32(f), nil
	}}
}

func count(at func(*document) *int) value {
	return scalar[int]{"integer", at, func(n *yaml.Node) (int, []fault) {
		f, ok := float(n)
		switch {
		case !ok || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32:
			return 0, wrong(n, "want an integer, got %s", written(n))
		case f < 0:
			return 0, wrong(n, "must not be negative, got %s", n.Value)
		}
		return int(f), nil
	}}
}

// float reads a YAML number of any notation.
func float(n *yaml.Node) (float64, bool) {
	if tag := n.ShortTag(); tag != "!!int" && tag != "!!float" {
		return 0, false
	}
	var f float64
	if err := n.Decode(&f); err != nil {
		return 0, false
	}
	return f, true
}

// written gives a scalar as it stands in the file.
func written(n *yaml.Node) string {
	if n.ShortTag() == "!!str" {
		return "text " + strconv.Quote(n.Value)
	}
	return n.Value
}

// ocidMap is a mapping of OCIDs to OCIDs.
type ocidMap struct {
	at             func(*document) *map[string]string
	keyOf, valueOf string // resource types
}

func (m ocidMap) kind() string { return "map from " + m.keyOf + " OCID to " + m.valueOf + " OCID" }

func (m ocidMap) decode(n *yaml.Node, d *document) []fault {
	out := map[string]string{}
	faults := eachEntry(n, m.kind(), func(k, v *yaml.Node) []fault {
		if v.Kind != yaml.ScalarNode {
			return []fault{{node: v, sub: k.Value, message: "want an OCID, got a " + shape(v)}}
		}
		out[k.Value] = v.Value
		return append(ocidFaults(k, "", m.keyOf), ocidFaults(v, k.Value, m.valueOf)...)
	})
	*m.at(d) = out
	return faults
}

func (m ocidMap) show(d *document) any { return showMap(*m.at(d)) }

// Limits of tags, in characters.
const (
	maxTagKey   = 100
	maxTagValue = 256
)

// freeformTags is a mapping of names to text.
type freeformTags struct {
	at func(*document) *map[string]string
}

func (freeformTags) kind() string { return "map from key to text" }

func (t freeformTags) decode(n *yaml.Node, d *document) []fault {
	out := map[string]string{}
	faults := eachEntry(n, t.kind(), func(k, v *yaml.Node) []fault {
		if v.Kind != yaml.ScalarNode {
			return []fault{{node: v, sub: k.Value, message: "want text, got a " + shape(v)}}
		}
		out[k.Value] = textOf(v)
		return tagFaults(k, v)
	})
	*t.at(d) = out
	return faults
}

func (t freeformTags) show(d *document) any { return showMap(*t.at(d)) }

// definedTags is a mapping of namespaces to mappings of keys to values.
type definedTags struct {
	at func(*document) *map[string]map[string]any
}

func (definedTags) kind() string { return "map from namespace to map from key to value" }

func (t definedTags) decode(n *yaml.Node, d *document) []fault {
	out := map[string]map[string]any{}
	faults := eachEntry(n, t.kind(), func(namespace, v *yaml.Node) []fault {
		entries := map[string]any{}
		out[namespace.Value] = entries
		below := eachEntry(v, "map from key to value", func(k, v *yaml.Node) []fault {
			entry, ok := plain(v)
			if !ok {
				return []fault{{node: v, sub: k.Value, message: "want text, a number or a bool, got a " + shape(v)}}
			}
			entries[k.Value] = entry
			return tagFaults(k, v)
		})
		for i := range below {
			below[i].sub = strings.TrimSuffix(namespace.Value+"."+below[i].sub, ".")
		}
		return below
	})
	*t.at(d) = out
	return faults
}

func (t definedTags) show(d *document) any { return showMap(*t.at(d)) }

func tagFaults(k, v *yaml.Node) []fault {
	if n := len([]rune(k.Value)); n > maxTagKey {
		return []fault{{node: k, message: fmt.Sprintf("a tag's key has at most %d characters, this one has %d", maxTagKey, n), warning: true}}
	}
	if n := len([]rune(v.Value)); n > maxTagValue {
		return []fault{{node: v, sub: k.Value, message: fmt.Sprintf("a tag's value has at most %d characters, this one has %d", maxTagValue, n), warning: true}}
	}
	return nil
}

// plain converts a scalar to string, bool, int or float64.
func plain(n *yaml.Node) (any, bool) {
	if n.Kind != yaml.ScalarNode {
		return nil, false
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, false
	}
	switch v.(type) {
	case bool, int, float64:
		return v, true
	default:
		return textOf(n), true
	}
}

// textOf returns a scalar as text; null is empty.
func textOf(n *yaml.Node) string {
	if isNull(n) {
		return ""
	}
	return n.Value
}

// certificates is a CA bundle.
type certificates struct{}

func (certificates) kind() string { return "PEM certificates" }

func (c certificates) decode(n *yaml.Node, d *document) []fault {
	if n.Kind != yaml.ScalarNode {
		return wrong(n, "want %s, got a %s", c.kind(), shape(n))
	}
	d.CABundle = n.Value
	if n.Value == "" {
		return nil
	}
	if _, message := parseBundle(n.Value); message != "" {
		return wrong(n, "%s", message)
	}
	return nil
}

func (certificates) show(d *document) any {
	if d.CABundle == "" {
		return nil
	}
	all, _ := parseBundle(d.CABundle)
	return fmt.Sprintf("[%d certificates]", len(all))
}

// endpoint is the endpoint of one service.
type endpoint struct {
	service string
}

func (endpoint) kind() string { return "URL" }

func (e endpoint) decode(n *yaml.Node, d *document) []fault {
	if n.Kind != yaml.ScalarNode {
		return wrong(n, "want a URL, got a %s", shape(n))
	}
	if message := endpointFault(n.Value); message != "" {
		return wrong(n, "%s", message)
	}
	if d.Endpoints == nil {
		d.Endpoints = map[string]string{}
	}
	d.Endpoints[e.service] = n.Value
	return nil
}

func (e endpoint) show(d *document) any {
	if url, ok := d.Endpoints[e.service]; ok {
		return url
	}
	return nil
}

// eachEntry calls fn for each entry of a mapping, with aliases resolved and merge keys (<<) spread out. The last one of
// equal keys wins.
func eachEntry(n *yaml.Node, kind string, fn func(k, v *yaml.Node) []fault) []fault {
	if n.Kind != yaml.MappingNode {
		return wrong(n, "want %s, got a %s", article(kind), shape(n))
	}
	entries, faults := entriesOf(n)
	for _, e := range entries {
		faults = append(faults, fn(e.key, resolve(e.value))...)
	}
	return faults
}

// article puts the indefinite article before a noun.
func article(noun string) string {
	if strings.ContainsRune("aeioO", rune(noun[0])) { // O as in OCID; "URL" and "user" sound like "you"
		return "an " + noun
	}
	return "a " + noun
}

// shape names a node's kind for people.
func shape(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "mapping"
	case yaml.SequenceNode:
		return "list"
	default:
		return "scalar"
	}
}

// showMap returns nil for an empty map.
func showMap[M ~map[string]V, V any](m M) any {
	if len(m) == 0 {
		return nil
	}
	return m
}

func securityListMode(s string) (string, bool) {
	modes := []string{string(ModeAll), string(ModeFrontend), string(ModeNone)}
	if slices.Contains(modes, s) {
		return "", false
	}
	message := fmt.Sprintf("want All, Frontend or None, got %q", s)
	if meant := nearest(s, modes); meant != "" {
		message += fmt.Sprintf("; did you mean %q?", meant)
	}
	return message, false
}
