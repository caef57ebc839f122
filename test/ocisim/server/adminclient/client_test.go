// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package adminclient_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2/ktesting"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server/adminclient"
)

// fixture is a running simulator without signatures, and ways to call it.
type fixture struct {
	*server.Server

	admin *adminclient.Client
	api   *http.Client
}

func start(t *testing.T) fixture {
	t.Helper()
	_, ctx := ktesting.NewTestContext(t)
	s, err := server.Start(ctx, server.Options{Region: ocisim.New(ocisim.Options{Seed: 1})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.CAPEM())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	f := fixture{Server: s, admin: adminclient.New(s.AdminURL()), api: &http.Client{Transport: transport}}
	world, err := os.ReadFile("../../seeds/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.admin.Seed(t.Context(), world); err != nil {
		t.Fatal(err)
	}
	return f
}

// get calls the region and returns status and body.
func (f fixture) get(ctx context.Context, t *testing.T, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := f.api.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// post sends JSON to the admin API and fails unless the status is as wanted.
func (f fixture) post(t *testing.T, method, path, body string, status int) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, f.AdminURL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != status {
		t.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, response.StatusCode, text, status)
	}
	return string(text)
}

func (f fixture) instancePath() string { return "/20160918/instances/" + *f.Region().Instances()[0].Id }

