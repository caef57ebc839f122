// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// simulated is a region with a compartment of seven running instances, and a client whose signature it verifies.
type simulated struct {
	*ocisim.Region
	client      *Client
	compartment string
}

func newSimulated(t *testing.T, options ocisim.Options, change ...func(*Options)) *simulated {
	t.Helper()
	options.Signatures = true
	s := &simulated{Region: ocisim.New(options)}
	s.RegisterKey(testTenancy+"/"+testUser+"/"+testFingerprint, &pki.SigningKey().PublicKey, ocisim.Principal{ID: testUser})
	err := s.Seed(ocisim.World{
		Compartments: []ocisim.Compartment{{Name: "cluster"}},
		Instances:    []ocisim.Instance{{Name: "node-%d", Count: 7}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.compartment = *s.Instances()[0].CompartmentId
	s.client, _ = newTestClient(t, nil, append([]func(*Options){func(o *Options) { o.Transport = s.Transport() }}, change...)...)
	return s
}

func (s *simulated) instance(i int) string { return *s.Instances()[i].Id }

func TestSimulatedReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, ocisim.Options{PageSize: 2, ShortPages: 0.3})
		i, err := s.client.Compute().GetInstance(t.Context(), s.instance(0))
		if err != nil || i.DisplayName != "node-1" || i.State != "RUNNING" {
			t.Errorf("got %+v, %v", i, err)
		}
		all, err := s.client.Compute().ListInstances(t.Context(), s.compartment, "")
		if err != nil || len(all) != 7 {
			t.Errorf("%d instances, %v, want 7", len(all), err)
		}
		for _, c := range s.Calls() {
			if c.Status != 200 || c.Principal != testUser {
				t.Errorf("%s as %s was answered with %d", c.Name(), c.Principal, c.Status)
			}
		}

		s.UnregisterKey(testTenancy + "/" + testUser + "/" + testFingerprint)
		_, err = s.client.Compute().GetInstance(t.Context(), s.instance(0))
		if !errors.Is(err, ErrUnauthorized) || !strings.Contains(err.Error(), "as user principal "+testUser) {
			t.Errorf("error %v, want a 401 that names the principal", err)
		}
	})
}

// Rule 1 against the simulator's policies and the life of an instance.
func TestSimulatedPresence(t *testing.T) {
	deny := func(p ocisim.Policy) func(*simulated) {
		return func(s *simulated) { p.ResourceType = "instances"; s.Deny(p) }
	}
	terminate := func(wait time.Duration) func(*simulated) {
		return func(s *simulated) {
			if err := s.Foreign().TerminateInstance(s.instance(0)); err != nil {
				panic(err)
			}
			time.Sleep(wait)
		}
	}
	tests := []struct {
		name   string
		change []func(*simulated)
		want   Presence
	}{
		{"running", nil, Present},
		{"terminating", []func(*simulated){terminate(0)}, Present},
		{"terminated", []func(*simulated){terminate(10 * time.Minute)}, Gone},
		{"terminated long ago", []func(*simulated){terminate(100 * time.Hour)}, Gone},
		{"running, may be listed but not read", []func(*simulated){deny(ocisim.Policy{Verb: "read"})}, Present},
		{"running, may be neither", []func(*simulated){deny(ocisim.Policy{Verb: "inspect"})}, Unknown},
		{"terminated long ago, may be neither", []func(*simulated){terminate(100 * time.Hour), deny(ocisim.Policy{Verb: "inspect"})}, Unknown},
		{"running, read denied, list fails", []func(*simulated){deny(ocisim.Policy{Verb: "read"}), func(s *simulated) {
			s.Fault(ocisim.Fault{Operation: "ListInstances", Nth: 2, Times: 100, Status: 500})
		}}, Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSimulated(t, ocisim.Options{PageSize: 2})
				id := s.instance(0)
				for _, change := range tt.change {
					change(s)
				}
				got, proof, err := s.client.InstancePresence(t.Context(), id, s.compartment)
				if got != tt.want || (err != nil) != (tt.want == Unknown) || (proof == "") != (tt.want == Unknown) {
					t.Errorf("%v, %q, %v, want %v", got, proof, err, tt.want)
				}
			})
		})
	}
}

// C009, C158: with a client that is faster than the region allows, everything gets done, and with few refusals.
func TestSimulatedThrottling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, ocisim.Options{Read: ocisim.Rate{PerSecond: 5, Burst: 5}}, limited(20, 5))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		id := s.instance(0)
		started := time.Now()
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				if _, err := s.client.Compute().GetInstance(ctx, id); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(started); took > 80*time.Second {
			t.Errorf("200 reads took %v, want less than twice the 40 s that the region allows", took)
		}
		if n := s.Counts()["compute.GetInstance"]; n > 240 {
			t.Errorf("%d requests for 200 reads", n)
		}
	})
}

// Whatever happens to requests and answers on their way, reads succeed.
func TestSimulatedFaultsOfReads(t *testing.T) {
	for name, fault := range map[string]ocisim.Fault{
		"lost request":       {Drop: ocisim.BeforeApply},
		"lost answer":        {Drop: ocisim.AfterApply},
		"half an answer":     {HalfBody: true},
		"silence":            {Delay: time.Hour},
		"server error":       {Status: 500},
		"bad gateway":        {Status: 502},
		"throttled":          {Status: 429, RetryAfter: 3 * time.Second},
		"changing its state": {Status: 409, Code: "IncorrectState"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSimulated(t, ocisim.Options{PageSize: 2})
				fault.Nth, fault.Times = 2, 2
				s.Fault(fault)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				all, err := s.client.Compute().ListInstances(ctx, s.compartment, "")
				if err != nil || len(all) != 7 {
					t.Errorf("%d instances, %v", len(all), err)
				}
				if n := s.Counts()["compute.ListInstances"]; n != 4+2 {
					t.Errorf("%d requests for four pages and two faults", n)
				}
			})
		})
	}
}

// A create whose answer is lost is repeated under its retry token and done once; without a token it is not repeated.
func TestSimulatedCreateIsDoneOnce(t *testing.T) {
	create := func(ctx context.Context, s *simulated, token string) error {
		o := op{service: ServiceVirtualNetwork, name: "CreatePublicIp", resource: "public_reserved_ip", verb: "create", write: true, repeatable: token != ""}
		request := core.CreatePublicIpRequest{
			CreatePublicIpDetails: core.CreatePublicIpDetails{CompartmentId: &s.compartment, Lifetime: core.CreatePublicIpDetailsLifetimeReserved},
			OpcRetryToken:         common.String(token),
		}
		_, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.CreatePublicIpResponse, *http.Response, error) {
			r, err := s.client.network.CreatePublicIp(ctx, request)
			return r, r.RawResponse, err
		})
		return err
	}
	for _, moment := range []ocisim.Moment{ocisim.BeforeApply, ocisim.AfterApply} {
		for _, token := range []string{"", RetryToken("CreatePublicIp", "cluster", "owner", "body")} {
			t.Run(fmt.Sprintf("dropped at %d, token %q", moment, token), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSimulated(t, ocisim.Options{})
					s.Fault(ocisim.Fault{Operation: "CreatePublicIp", Drop: moment, Nth: 1})
					err := create(t.Context(), s, token)
					made, want := len(s.PublicIPs()), 1
					if token == "" && moment == ocisim.BeforeApply {
						want = 0
					}
					if made != want || (err == nil) != (token != "") {
						t.Errorf("%d made, error %v; want %d", made, err, want)
					}
				})
			})
		}
	}
}
