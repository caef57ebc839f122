// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
)

// The SDK holds every field behind a pointer, and the services leave fields out now and then, those marked as mandatory
// too. Reading therefore goes through value, which takes an absent field for the zero value, and writing through
// overlay and its kin, which leave out what nobody has said.

// value returns what p points at, or the zero value if the field is absent.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// timeValue is value for the SDK's time type.
func timeValue(t *common.SDKTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// present returns a pointer to v, or nil if v is the zero value, which is how the domain types say "not set".
func present[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// overlay lays v over the value that the cloud has (nil if it gave none). An unchanged value is sent as it came; a zero v
// leaves the field out, so that the API's default applies.
func overlay[T comparable](cloud *T, v T) *T {
	if cloud != nil && *cloud == v {
		return cloud
	}
	return present(v)
}

// overlayZero is overlay for fields whose zero value is a value of its own (a flag that is off, port 0): it is sent
// where it changes something.
func overlayZero[T comparable](cloud *T, v T) *T {
	if cloud == nil {
		return present(v)
	}
	return &v
}

// overlayList lays v over the list that the cloud has. An empty v over a list with entries is sent as an empty list,
// because a field left out may mean "no change".
func overlayList(cloud, v []string) []string {
	if len(v) == 0 && len(cloud) == 0 {
		return cloud
	}
	return orEmpty(v)
}

// orEmpty returns a list that is sent as "[]" where s has nothing: a mandatory list must not be absent, and in an update
// an absent list may mean "no change".
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// originOf returns the SDK object that a domain value was read from, or an empty one if it was read from elsewhere.
func originOf[T any](origin any) *T {
	if o, ok := origin.(*T); ok && o != nil {
		return o
	}
	return new(T)
}