func (f fixture) domainsPath() string {
	return "/20160918/availabilityDomains?compartmentId=" + f.Region().Options().Tenancy
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestSeedIsStrict(t *testing.T) {
	f := start(t)
	err := f.admin.Seed(t.Context(), []byte("instanzes: []\n"))
	var refused *adminclient.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest || !strings.Contains(refused.Message, "instanzes") {
		t.Errorf("a seed with an unknown key: got %v, want a refusal that names the key", err)
	}
}

func TestState(t *testing.T) {
	f := start(t)
	state, err := f.admin.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(state) || !strings.Contains(string(state), *f.Region().Instances()[0].Id) {
		t.Errorf("the state is no JSON with the seeded instance in it: %.200s", state)
	}
	f.post(t, http.MethodPost, "/reset", "", http.StatusNoContent)
	if n := len(f.Region().Instances()); n != 0 {
		t.Errorf("%d instances after a reset", n)
	}
}

func TestCallLogAndCounters(t *testing.T) {
	f := start(t)
	ctx := soon(t)
	f.get(ctx, t, f.domainsPath())
	f.get(ctx, t, f.instancePath())
	page, err := f.admin.Calls(ctx, adminclient.CallQuery{Operations: []string{"compute.GetInstance"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Calls) != 1 || page.Calls[0].Resource != *f.Region().Instances()[0].Id {
		t.Errorf("filtered calls: %+v, want the one GetInstance", page.Calls)
	}
	if page, err = f.admin.Calls(ctx, adminclient.CallQuery{Since: page.Next}); err != nil || len(page.Calls) != 0 {
		t.Errorf("calls since the end: %+v, %v, want none", page.Calls, err)
	}
	counters, err := f.admin.Counters(ctx)
	if err != nil || counters["identity.ListAvailabilityDomains"] != 1 || counters["compute.GetInstance"] != 1 {
		t.Errorf("counters: %v, %v", counters, err)
	}
	if err := f.admin.ResetCounters(ctx); err != nil {
		t.Fatal(err)
	}
	if counters, err = f.admin.Counters(ctx); err != nil || len(counters) != 0 {
		t.Errorf("counters after the reset: %v, %v", counters, err)
	}
	f.post(t, http.MethodGet, "/calls?since=x&limit=y", "", http.StatusBadRequest)
}

func TestWaitForTheNextCall(t *testing.T) {
	f := start(t)
	ctx := soon(t)
	type answer struct {
		page server.CallPage
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		page, err := f.admin.Calls(ctx, adminclient.CallQuery{Operations: []string{"GetInstance"}, Wait: time.Minute})
		answers <- answer{page, err}
	}()
	f.get(ctx, t, f.domainsPath())
	f.get(ctx, t, f.instancePath())
	got := <-answers
	if got.err != nil || len(got.page.Calls) != 1 || got.page.Calls[0].Operation != "GetInstance" {
		t.Errorf("got %+v, %v, want the GetInstance", got.page, got.err)
	}
	page, err := f.admin.Calls(ctx, adminclient.CallQuery{Operations: []string{"DeleteVnic"}, Wait: time.Millisecond})
	if err != nil || len(page.Calls) != 0 {
		t.Errorf("a wait for what does not come: %+v, %v, want an empty page", page, err)
	}
}

func TestStreamOfCalls(t *testing.T) {
	f := start(t)
	ctx := soon(t)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.AdminURL()+"/calls?follow=true&service=compute", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := json.NewDecoder(response.Body)
	for range 3 {
		f.get(ctx, t, f.domainsPath())
		f.get(ctx, t, f.instancePath())
		var c ocisim.Call
		if err := lines.Decode(&c); err != nil {
			t.Fatal(err)
		}
		if c.Operation != "GetInstance" {
			t.Errorf("stream has %s, want only GetInstance", c.Operation)
		}
	}
}

func TestFaultsOverTheAPI(t *testing.T) {
	f := start(t)
	ctx := soon(t)
	made := f.post(t, http.MethodPost, "/faults",
		`{"operation":"GetInstance","status":429,"nth":2,"delay":"1ms","retryAfter":"3s"}`, http.StatusCreated)
	var fault struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(made), &fault); err != nil {
		t.Fatal(err)
	}
	for i, status := range []int{http.StatusOK, http.StatusTooManyRequests, http.StatusOK} {
		if got, body := f.get(ctx, t, f.instancePath()); got != status {
			t.Errorf("call %d: got %d %s, want %d", i+1, got, body, status)
		}
	}
	if list := f.post(t, http.MethodGet, "/faults", "", http.StatusOK); !strings.Contains(list, `"status":429`) || !strings.Contains(list, `"retryAfter":"3s"`) {
		t.Errorf("faults in force: %s", list)
	}
	f.post(t, http.MethodDelete, "/faults/"+fault.ID, "", http.StatusNoContent)
	f.post(t, http.MethodDelete, "/faults/"+fault.ID, "", http.StatusNotFound)
	f.post(t, http.MethodPost, "/faults", `{"operation":"GetInstance","drop":"after"}`, http.StatusCreated)
	f.post(t, http.MethodDelete, "/faults", "", http.StatusNoContent)
	if n := len(f.Region().Faults()); n != 0 {
		t.Errorf("%d faults after all were deleted", n)
	}
	f.post(t, http.MethodPost, "/faults", `{"drop":"sometimes"}`, http.StatusBadRequest)
	f.post(t, http.MethodPost, "/faults", `{"delay":"long"}`, http.StatusBadRequest)
	f.post(t, http.MethodPost, "/faults", `{"operatoin":"x"}`, http.StatusBadRequest)
}

func TestDenialsOverTheAPI(t *testing.T) {
	f := start(t)
	ctx := soon(t)
	restore, err := f.admin.Deny(ctx, ocisim.Policy{Verb: ocisim.Read, ResourceType: "instances"})
	if err != nil {
		t.Fatal(err)
	}
	if got, body := f.get(ctx, t, f.instancePath()); got != http.StatusNotFound {
		t.Errorf("without a policy: got %d %s, want 404", got, body)
	}
	if err := restore(ctx); err != nil {
		t.Fatal(err)
	}
	if got, body := f.get(ctx, t, f.instancePath()); got != http.StatusOK {
		t.Errorf("with the policy again: got %d %s, want 200", got, body)
	}
}

func TestForeignWrites(t *testing.T) {
	f := start(t)
	ctx := soon(t)
	id := *f.Region().Instances()[0].Id
	f.post(t, http.MethodPost, "/foreign", `{"id":"`+id+`","set":{"displayName":"renamed","freeformTags":{"by":"terraform"}}}`, http.StatusNoContent)
	if _, body := f.get(ctx, t, "/20160918/instances/"+id); !strings.Contains(body, `"renamed"`) || !strings.Contains(body, "terraform") {
		t.Errorf("after the foreign write: %s", body)
	}
	f.post(t, http.MethodPost, "/foreign", `{"id":"`+id+`","delete":true}`, http.StatusNoContent)
	if got, body := f.get(ctx, t, "/20160918/instances/"+id); got != http.StatusNotFound {
		t.Errorf("after the foreign delete: got %d %s, want 404", got, body)
	}
	f.post(t, http.MethodPost, "/foreign", `{"id":"`+id+`"}`, http.StatusBadRequest)
	f.post(t, http.MethodPost, "/foreign", `{"id":"ocid1.instance.oc1.iad.none","set":{}}`, http.StatusUnprocessableEntity)
}

func TestClock(t *testing.T) {
	f := start(t)
	before := f.Region().Now()
	if err := f.admin.Advance(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if moved := f.Region().Now().Sub(before); moved < time.Hour {
		t.Errorf("the clock moved by %s, want at least an hour", moved)
	}
	f.post(t, http.MethodPost, "/clock/advance", `{"by":"-1h"}`, http.StatusBadRequest)
}

func TestHoldOverTheAPI(t *testing.T) {
	f := start(t)
	ctx := soon(t)
	stop, err := f.admin.StopAfter(ctx, server.StopRule{N: 1, Operations: []string{"GetInstance"}, Freeze: true})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan int, 1)
	go func() {
		status, _ := f.get(ctx, t, f.instancePath())
		done <- status
	}()
	call, err := stop.Wait(ctx)
	if err != nil || call.Operation != "GetInstance" {
		t.Fatalf("held call: %+v, %v", call, err)
	}
	if list := f.post(t, http.MethodGet, "/hooks", "", http.StatusOK); !strings.Contains(list, `"state":"holding"`) {
		t.Errorf("hooks: %s", list)
	}
	if err := stop.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if err := stop.Discard(ctx); err != nil {
		t.Errorf("ending a hold twice: %v", err)
	}
	if status := <-done; status != http.StatusOK {
		t.Errorf("after the release: %d", status)
	}
	if _, err := f.admin.StopAfter(ctx, server.StopRule{}); err == nil {
		t.Error("a hold of call 0 was accepted")
	}
}

func TestUsersAndEnv(t *testing.T) {
	f := start(t)
	ctx := soon(t)
	u, err := f.admin.User(ctx, "alice")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := f.admin.Env(ctx, adminclient.EnvRequest{User: "alice", Instance: "node-2", NoProxy: []string{"10.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	wanted := append(f.InstanceEnv("node-2", "10.0.0.1"), "OCI_CONFIG_FILE="+u.ConfigFile)
	if !slices.Equal(lines, wanted) {
		t.Errorf("environment %v, want %v", lines, wanted)
	}
	config, err := os.ReadFile(u.ConfigFile)
	if err != nil || !strings.Contains(string(config), "fingerprint="+u.Fingerprint) {
		t.Errorf("config file: %s, %v", config, err)
	}
	if _, err := f.admin.User(ctx, "../eve"); err == nil {
		t.Error("a user name that leaves the directory was accepted")
	}
	if list := f.post(t, http.MethodGet, "/users", "", http.StatusOK); !strings.Contains(list, u.OCID) || strings.Contains(list, "PRIVATE") {
		t.Errorf("users: %s, want alice without her key", list)
	}
}

func TestAdminAnswersLocallyOnly(t *testing.T) {
	f := start(t)
	for name, change := range map[string]func(*http.Request){
		"a name rebound to loopback": func(r *http.Request) { r.Host = "attacker.example" },
		"a page of another origin":   func(r *http.Request) { r.Header.Set("Origin", "https://attacker.example") },
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.AdminURL()+"/reset", nil)
		if err != nil {
			t.Fatal(err)
		}
		change(req)
		response, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("%s: got %d, want 403", name, response.StatusCode)
		}
	}
	if index := f.post(t, http.MethodGet, "/", "", http.StatusOK); !strings.Contains(index, "/hooks/stop-after") {
		t.Errorf("index: %s", index)
	}
	f.post(t, http.MethodPost, "/metadata/fault", `{"calls":1}`, http.StatusNoContent)
	if body := f.post(t, http.MethodPost, "/tokens/expire", "", http.StatusOK); !strings.Contains(body, `"expired":0`) {
		t.Errorf("expire: %s", body)
	}
	if _, err := server.Start(t.Context(), server.Options{Region: f.Region(), Admin: "0.0.0.0:0"}); err == nil {
		t.Error("an admin API on all interfaces was accepted")
	}
}
