// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"pgregory.net/rapid"
)

// This file makes SDK values for the tests of the conversions, by reflection: a field that the SDK adds one day is
// covered without anybody thinking of it.

var sdkTime = reflect.TypeFor[common.SDKTime]()

// fullValue is a T with every field set, nested ones too. Polymorphic fields (interfaces) stay nil.
func fullValue[T any](t *testing.T) T {
	t.Helper()
	var out T
	n := 0
	fill(reflect.ValueOf(&out).Elem(), "", true, func(_ string, v reflect.Value, _ bool) bool {
		n++
		switch v.Kind() {
		case reflect.String:
			v.SetString(fmt.Sprintf("text%d", n))
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(int64(n))
		case reflect.Float32, reflect.Float64:
			v.SetFloat(float64(n))
		}
		return true
	})
	return out
}

// drawValue is a T with values by chance; what the SDK does not mark as mandatory is absent by chance.
func drawValue[T any](t *rapid.T) T {
	var out T
	fill(reflect.ValueOf(&out).Elem(), reflect.TypeFor[T]().Name(), true, func(label string, v reflect.Value, mandatory bool) bool {
		switch v.Kind() {
		case reflect.String:
			text := rapid.StringMatching(`[a-zA-Z0-9./:_-]{0,12}`)
			if mandatory && v.Type() != reflect.TypeFor[string]() {
				text = rapid.StringMatching(`[A-Z_]{1,12}`) // an enumeration: empty means absent
			}
			v.SetString(text.Draw(t, label))
		case reflect.Bool:
			v.SetBool(rapid.Bool().Draw(t, label))
		case reflect.Int, reflect.Int64:
			v.SetInt(rapid.Int64Range(0, 70000).Draw(t, label))
		case reflect.Float32, reflect.Float64:
			v.SetFloat(rapid.Float64Range(0, 100).Draw(t, label))
		case reflect.Pointer, reflect.Slice, reflect.Map:
			return mandatory || rapid.Bool().Draw(t, label+" is there")
		}
		return true
	})
	return out
}

// fill walks through v. set fills scalars and decides whether a pointer, list or map is there.
func fill(v reflect.Value, label string, mandatory bool, set func(label string, v reflect.Value, mandatory bool) bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if set(label, v, mandatory) {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), label, true, set)
		}
	case reflect.Struct:
		if v.Type() == sdkTime {
			v.Field(0).Set(reflect.ValueOf(time.Date(2026, 3, 1, 12, 30, 45, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			fill(v.Field(i), label+"."+f.Name, f.Tag.Get("mandatory") == "true", set)
		}
	case reflect.Slice:
		if e := v.Type().Elem(); e.Kind() == reflect.Interface && e != reflect.TypeFor[any]() {
			return
		}
		if set(label, v, mandatory) {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			for i := range v.Len() {
				fill(v.Index(i), fmt.Sprintf("%s[%d]", label, i), true, set)
			}
		}
	case reflect.Map:
		if set(label, v, mandatory) {
			v.Set(reflect.MakeMap(v.Type()))
			for _, key := range []string{"one", "two"} {
				elem := reflect.New(v.Type().Elem()).Elem()
				fill(elem, label+"["+key+"]", true, set)
				v.SetMapIndex(reflect.ValueOf(key), elem)
			}
		}
	case reflect.Uint8: // an octet of a []byte
		v.SetUint('x')
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[any]() { // the value of a defined tag; other interfaces are polymorphic fields
			v.Set(reflect.ValueOf("value"))
		}
	default:
		set(label, v, mandatory)
	}
}

// wire is the JSON form of an SDK value as it goes over the wire: without the fields that are nil.
func wire(t interface{ Fatalf(string, ...any) }, v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("decode: %v", err)
	}
	return withoutNulls(out)
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, elem := range v {
			if elem == nil {
				delete(v, key)
			} else {
				v[key] = withoutNulls(elem)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	}
	return v
}

// restrict removes from a JSON value what the type, a request body of the SDK, has no field for.
func restrict(v any, to reflect.Type) any {
	for to.Kind() == reflect.Pointer {
		to = to.Elem()
	}
	switch v := v.(type) {
	case []any:
		if to.Kind() == reflect.Slice {
			for i := range v {
				v[i] = restrict(v[i], to.Elem())
			}
		}
	case map[string]any:
		switch to.Kind() {
		case reflect.Map:
			for key := range v {
				v[key] = restrict(v[key], to.Elem())
			}
		case reflect.Struct:
			fields := map[string]reflect.Type{}
			for i := range to.NumField() {
				name, _, _ := strings.Cut(to.Field(i).Tag.Get("json"), ",")
				fields[name] = to.Field(i).Type
			}
			for key := range v {
				if field, known := fields[key]; known {
					v[key] = restrict(v[key], field)
				} else {
					delete(v, key)
				}
			}
		}
	}
	return v
}

// reread is the object that a service would answer with after it has been given body.
func reread[T any](t interface{ Fatalf(string, ...any) }, body any) T {
	text, err := json.Marshal(wire(t, body))
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	var out T
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("decode: %v", err)
	}
	return out
}
