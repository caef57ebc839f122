// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

const (
	testTenancy     = "ocid1.tenancy.oc1..t"
	testUser        = "ocid1.user.oc1..u"
	testFingerprint = "20:3b:97:13:55:1c:aa:66:41:41:4b:7c:7c:ef:2e:42"
	testCompartment = "ocid1.compartment.oc1..c"
	testInstance    = "ocid1.instance.oc1.iad.i1"
	testRegion      = "us-ashburn-1"
)

func testPrincipal(t *testing.T) common.ConfigurationProvider {
	t.Helper()
	p, err := UserPrincipal(UserCredentials{
		Tenancy: testTenancy, User: testUser, Region: testRegion, Fingerprint: testFingerprint, PrivateKey: pki.SigningKeyPEM(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// responder answers requests in place of OCI.
type responder func(n int, r *http.Request) (*http.Response, error)

// recorder counts the requests that a responder sees and keeps them.
type recorder struct {
	wire responder

	mu       sync.Mutex
	requests []*http.Request
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.requests = append(r.requests, request)
	n := len(r.requests)
	r.mu.Unlock()
	if request.Body != nil {
		_, _ = io.Copy(io.Discard, request.Body)
		request.Body.Close()
	}
	response, err := r.wire(n, request)
	if response != nil {
		response.Request = request
	}
	return response, err
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests)
}

// newTestClient returns a client whose requests are answered by w. Its jitter is always the mean.
func newTestClient(t *testing.T, w responder, change ...func(*Options)) (*Client, *recorder) {
	t.Helper()
	r := &recorder{wire: w}
	o := Options{
		Provider:  testPrincipal(t),
		Transport: r,
		Limits:    RateLimits{Disabled: true},
		Rand:      func() float64 { return 0.5 },
	}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c, r
}

func answer(status int, body string, headers ...string) *http.Response {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Opc-Request-Id", "/REQ/1")
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func refusal(status int, code string, headers ...string) *http.Response {
	return answer(status, `{"code":"`+code+`","message":"as the test wants it"}`, headers...)
}

const runningInstance = `{"id":"` + testInstance + `","lifecycleState":"RUNNING"}`

// always answers every request alike.
func always(status int, body string) responder {
	return func(int, *http.Request) (*http.Response, error) { return answer(status, body), nil }
}

// call makes a request with the given description; what it asks for does not matter.
func call(ctx context.Context, c *Client, o op) error {
	id := testInstance
	_, err := invoke(ctx, c, o, func(ctx context.Context) (core.GetInstanceResponse, *http.Response, error) {
		r, err := c.compute.GetInstance(ctx, core.GetInstanceRequest{InstanceId: &id})
		return r, r.RawResponse, err
	})
	return err
}

// An op of each kind.
var (
	testRead   = op{service: ServiceCompute, name: "TestRead", resource: "test", verb: "get", repeatable: true}
	testWrite  = op{service: ServiceCompute, name: "TestWrite", resource: "test", verb: "update", write: true, repeatable: true}
	testCreate = op{service: ServiceCompute, name: "TestCreate", resource: "test", verb: "create", write: true}
)
