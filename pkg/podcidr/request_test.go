// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package podcidr_test

import (
	"errors"
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/pkg/podcidr"
)

func TestParseRequest(t *testing.T) {
	for text, want := range map[string]bool{
		`{"ip-count": 256}`: true,
		`{"ip-count": 16, "cidr-blocks": ["10.0.0.0/16", "2001:db8::/64"]}`: true,
		`{"ip-count": 255}`: false,
		`{"ip-count": 0}`:   false,
		`{"ip-count": -4}`:  false,
		`{}`:                false,
		`256`:               false,
		``:                  false,
		`{"ip-count": 16, "cidr-blocks": ["10.0.0.0"]}`:                   false,
		`{"ip-count": 16, "cidr-blocks": ["10.0.0.0/16", "10.1.0.0/16"]}`: false,
	} {
		r, err := podcidr.ParseRequest(text)
		if (err == nil) != want || err != nil && !errors.Is(err, podcidr.ErrRequest) {
			t.Errorf("%s: %+v, %v; want success: %t", text, r, err, want)
		}
	}
}

// The lengths of contract/ccm.md §6.3.
func TestBits(t *testing.T) {
	for _, test := range []struct {
		count, ipv4, ipv6 int // 0: refused
	}{
		{1, 0, 128}, {2, 0, 124}, {4, 30, 124}, {16, 28, 124}, {32, 27, 120}, {256, 24, 120}, {1 << 14, 18, 112}, {1 << 15, 0, 112}, {1 << 50, 0, 80},
	} {
		r := podcidr.Request{Count: test.count}
		for family, want := range map[podcidr.Family]int{podcidr.IPv4: test.ipv4, podcidr.IPv6: test.ipv6} {
			got, err := r.Bits(family)
			if got != want || (err == nil) != (want != 0) {
				t.Errorf("%d addresses, %s: /%d, %v; want /%d", test.count, family, got, err, want)
			}
		}
	}
}
