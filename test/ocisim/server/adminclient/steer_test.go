// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package adminclient_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server/adminclient"
)

func (f fixture) wantStatus(t *testing.T, path string, status int) string {
	t.Helper()
	got, text := f.get(t.Context(), t, path)
	if got != status {
		t.Fatalf("%s: %d %s, want %d", path, got, text, status)
	}
	return text
}

func TestFaultsOverHTTP(t *testing.T) {
	f := start(t)
	ctx := t.Context()
	fault := ocisim.Fault{Operation: "compute.*", Reads: true, Budget: ocisim.Rate{PerSecond: 0.001}, RetryAfter: 2 * time.Second, Note: "slow down"}
	remove, err := f.admin.Fault(ctx, fault)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.admin.Fault(ctx, ocisim.Fault{Operation: "GetVnic", Status: 500, Delay: time.Millisecond, Drop: ocisim.BeforeApply}); err != nil {
		t.Fatal(err)
	}
	f.wantStatus(t, f.instancePath(), http.StatusOK)
	f.wantStatus(t, f.instancePath(), http.StatusTooManyRequests)
	list, err := f.admin.Faults(ctx)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if diff := cmp.Diff(fault, list[0].Value, cmpopts.IgnoreUnexported(ocisim.Fault{})); diff != "" {
		t.Error(diff)
	}
	if err := remove(ctx); err != nil {
		t.Fatal(err)
	}
	f.wantStatus(t, f.instancePath(), http.StatusOK)
	if err := f.admin.ClearFaults(ctx); err != nil || len(f.Region().Faults()) != 0 {
		t.Errorf("%v faults are left: %v", f.Region().Faults(), err)
	}
	for _, bad := range []ocisim.Fault{{Operation: "GetNothing", Status: 500}, {Operation: "GetVnic"}, {Status: 200}} {
		if _, err := f.admin.Fault(ctx, bad); !isRefused(err, http.StatusBadRequest) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func isRefused(err error, status int) bool {
	var refused *adminclient.Error
	return errors.As(err, &refused) && refused.Status == status
}

func TestGrantsOverHTTP(t *testing.T) {
	f := start(t)
	ctx := t.Context()
	grant := ocisim.Grant{Principal: "anonymous", Statements: []string{"Allow group g to read vcns in tenancy"}}
	revoke, err := f.admin.Grant(ctx, grant)
	if err != nil {
		t.Fatal(err)
	}
	f.wantStatus(t, f.instancePath(), http.StatusNotFound)
	list, err := f.admin.Grants(ctx)
	if diff := cmp.Diff([]adminclient.Made[ocisim.Grant]{{ID: "1", Value: grant}}, list); diff != "" || err != nil {
		t.Errorf("%s%v", diff, err)
	}
	if err := revoke(ctx); err != nil {
		t.Fatal(err)
	}
	f.wantStatus(t, f.instancePath(), http.StatusOK)
	grant.Statements = []string{"Allow group g to read instance in tenancy"}
	if _, err := f.admin.Grant(ctx, grant); !isRefused(err, http.StatusBadRequest) {
		t.Errorf("an unknown resource type: %v", err)
	}
	grant.Statements = nil
	if _, err := f.admin.Grant(ctx, grant); err != nil {
		t.Fatal(err)
	}
	if err := f.admin.ClearGrants(ctx); err != nil {
		t.Fatal(err)
	}
	f.wantStatus(t, f.instancePath(), http.StatusOK)
}

func TestDenialsOverHTTP(t *testing.T) {
	f := start(t)
	ctx := t.Context()
	policy := ocisim.Policy{Verb: ocisim.Read, ResourceType: "instances"}
	restore, err := f.admin.Deny(ctx, policy)
	if err != nil {
		t.Fatal(err)
	}
	f.wantStatus(t, f.instancePath(), http.StatusNotFound)
	list, err := f.admin.Denials(ctx)
	if diff := cmp.Diff([]adminclient.Made[ocisim.Policy]{{ID: "1", Value: policy}}, list); diff != "" || err != nil {
		t.Errorf("%s%v", diff, err)
	}
	if err := restore(ctx); err != nil {
		t.Fatal(err)
	}
	f.wantStatus(t, f.instancePath(), http.StatusOK)
	if _, err := f.admin.Deny(ctx, ocisim.Policy{ResourceType: "instance"}); !isRefused(err, http.StatusBadRequest) {
		t.Errorf("an unknown resource type: %v", err)
	}
	if _, err := f.admin.Deny(ctx, policy); err != nil {
		t.Fatal(err)
	}
	if err := f.admin.ClearDenials(ctx); err != nil {
		t.Fatal(err)
	}
	f.wantStatus(t, f.instancePath(), http.StatusOK)
}

// TestForeignOverHTTP acts at once, and between two calls of a client.
func TestForeignOverHTTP(t *testing.T) {
	f := start(t)
	ctx := t.Context()
	id := *f.Region().Instances()[0].Id
	name := func(n string) json.RawMessage { return json.RawMessage(`{"displayName":"` + n + `"}`) }
	if err := f.admin.Foreign(ctx, server.ForeignWrite{ID: id, Set: name("one")}); err != nil {
		t.Fatal(err)
	}
	if text := f.wantStatus(t, f.instancePath(), http.StatusOK); !strings.Contains(text, `"displayName":"one"`) {
		t.Errorf("renamed: %s", text)
	}
	// After the next read the answer is the old one, and the next read shows the change. The resource is the call's.
	if _, err := f.admin.ForeignAt(ctx, server.ForeignWrite{Set: name("two"), After: &ocisim.Trigger{Operation: "GetInstance"}}); err != nil {
		t.Fatal(err)
	}
	if text := f.wantStatus(t, f.instancePath(), http.StatusOK); !strings.Contains(text, `"displayName":"one"`) {
		t.Errorf("the answer before the act: %s", text)
	}
	if text := f.wantStatus(t, f.instancePath(), http.StatusOK); !strings.Contains(text, `"displayName":"two"`) {
		t.Errorf("the answer after the act: %s", text)
	}
	remove, err := f.admin.ForeignAt(ctx, server.ForeignWrite{ID: "ocid1.none", Delete: true, Before: &ocisim.Trigger{Operation: "compute.GetInstance", Nth: 2, Times: 2}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f.wantStatus(t, f.instancePath(), http.StatusOK)
	}
	acts, err := f.admin.ForeignActs(ctx)
	if err != nil || len(acts) != 2 || acts[0].Value.Done != 1 || acts[1].Value.Done != 0 || !strings.Contains(acts[1].Value.Error, "no such resource") {
		t.Errorf("acts %+v, %v", acts, err)
	}
	if err := remove(ctx); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []server.ForeignWrite{
		{ID: id}, {Delete: true}, {ID: id, Set: name("x"), Delete: true},
		{ID: id, Delete: true, Before: &ocisim.Trigger{}, After: &ocisim.Trigger{}}, {Delete: true, After: &ocisim.Trigger{Operation: "GetNothing"}},
	} {
		if err := f.admin.Foreign(ctx, bad); !isRefused(err, http.StatusBadRequest) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := f.admin.Foreign(ctx, server.ForeignWrite{ID: "ocid1.none", Delete: true}); !isRefused(err, http.StatusUnprocessableEntity) {
		t.Errorf("a write to nothing: %v", err)
	}
}

func TestTheRestOverHTTP(t *testing.T) {
	f := start(t)
	ctx := t.Context()
	before, err := f.admin.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.admin.Advance(ctx, time.Hour); err != nil {
		t.Fatal(err)
	}
	if after, err := f.admin.Now(ctx); err != nil || after.Sub(before) < time.Hour {
		t.Errorf("clock %s, %v", after.Sub(before), err)
	}
	if _, err := f.admin.User(ctx, "carol"); err != nil {
		t.Fatal(err)
	}
	if users, err := f.admin.Users(ctx); err != nil || len(users) != 1 || users[0].Name != "carol" || users[0].ConfigFile == "" {
		t.Errorf("users %v, %v", users, err)
	}
	if _, err := f.admin.StopAfter(ctx, server.StopRule{N: 9}); err != nil {
		t.Fatal(err)
	}
	if stops, err := f.admin.Stops(ctx); err != nil || len(stops) != 1 || stops[0].State != server.StopArmed {
		t.Errorf("holds %v, %v", stops, err)
	}
	operations, err := f.admin.Operations(ctx)
	if err != nil || len(operations) != len(f.Region().Operations()) || operations[0].Verb == "" {
		t.Errorf("%d operations, %v", len(operations), err)
	}
	kinds, err := f.admin.Kinds(ctx)
	if err != nil || len(kinds) == 0 {
		t.Errorf("kinds %v, %v", kinds, err)
	}
	page, err := f.admin.Objects(ctx, ocisim.ObjectQuery{Kinds: []string{"instance"}, Text: "node", Limit: 2})
	if err != nil || page.Matched != 3 || len(page.Objects) != 2 || page.Objects[0].Kind != "instance" {
		t.Errorf("objects %+v, %v", page, err)
	}
	if err := f.admin.SetMetadataFault(ctx, server.MetadataFault{Status: http.StatusNotFound, Calls: 1}); err != nil {
		t.Fatal(err)
	}
	if status := metadataStatus(t, f); status != http.StatusNotFound {
		t.Errorf("metadata answers %d", status)
	}
	if edge, err := f.admin.Edge(ctx); err != nil || len(edge) == 0 || edge[0].Status != http.StatusNotFound {
		t.Errorf("edge %v, %v", edge, err)
	}
	if n, err := f.admin.ExpireTokens(ctx); err != nil || n != 0 {
		t.Errorf("%d tokens, %v", n, err)
	}
	if err := f.admin.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	if page, err := f.admin.Objects(ctx, ocisim.ObjectQuery{Kinds: []string{"instance"}}); err != nil || page.Matched != 0 {
		t.Errorf("after the reset: %+v, %v", page, err)
	}
}

func metadataStatus(t *testing.T, f fixture) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.MetadataURL()+"/instance/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer Oracle")
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
