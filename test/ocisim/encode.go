// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
)

// apiTime is how the services write timestamps.
const apiTime = `"2006-01-02T15:04:05.000Z"`

// encoder writes the SDK's models as the services do. encoding/json alone does not: optional fields that are nil are
// left out here, mandatory lists and maps are never null, and times have milliseconds.
type encoder struct {
	plans          map[reflect.Type][]fieldPlan
	discriminators map[reflect.Type]map[string]json.RawMessage
}

type fieldPlan struct {
	index     int
	name      string
	mandatory bool
}

func newEncoder() encoder {
	return encoder{plans: map[reflect.Type][]fieldPlan{}, discriminators: map[reflect.Type]map[string]json.RawMessage{}}
}

// encode writes a model, or anything made of models.
func (e *encoder) encode(v any) []byte {
	return e.append(nil, reflect.ValueOf(v), nil)
}

// encodeDropping leaves optional fields of the top level out when drop says so, except those in keep and the
// identifier, without which an item of a list would be of no use.
func (e *encoder) encodeDropping(v any, keep []string, drop func() bool) []byte {
	return e.append(nil, reflect.ValueOf(v), func(name string) bool {
		return name != "id" && !slices.Contains(keep, name) && drop()
	})
}

func (e *encoder) append(buf []byte, v reflect.Value, drop func(string) bool) []byte {
	switch v.Kind() {
	case reflect.Invalid:
		return append(buf, "null"...)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(buf, "null"...)
		}
		return e.append(buf, v.Elem(), drop)
	case reflect.Struct:
		return e.appendStruct(buf, v, drop)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return appendJSON(buf, v)
		}
		buf = append(buf, '[')
		for i := range v.Len() {
			if i > 0 {
				buf = append(buf, ',')
			}
			buf = e.append(buf, v.Index(i), nil)
		}
		return append(buf, ']')
	case reflect.Map:
		return e.appendMap(buf, v)
	default:
		return appendJSON(buf, v)
	}
}

func (e *encoder) appendMap(buf []byte, v reflect.Value) []byte {
	buf = append(buf, '{')
	for i, key := range sortedMapKeys(v) {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendJSON(buf, key)
		buf = append(buf, ':')
		buf = e.append(buf, v.MapIndex(key), nil)
	}
	return append(buf, '}')
}

func sortedMapKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

func (e *encoder) appendStruct(buf []byte, v reflect.Value, drop func(string) bool) []byte {
	switch t := v.Interface().(type) {
	case common.SDKTime:
		return t.UTC().AppendFormat(buf, apiTime)
	case time.Time:
		return t.UTC().AppendFormat(buf, apiTime)
	}
	buf = append(buf, '{')
	first := true
	for name, raw := range e.discriminator(v) {
		buf = append(buf, '"')
		buf = append(buf, name...)
		buf = append(buf, '"', ':')
		buf = append(buf, raw...)
		first = false
	}
	for _, f := range e.plan(v.Type()) {
		field := v.Field(f.index)
		if !f.mandatory && (absent(field) || (drop != nil && drop(f.name))) {
			continue
		}
		if !first {
			buf = append(buf, ',')
		}
		first = false
		buf = append(buf, '"')
		buf = append(buf, f.name...)
		buf = append(buf, '"', ':')
		buf = e.append(buf, field, nil)
	}
	return append(buf, '}')
}

// absent says whether an optional field has no value.
func absent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		return v.IsNil()
	case reflect.String:
		return v.Len() == 0
	default:
		return false
	}
}

// plan returns the JSON fields of a model, in order.
func (e *encoder) plan(t reflect.Type) []fieldPlan {
	if plan, ok := e.plans[t]; ok {
		return plan
	}
	plan := make([]fieldPlan, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		plan = append(plan, fieldPlan{index: i, name: name, mandatory: f.Tag.Get("mandatory") == "true"})
	}
	e.plans[t] = plan
	return plan
}

// discriminator returns what a polymorphic model adds to its own fields when it marshals itself: the field that tells
// its type.
func (e *encoder) discriminator(v reflect.Value) map[string]json.RawMessage {
	t := v.Type()
	if fields, known := e.discriminators[t]; known {
		return fields
	}
	var fields map[string]json.RawMessage
	if m, ok := reflect.Zero(t).Interface().(json.Marshaler); ok {
		if raw, err := m.MarshalJSON(); err == nil && json.Unmarshal(raw, &fields) == nil {
			for _, f := range e.plan(t) {
				delete(fields, f.name)
			}
		}
	}
	e.discriminators[t] = fields
	return fields
}

func appendJSON(buf []byte, v reflect.Value) []byte {
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		// Scalars, maps of them and request bodies that were JSON before: all of them marshal.
		panic("ocisim: " + err.Error())
	}
	return append(buf, raw...)
}
