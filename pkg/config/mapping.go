// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

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

// showMap returns nil for an empty map.
func showMap[M ~map[string]V, V any](m M) any {
	if len(m) == 0 {
		return nil
	}
	return m
}
