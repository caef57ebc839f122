// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func (f *fixture) createGroup() response {
	f.t.Helper()
	return f.post(api+"/networkSecurityGroups", object{"compartmentId": f.compartment, "vcnId": f.vcn})
}

// TestFaults runs each kind of fault over the in-process transport and over a connection.
func TestFaults(t *testing.T) {
	tests := []struct {
		name    string
		fault   ocisim.Fault
		status  int // 0: the connection breaks
		code    string
		created int
	}{
		{name: "error before", fault: ocisim.Fault{Status: 500}, status: 500, code: "InternalServerError"},
		{name: "error after", fault: ocisim.Fault{Status: 503, Applied: true}, status: 503, code: "ServiceUnavailable", created: 1},
		{name: "own code", fault: ocisim.Fault{Status: 409, Code: "LockConflict", Message: "locked"}, status: 409, code: "LockConflict"},
		{name: "drop before", fault: ocisim.Fault{Drop: ocisim.BeforeApply}},
		{name: "drop after", fault: ocisim.Fault{Drop: ocisim.AfterApply}, created: 1},
		{name: "half body", fault: ocisim.Fault{HalfBody: true}, created: 1},
	}
	for _, test := range tests {
		for _, wire := range []bool{false, true} {
			t.Run(test.name+map[bool]string{false: " in process", true: " over a connection"}[wire], func(t *testing.T) {
				f := newFixture(t, ocisim.Options{})
				if wire {
					server := httptest.NewServer(f.region)
					defer server.Close()
					f.transport, f.base = server.Client().Transport, server.URL
				}
				test.fault.Operation = "CreateNetworkSecurityGroup"
				f.region.Fault(test.fault)
				r := f.createGroup()
				if test.status == 0 {
					if r.err == nil {
						t.Errorf("status %d and body %q instead of a broken connection", r.status, r.body)
					}
				} else if message := r.wantError(test.status, test.code); test.fault.Message != "" && message != test.fault.Message {
					t.Errorf("message %q", message)
				}
				if got := len(f.region.SecurityGroups()); got != test.created {
					t.Errorf("%d groups, want %d", got, test.created)
				}
				calls := f.region.Calls()
				if len(calls) != 1 || calls[0].Fault == "" {
					t.Errorf("the log does not show the fault: %+v", calls)
				}
				f.get(api + "/instances/" + f.instance).want(http.StatusOK) // other operations are spared
			})
		}
	}
}

func TestDropLooksLikeALostConnection(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	f.region.Fault(ocisim.Fault{Drop: ocisim.BeforeApply, Times: 1})
	if r := f.createGroup(); !errors.Is(r.err, ocisim.ErrDropped) || !errors.Is(r.err, syscall.ECONNRESET) {
		t.Errorf("error %v", r.err)
	}
	f.region.Fault(ocisim.Fault{HalfBody: true})
	r := f.createGroup()
	if !errors.Is(r.err, io.ErrUnexpectedEOF) || r.status != http.StatusOK || len(r.body) == 0 || strings.HasSuffix(string(r.body), "}") {
		t.Errorf("status %d, body %q, error %v; want half of a body", r.status, r.body, r.err)
	}
}

func TestNthCall(t *testing.T) {
	statuses := func(fault ocisim.Fault, calls int) []int {
		f := newFixture(t, ocisim.Options{})
		f.region.Fault(fault)
		var got []int
		for range calls {
			got = append(got, f.get(api+"/instances/"+f.instance).status)
		}
		return got
	}
	tests := []struct {
		name  string
		fault ocisim.Fault
		want  []int
	}{
		{"every", ocisim.Fault{Status: 500}, []int{500, 500, 500, 500}},
		{"the first two", ocisim.Fault{Status: 500, Times: 2}, []int{500, 500, 200, 200}},
		{"the third", ocisim.Fault{Status: 500, Nth: 3}, []int{200, 200, 500, 200}},
		{"second and third", ocisim.Fault{Status: 500, Nth: 2, Times: 2}, []int{200, 500, 500, 200}},
		{"by full name", ocisim.Fault{Status: 500, Operation: "compute.GetInstance", Nth: 1}, []int{500, 200, 200, 200}},
		{"of another service", ocisim.Fault{Status: 500, Operation: "loadbalancer.GetInstance"}, []int{200, 200, 200, 200}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, statuses(test.fault, 4)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestFaultConditions(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	other := f.region.AddInstance(ocisim.Instance{Name: "other"})
	alice, bob := f.as(f.region, "alice"), f.as(f.region, "bob")
	get := func(c *client, id string) int { return c.get(api + "/instances/" + id).status }

	remove := f.region.Fault(ocisim.Fault{Principal: "alice", Resource: f.instance, Status: 500})
	if a, b, c := get(alice, f.instance), get(bob, f.instance), get(alice, other); a != 500 || b != 200 || c != 200 {
		t.Errorf("statuses %d %d %d, want only alice's call of one instance to fail", a, b, c)
	}
	if n := len(f.region.Faults()); n != 1 {
		t.Errorf("%d faults are armed", n)
	}
	remove()
	if got := get(alice, f.instance); got != 200 || len(f.region.Faults()) != 0 {
		t.Errorf("status %d after the fault was removed", got)
	}
	f.region.Fault(ocisim.Fault{Match: func(c ocisim.Call) bool { return strings.Contains(c.Query, "displayName") }, Status: 500})
	uri := api + "/instances?compartmentId=" + f.compartment
	if a, b := f.get(uri).status, f.get(uri+"&displayName=x").status; a != 200 || b != 500 {
		t.Errorf("statuses %d %d", a, b)
	}
}

func TestChanceOfAFault(t *testing.T) {
	f := newFixture(t, ocisim.Options{Seed: 7})
	f.region.Fault(ocisim.Fault{Status: 500, Chance: 0.3})
	failed := 0
	for range 1000 {
		if f.get(api+"/instances/"+f.instance).status == 500 {
			failed++
		}
	}
	if failed < 250 || failed > 350 {
		t.Errorf("%d of 1000 calls failed with a chance of 0.3", failed)
	}
}

// TestDelayPastTheClientsPatience applies a write whose answer comes too late.
func TestDelayPastTheClientsPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, applied := range []bool{false, true} {
			f := newFixture(t, ocisim.Options{})
			f.region.Fault(ocisim.Fault{Operation: "CreateNetworkSecurityGroup", Delay: 20 * time.Second, Applied: applied, Times: 1})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			body := strings.NewReader(`{"compartmentId":"` + f.compartment + `","vcnId":"` + f.vcn + `"}`)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.base+api+"/networkSecurityGroups", body)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if r := f.send(req); !errors.Is(r.err, context.DeadlineExceeded) {
				t.Errorf("applied %t: error %v", applied, r.err)
			}
			cancel()
			if d := time.Since(began); d != 10*time.Second {
				t.Errorf("applied %t: the call ended after %s", applied, d)
			}
			want := map[bool]int{false: 0, true: 1}[applied]
			if got := len(f.region.SecurityGroups()); got != want {
				t.Errorf("applied %t: %d groups", applied, got)
			}
			if n := len(f.region.Calls()); n != 1 {
				t.Errorf("applied %t: %d calls in the log", applied, n)
			}
			f.createGroup().want(http.StatusOK)
		}
	})
}
