// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"reflect"
	"time"
)

// cloneOf returns a deep copy of a model. Unexported fields are copied as they are; models have none but those of
// time.Time.
func cloneOf[T any](v *T) *T {
	dst := new(T)
	deepCopy(reflect.ValueOf(dst).Elem(), reflect.ValueOf(v).Elem())
	return dst
}

func deepCopy(dst, src reflect.Value) {
	switch src.Kind() {
	case reflect.Pointer:
		if src.IsNil() {
			return
		}
		dst.Set(reflect.New(src.Type().Elem()))
		deepCopy(dst.Elem(), src.Elem())
	case reflect.Interface:
		if src.IsNil() {
			return
		}
		inner := reflect.New(src.Elem().Type()).Elem()
		deepCopy(inner, src.Elem())
		dst.Set(inner)
	case reflect.Slice:
		if src.IsNil() {
			return
		}
		dst.Set(reflect.MakeSlice(src.Type(), src.Len(), src.Len()))
		for i := range src.Len() {
			deepCopy(dst.Index(i), src.Index(i))
		}
	case reflect.Map:
		if src.IsNil() {
			return
		}
		dst.Set(reflect.MakeMapWithSize(src.Type(), src.Len()))
		for it := src.MapRange(); it.Next(); {
			element := reflect.New(src.Type().Elem()).Elem()
			deepCopy(element, it.Value())
			dst.SetMapIndex(it.Key(), element)
		}
	case reflect.Struct:
		dst.Set(src)
		if src.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range src.NumField() {
			if dst.Field(i).CanSet() {
				deepCopy(dst.Field(i), src.Field(i))
			}
		}
	default:
		dst.Set(src)
	}
}
