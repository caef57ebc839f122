// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"testing"
)

// C006.
func TestParseProviderID(t *testing.T) {
	tests := []struct {
		in   string
		want string
		err  error
	}{
		{"", "", ErrEmptyProviderID},
		{"ocid1.instance.oc1.iad.c1", "ocid1.instance.oc1.iad.c1", nil},
		{"oci://ocid1.instance.oc1.iad.c1", "ocid1.instance.oc1.iad.c1", nil},
		{"oci:///ocid1.instance.oc1.iad.c1", "ocid1.instance.oc1.iad.c1", nil},
		{"ocid1.instance.oc1..c1", "ocid1.instance.oc1..c1", nil},
		{"oci://ocid1.instance.oc1.eu-frankfurt-1.future.c1", "ocid1.instance.oc1.eu-frankfurt-1.future.c1", nil},
		{"aws:///us-east-1a/i-1", "", ErrForeignProvider},
		{"azure:///subscriptions/ocid1.instance.oc1.iad.c1", "", ErrForeignProvider},
		{"OCI://ocid1.instance.oc1.iad.c1", "", ErrForeignProvider},
		{"i-1", "", ErrForeignProvider},
		{"ocid1.volume.oc1.iad.x", "", ErrWrongResourceType},
		{"oci://ocid1.vnic.oc1.iad.x", "", ErrWrongResourceType},
		{"oci://", "", ErrInvalidOCID},
		{"oci://i-1", "", ErrInvalidOCID},
		{"oci://ocid1.instance.oc1.iad", "", ErrInvalidOCID},
		{"oci://ocid1.instance.oc1.iad.", "", ErrInvalidOCID},
		{"oci://ocid1.instance.oc1.iad.c1 ", "", ErrInvalidOCID},
		{"oci:////ocid1.instance.oc1.iad.c1", "", ErrInvalidOCID},
		{"ocid1.instance.oc1.iad.c1/../x", "", ErrInvalidOCID},
	}
	for _, tt := range tests {
		got, err := ParseProviderID(tt.in)
		if got != tt.want || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("ParseProviderID(%q) = %q, %v, want %q, %v", tt.in, got, err, tt.want, tt.err)
		}
		if err == nil {
			if again, err := ParseProviderID(ProviderID(got)); again != got || err != nil {
				t.Errorf("ParseProviderID(ProviderID(%q)) = %q, %v", got, again, err)
			}
		}
	}
}

func TestParseOCID(t *testing.T) {
	tests := []struct {
		in   string
		want OCID
		ok   bool
	}{
		{"ocid1.tenancy.oc1..aaaa", OCID{"tenancy", "oc1", "", "aaaa"}, true},
		{"ocid1.instance.oc1.phx.abc", OCID{"instance", "oc1", "phx", "abc"}, true},
		{"ocid1.subnet.oc19.eu-frankfurt-2.abc", OCID{"subnet", "oc19", "eu-frankfurt-2", "abc"}, true},
		{"ocid1.mounttarget.oc1.eu_frankfurt_1.abc", OCID{"mounttarget", "oc1", "eu_frankfurt_1", "abc"}, true},
		{"ocid2.instance.oc1.phx.abc", OCID{}, false},
		{"ocid1.instance..phx.abc", OCID{}, false},
		{"ocid1..oc1.phx.abc", OCID{}, false},
		{"ocid1.instance.oc1.phx", OCID{}, false},
		{"ocid1.a.b.c.d.e.f", OCID{}, false},
		{"ocid1.instance.oc1.phx.ab\nc", OCID{}, false},
		{"", OCID{}, false},
	}
	for _, tt := range tests {
		got, err := ParseOCID(tt.in)
		if got != tt.want || (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrInvalidOCID) {
			t.Errorf("ParseOCID(%q) = %+v, %v, want %+v", tt.in, got, err, tt.want)
		}
	}
}
