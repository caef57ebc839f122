// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func TestThrottling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, ocisim.Options{
			Read:  ocisim.Rate{PerSecond: 2, Burst: 3},
			Rates: map[string]ocisim.Rate{"virtualnetwork.write": {PerSecond: 1}},
		})
		alice, bob := f.as(f.region, "alice"), f.as(f.region, "bob")
		get := func(c *client) response { return c.get(api + "/instances/" + f.instance) }
		for range 3 {
			get(alice).want(http.StatusOK)
		}
		r := get(alice)
		if message := r.wantError(http.StatusTooManyRequests, "TooManyRequests"); message != "User-rate limit exceeded." {
			t.Errorf("message %q", message)
		}
		if _, present := r.header["Retry-After"]; present {
			t.Error("OCI documents no Retry-After on a 429")
		}
		get(bob).want(http.StatusOK)                          // another principal
		alice.get(api + "/vcns/" + f.vcn).want(http.StatusOK) // another service
		alice.post(api+"/networkSecurityGroups", object{"compartmentId": f.compartment, "vcnId": f.vcn}).want(http.StatusOK)
		alice.post(api+"/networkSecurityGroups", object{"compartmentId": f.compartment, "vcnId": f.vcn}).
			wantError(http.StatusTooManyRequests, "TooManyRequests") // a burst of one for writes

		time.Sleep(time.Second) // two tokens
		get(alice).want(http.StatusOK)
		get(alice).want(http.StatusOK)
		get(alice).wantError(http.StatusTooManyRequests, "TooManyRequests")
		if n := len(f.region.SecurityGroups()); n != 1 {
			t.Errorf("%d groups: a throttled write took effect", n)
		}
		if n := f.region.Counts()["compute.GetInstance"]; n != 8 {
			t.Errorf("%d calls counted, want throttled ones too", n)
		}
		f.region.SetRates(ocisim.Rate{}, ocisim.Rate{})
		for range 20 {
			get(alice).want(http.StatusOK)
		}
	})
}

func TestRetryAfterOnDemand(t *testing.T) {
	f := newFixture(t, ocisim.Options{Read: ocisim.Rate{PerSecond: 0.001}, RetryAfter: 1500 * time.Millisecond})
	f.get(api + "/instances/" + f.instance).want(http.StatusOK)
	if got := f.get(api + "/instances/" + f.instance).want(http.StatusTooManyRequests).header.Get("Retry-After"); got != "1.5" {
		t.Errorf("Retry-After %q", got)
	}
}

// TestReadsThroughPOST count as reads.
func TestReadsThroughPOST(t *testing.T) {
	f := newFixture(t, ocisim.Options{Write: ocisim.Rate{PerSecond: 0.001}})
	address := f.region.AddPublicIP(ocisim.PublicIP{Name: "p", Address: "198.18.7.7"})
	for range 3 {
		o := f.post(api+"/publicIps/actions/getByIpAddress", object{"ipAddress": "198.18.7.7"}).want(http.StatusOK).object()
		if str(o, "id") != address {
			t.Fatalf("got %v", o)
		}
	}
}
