// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

const unauthenticated = "The required information to complete authentication was not provided or was incorrect."

type signatureTest struct {
	name   string
	post   bool
	change func(c *client)
	ok     bool
}

func signatureTests() []signatureTest {
	withBody := []string{"date", "(request-target)", "host", "content-length", "content-type", "x-content-sha256"}
	return []signatureTest{
		{name: "get", ok: true},
		{name: "post", post: true, ok: true},
		{name: "another order of headers", post: true, ok: true, change: func(c *client) {
			c.signed = []string{"(request-target)", "host", "x-content-sha256", "content-type", "content-length", "date"}
		}},
		{name: "more headers than required", ok: true, change: func(c *client) {
			c.signed = []string{"date", "(request-target)", "host", "content-type"}
		}},
		{name: "four minutes early", ok: true, change: func(c *client) {
			c.date = func() time.Time { return time.Now().Add(-4 * time.Minute) }
		}},
		{name: "six minutes early", change: func(c *client) {
			c.date = func() time.Time { return time.Now().Add(-6 * time.Minute) }
		}},
		{name: "six minutes late", change: func(c *client) {
			c.date = func() time.Time { return time.Now().Add(6 * time.Minute) }
		}},
		{name: "no signature", change: func(c *client) { c.key = nil }},
		{name: "unknown key", change: func(c *client) { c.keyID = "tenancy/nobody/00:00" }},
		{name: "date not signed", change: func(c *client) { c.signed = []string{"(request-target)", "host"} }},
		{name: "host not signed", change: func(c *client) { c.signed = []string{"date", "(request-target)"} }},
		{name: "target not signed", change: func(c *client) { c.signed = []string{"date", "host"} }},
		{name: "body hash not signed", post: true, change: func(c *client) { c.signed = withBody[:5] }},
		{name: "length not signed", post: true, change: func(c *client) {
			c.signed = []string{"date", "(request-target)", "host", "content-type", "x-content-sha256"}
		}},
		{name: "date changed after signing", change: func(c *client) {
			c.tamper = func(r *http.Request) {
				r.Header.Set("Date", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat))
			}
		}},
		{name: "target changed after signing", change: func(c *client) {
			c.tamper = func(r *http.Request) { r.URL.RawQuery = "limit=1" }
		}},
		{name: "host changed after signing", change: func(c *client) {
			c.tamper = func(r *http.Request) { r.Host = "elsewhere.oraclecloud.com" }
		}},
		{name: "hash of another body", post: true, change: func(c *client) {
			c.tamper = func(r *http.Request) {
				r.Header.Set("X-Content-Sha256", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
			}
		}},
		{name: "other algorithm", change: func(c *client) {
			c.tamper = func(r *http.Request) {
				r.Header.Set("Authorization", `Signature version="1",headers="date (request-target) host",keyId="`+c.keyID+
					`",algorithm="hmac-sha256",signature="AAAA"`)
			}
		}},
		{name: "bearer token", change: func(c *client) {
			c.tamper = func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }
		}},
	}
}

func TestSignatures(t *testing.T) {
	f := newFixture(t, ocisim.Options{Signatures: true})
	good := f.as(f.region, "alice")
	group := object{"compartmentId": f.compartment, "vcnId": f.vcn}
	for _, test := range signatureTests() {
		t.Run(test.name, func(t *testing.T) {
			c := *good
			c.t = t
			if test.change != nil {
				test.change(&c)
			}
			send := func() response { return c.get(api + "/instances/" + f.instance) }
			if test.post {
				send = func() response { return c.post(api+"/networkSecurityGroups", group) }
			}
			if test.ok {
				send().want(http.StatusOK)
				return
			}
			before := len(f.region.SecurityGroups())
			if message := send().wantError(http.StatusUnauthorized, "NotAuthenticated"); message != unauthenticated {
				t.Errorf("message %q", message)
			}
			if got := len(f.region.SecurityGroups()); got != before {
				t.Errorf("an unauthenticated call created %d groups", got-before)
			}
		})
	}
}

// TestSignatureBodyTampering sends a signed request whose body was replaced on the way.
func TestSignatureBodyTampering(t *testing.T) {
	f := newFixture(t, ocisim.Options{Signatures: true})
	c := f.as(f.region, "alice")
	c.tamper = func(r *http.Request) {
		other := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		r.Body = other.Body
		r.ContentLength = 0
	}
	c.post(api+"/networkSecurityGroups", object{"compartmentId": f.compartment, "vcnId": f.vcn}).
		wantError(http.StatusUnauthorized, "NotAuthenticated")
}

// TestSessionEnds lets a session token run out.
func TestSessionEnds(t *testing.T) {
	key := pki.SigningKey()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, ocisim.Options{Signatures: true})
		f.region.RegisterSession("ST$token", &key.PublicKey, ocisim.Principal{ID: "instance"}, time.Now().Add(time.Hour))
		c := *f.client
		c.keyID, c.key = "ST$token", key
		c.get(api + "/instances/" + f.instance).want(http.StatusOK)
		time.Sleep(time.Hour)
		c.get(api+"/instances/"+f.instance).wantError(http.StatusUnauthorized, "NotAuthenticated")
	})
}

// TestSignaturesIgnoreAdvance keeps clients working whose clock does not follow the region's.
func TestSignaturesIgnoreAdvance(t *testing.T) {
	f := newFixture(t, ocisim.Options{Signatures: true})
	f.region.Advance(24 * time.Hour)
	f.as(f.region, "alice").get(api + "/instances/" + f.instance).want(http.StatusOK)
}

// TestSignatureOverConnection proves the same check behind a real server, where the Host header carries a port and
// Go takes Content-Length out of the headers.
func TestSignatureOverConnection(t *testing.T) {
	f := newFixture(t, ocisim.Options{Signatures: true})
	server := httptest.NewServer(f.region)
	defer server.Close()
	c := *f.as(f.region, "alice")
	c.transport, c.base = server.Client().Transport, server.URL
	c.get(api + "/instances?compartmentId=" + f.compartment + "&displayName=node-1&limit=3").want(http.StatusOK)
	c.post(api+"/networkSecurityGroups", object{"compartmentId": f.compartment, "vcnId": f.vcn}).want(http.StatusOK)
	c.key = nil
	c.get(api+"/instances/"+f.instance).wantError(http.StatusUnauthorized, "NotAuthenticated")
}
