// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

func TestInstancePresence(t *testing.T) {
	const empty, other = `[]`, `[{"id":"ocid1.instance.oc1.iad.other","lifecycleState":"RUNNING"}]`
	ok := func(body string) *http.Response { return answer(200, body) }
	state := func(s string) string { return `{"id":"` + testInstance + `","lifecycleState":"` + s + `"}` }
	notFound := func() *http.Response { return refusal(404, "NotAuthorizedOrNotFound") }

	tests := []struct {
		name        string
		get         func() *http.Response
		list        []func() *http.Response // pages
		compartment string
		want        Presence
		proof       string
		is          error // of the error, if Unknown
	}{
		{name: "running", get: func() *http.Response { return ok(state("RUNNING")) }, want: Present, proof: "state RUNNING"},
		{name: "stopped", get: func() *http.Response { return ok(state("STOPPED")) }, want: Present, proof: "state STOPPED"},
		{name: "terminating", get: func() *http.Response { return ok(state("TERMINATING")) }, want: Present, proof: "state TERMINATING"},
		{name: "terminated", get: func() *http.Response { return ok(state("TERMINATED")) }, want: Gone, proof: "state TERMINATED"},
		{name: "a state of the future", get: func() *http.Response { return ok(state("HIBERNATED")) }, want: Present, proof: "state HIBERNATED"},
		{
			name: "404, complete list without it", get: notFound, compartment: testCompartment,
			list: []func() *http.Response{func() *http.Response { return answer(200, other, "opc-next-page", "2") }, func() *http.Response { return ok(empty) }},
			want: Gone, proof: "404 and absent from a complete list of compartment " + testCompartment,
		},
		{
			name: "404, but listed on the second page", get: notFound, compartment: testCompartment,
			list: []func() *http.Response{func() *http.Response { return answer(200, other, "opc-next-page", "2") }, func() *http.Response { return ok("[" + state("RUNNING") + "]") }},
			want: Present, proof: "404, but in the list of compartment " + testCompartment + ": state RUNNING",
		},
		{
			name: "404, and listed as terminated", get: notFound, compartment: testCompartment,
			list: []func() *http.Response{func() *http.Response { return ok("[" + state("TERMINATED") + "]") }},
			want: Gone, proof: "404, but in the list of compartment " + testCompartment + ": state TERMINATED",
		},
		{name: "404, and no policy to list", get: notFound, compartment: testCompartment, list: []func() *http.Response{notFound}, want: Unknown},
		{
			name: "404, and the list breaks off", get: notFound, compartment: testCompartment,
			list: []func() *http.Response{func() *http.Response { return answer(200, other, "opc-next-page", "2") }, func() *http.Response { return refusal(400, "PaginationTokenExpired") }},
			want: Unknown,
		},
		{name: "404, throttled list", get: notFound, compartment: testCompartment, list: []func() *http.Response{func() *http.Response { return refusal(429, "TooManyRequests") }}, want: Unknown, is: ErrThrottled},
		{name: "404, compartment not known", get: notFound, want: Unknown},
		{name: "401", get: func() *http.Response { return refusal(401, "NotAuthenticated") }, compartment: testCompartment, want: Unknown, is: ErrUnauthorized},
		{name: "500", get: func() *http.Response { return refusal(500, "InternalServerError") }, compartment: testCompartment, want: Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pages := 0
				c, _ := newTestClient(t, func(_ int, r *http.Request) (*http.Response, error) {
					if strings.HasSuffix(r.URL.Path, "/instances") {
						if r.URL.Query().Get("compartmentId") != testCompartment {
							t.Errorf("listed %s", r.URL)
						}
						page := tt.list[min(pages, len(tt.list)-1)]
						pages++
						return page(), nil
					}
					return tt.get(), nil
				})
				got, proof, err := c.InstancePresence(t.Context(), testInstance, tt.compartment)
				if got != tt.want || string(proof) != tt.proof {
					t.Errorf("got %v, %q, want %v, %q (error: %v)", got, proof, tt.want, tt.proof, err)
				}
				if (err != nil) != (tt.want == Unknown) {
					t.Errorf("error %v with %v", err, got)
				}
				if err != nil && !strings.Contains(err.Error(), "neither presence nor absence can be proven: compute GetInstance: ") {
					t.Errorf("error %v does not tell what was read", err)
				}
				if errors.Is(err, ErrNotFound) {
					t.Errorf("the error of an unknown presence can be taken for an absence: %v", err)
				}
				if tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("error %v is not %v", err, tt.is)
				}
			})
		})
	}
}

func TestLookForInstanceReturnsIt(t *testing.T) {
	c, wire := newTestClient(t, always(200, `{"id":"`+testInstance+`","lifecycleState":"TERMINATING"}`))
	i, presence, _, err := c.LookForInstance(t.Context(), testInstance, testCompartment)
	if err != nil || presence != Present || i == nil || i.State != "TERMINATING" {
		t.Errorf("got %+v, %v, %v", i, presence, err)
	}
	if wire.count() != 1 {
		t.Errorf("%d requests, want one", wire.count())
	}
}

// The list is asked for only where a read answered 404: an error elsewhere must not turn into load.
func TestDecideListsOnlyAfterNotFound(t *testing.T) {
	presence, _, err := Decide(t.Context(), Evidence{
		Read:        func(context.Context) (string, error) { return "", errors.New("no route") },
		Compartment: testCompartment,
		List: func(context.Context) (string, bool, error) {
			t.Error("listed")
			return "", false, nil
		},
	})
	if presence != Unknown || err == nil {
		t.Errorf("got %v, %v", presence, err)
	}
}
