// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

type tokenBody struct {
	Name  string
	Ports []int
	Tags  map[string]string
}

// Equal requests have equal tokens in every process; a token of a known request guards against a silent change, which
// would make a create that a former version sent be repeated by the next one.
func TestRetryTokenIsStable(t *testing.T) {
	body := tokenBody{"lb", []int{80, 443}, map[string]string{"a": "1", "b": "2"}}
	const want = "OIN4X7NZNHHCCHLELKIVNYC4YRWK47MJL7JFLJYIANNRDPUJUBCA"
	if got := RetryToken("CreateLoadBalancer", "cluster", "owner", body); got != want {
		t.Errorf("token %s, want %s", got, want)
	}
}

func TestRetryTokenTellsRequestsApart(t *testing.T) {
	form := regexp.MustCompile(`^[A-Z2-7]{52}$`)
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.StringMatching(`[ab:0-9]{0,4}`), 8, 8).Draw(t, "parts")
		one := RetryToken(parts[0], parts[1], parts[2], tokenBody{Name: parts[3]})
		two := RetryToken(parts[4], parts[5], parts[6], tokenBody{Name: parts[7]})
		same := parts[0] == parts[4] && parts[1] == parts[5] && parts[2] == parts[6] && parts[3] == parts[7]
		if (one == two) != same {
			t.Errorf("%q and %q: tokens %s and %s", parts[:4], parts[4:], one, two)
		}
		if !form.MatchString(one) {
			t.Errorf("token %q", one)
		}
	})
}
