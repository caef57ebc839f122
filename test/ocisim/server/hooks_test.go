// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func TestStopHoldsTheAnswerOfAnAppliedCall(t *testing.T) {
	s := start(t, Options{})
	u, c := user(t, s, "alice"), client(t, s, false)
	stop, err := s.StopAfter(StopRule{N: 2, Operations: []string{"identity.ListAvailabilityDomains"}})
	if err != nil {
		t.Fatal(err)
	}
	response, body := do(t, c, signed(t, u, http.MethodGet, domainsURL(s, s.URL()), nil))
	want(t, response, body, http.StatusOK, "AD-1") // the first is not held

	answered := make(chan int, 1)
	second := signed(t, u, http.MethodGet, domainsURL(s, s.URL()), nil)
	go func() {
		response, err := c.Do(second)
		if err != nil {
			answered <- 0
			return
		}
		answered <- response.StatusCode
		_ = response.Body.Close()
	}()
	call, err := stop.Wait(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	if call.Operation != "ListAvailabilityDomains" || call.Status != http.StatusOK {
		t.Errorf("held call: %+v", call)
	}
	if n := len(s.Region().Calls()); n != 2 {
		t.Errorf("call log has %d calls while the second is held, want 2: it is applied", n)
	}
	// A hold without Freeze holds nobody else.
	response, body = do(t, c, signed(t, u, http.MethodGet, domainsURL(s, s.URL()), nil))
	want(t, response, body, http.StatusOK, "AD-1")
	select {
	case status := <-answered:
		t.Errorf("the held call was answered with %d", status)
	default:
	}
	stop.Release()
	stop.Release()
	if status := <-answered; status != http.StatusOK {
		t.Errorf("after the release the answer is %d, want 200", status)
	}
	if state := stop.Status().State; state != StopReleased {
		t.Errorf("state %s, want released", state)
	}
}

func TestFreezeKeepsOthersFromBeingApplied(t *testing.T) {
	s := start(t, Options{})
	u, c := user(t, s, "alice"), client(t, s, false)
	const clients, n = 8, 3
	stop, err := s.StopAfter(StopRule{N: n, Freeze: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(soon(t))
	var wg sync.WaitGroup
	for range clients {
		req := signed(t, u, http.MethodGet, domainsURL(s, s.URL()), nil).WithContext(ctx)
		wg.Go(func() {
			if response, err := c.Do(req); err == nil {
				_ = response.Body.Close()
			}
		})
	}
	if _, err := stop.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	kill()
	wg.Wait()
	stop.Discard()
	// The frozen calls are dropped; the next call is that of a new process.
	response, body := do(t, client(t, s, false), signed(t, u, http.MethodGet, domainsURL(s, s.URL()), nil))
	want(t, response, body, http.StatusOK, "AD-1")
	if got := len(s.Region().Calls()); got != n+1 {
		t.Errorf("%d calls were applied, want exactly %d before the kill and one after", got, n)
	}
}

func TestReleaseLetsFrozenCallsGoOn(t *testing.T) {
	s := start(t, Options{})
	u, c := user(t, s, "alice"), client(t, s, false)
	stop, err := s.StopAfter(StopRule{N: 1, Freeze: true})
	if err != nil {
		t.Fatal(err)
	}
	statuses := make(chan int, 4)
	for range cap(statuses) {
		req := signed(t, u, http.MethodGet, domainsURL(s, s.URL()), nil)
		go func() {
			response, err := c.Do(req)
			if err != nil {
				statuses <- 0
				return
			}
			_ = response.Body.Close()
			statuses <- response.StatusCode
		}()
	}
	if _, err := stop.Wait(soon(t)); err != nil {
		t.Fatal(err)
	}
	stop.Release()
	for range cap(statuses) {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("a frozen call got %d, want 200", status)
		}
	}
}

func TestStopRules(t *testing.T) {
	h := newHooks()
	if _, err := h.add(StopRule{}); !errors.Is(err, ErrStopRule) {
		t.Errorf("a rule without n: got %v, want ErrStopRule", err)
	}
	create := ocisim.Call{Service: "loadbalancer", Operation: "CreateListener", Principal: "alice", Write: true}
	get := ocisim.Call{Service: "loadbalancer", Operation: "GetLoadBalancer", Principal: "alice"}
	for _, test := range []struct {
		rule StopRule
		call ocisim.Call
		want bool
	}{
		{StopRule{}, get, true},
		{StopRule{Writes: true}, get, false},
		{StopRule{Writes: true}, create, true},
		{StopRule{Operations: []string{"CreateListener"}}, create, true},
		{StopRule{Operations: []string{"loadbalancer.CreateListener", "x"}}, create, true},
		{StopRule{Operations: []string{"networkloadbalancer.CreateListener"}}, create, false},
		{StopRule{Operations: []string{"*"}}, create, true},
		{StopRule{Principal: "bob"}, create, false},
		{StopRule{Principal: "alice"}, create, true},
	} {
		if got := test.rule.matches(test.call); got != test.want {
			t.Errorf("%+v on %s by %s: got %v, want %v", test.rule, test.call.Operation, test.call.Principal, got, test.want)
		}
	}
	stop, err := h.add(StopRule{N: 1})
	if err != nil {
		t.Fatal(err)
	}
	h.close()
	if _, err := stop.Wait(t.Context()); !errors.Is(err, ErrWithdrawn) {
		t.Errorf("wait on a stop that the end of the server withdrew: got %v, want ErrWithdrawn", err)
	}
	h.called(create) // must not block after the end
}

func TestStopWaitEndsWithItsContext(t *testing.T) {
	s := start(t, Options{})
	stop, err := s.StopAfter(StopRule{N: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := stop.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
