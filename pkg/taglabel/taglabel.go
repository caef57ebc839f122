// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package taglabel says which label of a node a tag of its instance becomes.
package taglabel

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	// Prefix begins the keys of the labels.
	Prefix = "oci.oraclecloud.com/"

	// maxTagName is the limit of a tag's namespace and of its key, in characters,
	// https://docs.oracle.com/iaas/Content/Tagging/Concepts/taggingoverview.htm.
	maxTagName = 100
	// maxLabel is the limit of a label's value, and of its key without prefix, in bytes,
	// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/.
	maxLabel = 63
)

// Tag is the key of a tag. A freeform tag has no namespace.
type Tag struct{ Namespace, Key string }

// Defined reads the key of a defined tag, "namespace.key". The error says why it cannot become a label.
func Defined(text string) (Tag, error) {
	namespace, key, found := strings.Cut(text, ".")
	if !found || namespace == "" || key == "" || strings.Contains(key, ".") {
		return Tag{}, errors.New("want the key of a defined tag in the form namespace.key")
	}
	t := Tag{Namespace: namespace, Key: key}
	return t, t.check()
}

// Freeform reads the key of a freeform tag. The error says why it cannot become a label.
func Freeform(text string) (Tag, error) {
	if text == "" {
		return Tag{}, errors.New("want the key of a freeform tag")
	}
	if strings.Contains(text, ".") {
		return Tag{}, errors.New("the key of a freeform tag has no period; that of a defined tag has")
	}
	t := Tag{Key: text}
	return t, t.check()
}

func (t Tag) check() error {
	for _, part := range t.parts() {
		if strings.ContainsFunc(part, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return errors.New("the key of a tag has printable ASCII characters only, and no blanks")
		}
		if len(part) > maxTagName {
			return fmt.Errorf("a tag's namespace and its key have at most %d characters each, this has %d", maxTagName, len(part))
		}
		if spell(part) == "" {
			return errors.New("there is neither a letter nor a digit, so it cannot be a label")
		}
	}
	name := strings.TrimPrefix(t.Label(), Prefix)
	if len(name) > maxLabel {
		return fmt.Errorf("a label's key has at most %d characters, this would have %d", maxLabel, len(name))
	}
	if slices.Contains(reserved(), name) {
		return fmt.Errorf("the label %s has a meaning of its own", t.Label())
	}
	return nil
}

// reserved are the labels under Prefix that this project sets or reads.
func reserved() []string {
	return []string{"fault-domain", "ip-family-ipv4", "ip-family-ipv6", "ip-family-preferred"}
}

func (t Tag) parts() []string {
	if t.Namespace == "" {
		return []string{t.Key}
	}
	return []string{t.Namespace, t.Key}
}

// String is the key as it is written: "namespace.key" or "key".
func (t Tag) String() string { return strings.Join(t.parts(), ".") }

// Label is the key of the label. Characters that cannot be in one are replaced by "_", so two tags can have one label.
func (t Tag) Label() string {
	var parts []string
	for _, part := range t.parts() {
		parts = append(parts, spell(part))
	}
	return Prefix + strings.Join(parts, ".")
}

// Value is what the label says of an instance with these tags. has is false if the instance does not have the tag. known
// is false if the API did not say which tags of the kind there are, which is not the same as none.
func (t Tag) Value(freeform map[string]string, defined map[string]map[string]any) (value string, has, known bool) {
	if t.Namespace == "" {
		text, has := freeform[t.Key]
		return LegalValue(text), has, freeform != nil
	}
	tag, has := t.in(defined)
	return LegalValue(textOf(tag)), has, defined != nil
}

// in looks a defined tag up. Case does not matter in namespaces and keys, as in OCI.
func (t Tag) in(defined map[string]map[string]any) (any, bool) {
	if value, has := defined[t.Namespace][t.Key]; has {
		return value, true
	}
	for namespace, keys := range defined {
		if !strings.EqualFold(namespace, t.Namespace) {
			continue
		}
		for key, value := range keys {
			if strings.EqualFold(key, t.Key) {
				return value, true
			}
		}
	}
	return nil, false
}

// maxSets bounds the memory of a Keeper for instances whose tags differ.
const maxSets = 1000

// Keeper picks the tags that become labels. Instances with the same ones, as those of a node pool, share their maps, which
// must not be changed: thousands of small maps would be most of what is remembered of instances.
type Keeper struct {
	tags []Tag

	mu   sync.Mutex
	sets map[string]set
}

type set struct {
	freeform map[string]string
	defined  map[string]map[string]any
}

// NewKeeper returns a Keeper of these tags.
func NewKeeper(tags []Tag) *Keeper { return &Keeper{tags: tags, sets: map[string]set{}} }

// Keep returns those of an instance's tags that become labels. What is nil, since the API did not say it, stays nil.
func (k *Keeper) Keep(freeform map[string]string, defined map[string]map[string]any) (map[string]string, map[string]map[string]any) {
	freeform, defined = keep(k.tags, freeform, defined)
	if freeform == nil && defined == nil {
		return nil, nil
	}
	key := fmt.Sprintf("%t %t %q %q", freeform == nil, defined == nil, freeform, defined) // fmt sorts the keys of maps
	k.mu.Lock()
	defer k.mu.Unlock()
	s, known := k.sets[key]
	if !known {
		if len(k.sets) >= maxSets {
			clear(k.sets)
		}
		s = set{freeform, defined}
		k.sets[key] = s
	}
	return s.freeform, s.defined
}

func keep(tags []Tag, freeform map[string]string, defined map[string]map[string]any) (map[string]string, map[string]map[string]any) {
	var keptFreeform map[string]string
	var keptDefined map[string]map[string]any
	for _, t := range tags {
		switch {
		case t.Namespace == "" && freeform != nil:
			if keptFreeform == nil {
				keptFreeform = map[string]string{}
			}
			if text, has := freeform[t.Key]; has {
				keptFreeform[t.Key] = text
			}
		case t.Namespace != "" && defined != nil:
			if keptDefined == nil {
				keptDefined = map[string]map[string]any{}
			}
			value, has := t.in(defined)
			if !has {
				continue
			}
			if keptDefined[t.Namespace] == nil {
				keptDefined[t.Namespace] = map[string]any{}
			}
			keptDefined[t.Namespace][t.Key] = textOf(value)
		}
	}
	return keptFreeform, keptDefined
}

// textOf is the value of a defined tag, which is a text, a number or a bool in JSON.
func textOf(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// LegalValue makes a text the value of a label: at most 63 letters, digits, "-", "_" and ".", with a letter or digit at both
// ends. Other characters are replaced by "_", and what is too much is cut off. Nothing may be left.
func LegalValue(text string) string {
	n := 0
	for i := range text {
		if n == maxLabel {
			text = text[:i]
			break
		}
		n++
	}
	return spell(text)
}

// spell replaces the characters that a label cannot have, and takes away those with which it cannot begin or end.
func spell(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, text)
	return strings.Trim(text, "-_.")
}
