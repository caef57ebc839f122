// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
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

// fault is something wrong with a value. A fault without message is none.
type fault struct {
	node    *yaml.Node
	sub     string // key below the key of the value, where it is a mapping
	message string
	got     string // the value, if it helps; see quote
	warning bool   // not worth stopping a start
}

func wrong(n *yaml.Node, format string, args ...any) []fault {
	return []fault{{node: n, message: fmt.Sprintf(format, args...)}}
}

// at puts a fault to its place and makes a list of it, which is empty if there is no fault.
func (f fault) at(n *yaml.Node, sub string) []fault {
	if f.message == "" {
		return nil
	}
	f.node, f.sub = n, sub
	return []fault{f}
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
		return false, fault{message: "want a bool (true or false)", got: n.Value}.at(n, "")
	}}
}

// text reads any scalar as it is written. check, which may be nil, sees values that are not empty.
func text[T ~string](at func(*document) *T, check func(string) fault) value {
	return scalar[T]{"string", at, func(n *yaml.Node) (T, []fault) {
		if check == nil || n.Value == "" {
			return T(n.Value), nil
		}
		return T(n.Value), check(n.Value).at(n, "")
	}}
}

func secret(at func(*document) *Secret) value {
	return scalar[Secret]{"secret string", at, func(n *yaml.Node) (Secret, []fault) { return Secret(n.Value), nil }}
}

// ocid reads the OCID of a resource of one of the types.
func ocid(at func(*document) *string, types ...string) value {
	return scalar[string]{"OCID of a " + strings.Join(types, " or "), at, func(n *yaml.Node) (string, []fault) {
		return n.Value, ocidFaults(n, "", types...)
	}}
}

func ocidFaults(n *yaml.Node, sub string, types ...string) []fault {
	if n.Value == "" {
		return nil
	}
	if f := ocidFault(n.Value); f.message != "" {
		return f.at(n, sub)
	}
	return ocidTypeFault(n.Value, types).at(n, sub)
}

func number(at func(*document) *float32) value {
	return scalar[float32]{"number", at, func(n *yaml.Node) (float32, []fault) {
		f, ok := float(n)
		switch {
		case !ok || math.IsNaN(f) || math.Abs(f) > math.MaxFloat32:
			return 0, fault{message: "want a number", got: n.Value}.at(n, "")
		case f < 0:
			return 0, fault{message: "must not be negative", got: n.Value}.at(n, "")
		}
		return float32(f), nil
	}}
}

func count(at func(*document) *int) value {
	return scalar[int]{"integer", at, func(n *yaml.Node) (int, []fault) {
		f, ok := float(n)
		switch {
		case !ok || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32:
			return 0, fault{message: "want an integer", got: n.Value}.at(n, "")
		case f < 0:
			return 0, fault{message: "must not be negative", got: n.Value}.at(n, "")
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
	if f := endpointFault(n.Value); f.message != "" {
		return f.at(n, "")
	}
	if d.Endpoints == nil {
		d.Endpoints = map[string]string{}
	}
	d.Endpoints[e.service] = strings.TrimSuffix(n.Value, "/")
	return nil
}

func (e endpoint) show(d *document) any {
	if url, ok := d.Endpoints[e.service]; ok {
		return url
	}
	return nil
}

// article puts the indefinite article before a noun.
func article(noun string) string {
	if strings.ContainsRune("aeioO", rune(noun[0])) { // O as in OCID; "URL" and "user" sound like "you"
		return "an " + noun
	}
	return "a " + noun
}

// maxQuoted is the length up to which a value is repeated in a message, in characters. OCIDs have about 100.
const maxQuoted = 150

// quote repeats what the file says for a message, unless it looks like a key or a certificate that slipped into a
// wrong place.
func quote(s string) string {
	if n := len([]rune(s)); n > maxQuoted || strings.ContainsAny(s, "\r\n") || strings.Contains(s, "-----") {
		return fmt.Sprintf("a text of %d characters", n)
	}
	return strconv.Quote(s)
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
