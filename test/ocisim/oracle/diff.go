// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// maxValue is the number of characters of a field's value in a report.
const maxValue = 120

// differences compares two values of one field, down to what is not an object or a list.
func differences(field string, before, after any) []Change {
	if reflect.DeepEqual(before, after) || (empty(before) && empty(after)) {
		return nil
	}
	if b, ok := before.(map[string]any); ok {
		if a, ok := after.(map[string]any); ok {
			return objectDifferences(field, b, a)
		}
	}
	if b, ok := before.([]any); ok {
		if a, ok := after.([]any); ok && (ofObjects(b) || ofObjects(a)) {
			return listDifferences(field, b, a)
		}
	}
	return []Change{{Field: field, Before: show(field, before), After: show(field, after)}}
}

// empty says whether a field has no value: a list or an object without content is no other to a client than none.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func objectDifferences(field string, before, after map[string]any) []Change {
	names := make([]string, 0, len(before)+len(after))
	for name := range before {
		names = append(names, name)
	}
	for name := range after {
		if _, both := before[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var changes []Change
	for _, name := range names {
		changes = append(changes, differences(below(field, name), before[name], after[name])...)
	}
	return changes
}

func listDifferences(field string, before, after []any) []Change {
	var changes []Change
	for i := range max(len(before), len(after)) {
		var b, a any
		if i < len(before) {
			b = before[i]
		}
		if i < len(after) {
			a = after[i]
		}
		changes = append(changes, differences(below(field, strconv.Itoa(i)), b, a)...)
	}
	return changes
}

func ofObjects(list []any) bool {
	if len(list) == 0 {
		return false
	}
	_, ok := list[0].(map[string]any)
	return ok
}

func below(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

// show writes a value for a report. Fields that hold secrets are not shown.
func show(field string, v any) string {
	if v == nil {
		return ""
	}
	if hidden(field) {
		return "[redacted]"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	s := []rune(string(text))
	if len(s) > maxValue {
		return string(s[:maxValue]) + "…"
	}
	return string(s)
}

func hidden(field string) bool {
	lower := strings.ToLower(field)
	return slices.ContainsFunc([]string{"privatekey", "passphrase", "password", "secret"}, func(word string) bool {
		return strings.Contains(lower, word)
	})
}
