// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package adminclient_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
)

// TestOptionsWhileRunning changes everything that can be changed, and sees it in the answers of the region.
func TestOptionsWhileRunning(t *testing.T) {
	f := start(t)
	ctx := t.Context()
	second := ocisim.Range{Min: time.Second, Max: time.Second}
	if err := f.admin.SetDurations(ctx, map[string]*ocisim.Range{"loadbalancer.*": &second}); err != nil {
		t.Fatal(err)
	}
	durations, err := f.admin.Durations(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if durations["loadbalancer.delete"] != second || durations["networkloadbalancer.create"] != (ocisim.Range{Min: 15 * time.Second, Max: 30 * time.Second}) {
		t.Errorf("durations %v", durations)
	}
	if err := f.admin.SetDurations(ctx, map[string]*ocisim.Range{"loadbalancer.*": nil}); err != nil {
		t.Fatal(err)
	}
	if durations, err = f.admin.Durations(ctx); err != nil || durations["loadbalancer.delete"] == second {
		t.Errorf("a duration that was taken back: %v, %v", durations["loadbalancer.delete"], err)
	}

	slow := ocisim.Range{Min: 300 * time.Millisecond}
	if err := f.admin.SetLatency(ctx, map[string]*ocisim.Range{"compute.*": &slow}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if status, _ := f.get(ctx, t, f.instancePath()); status != http.StatusOK || time.Since(began) < slow.Min {
		t.Errorf("an answer %d after %s", status, time.Since(began))
	}
	latency, err := f.admin.Latency(ctx)
	if diff := cmp.Diff(map[string]ocisim.Range{"compute.*": {Min: slow.Min, Max: slow.Min}}, latency); diff != "" || err != nil {
		t.Errorf("%s%v", diff, err)
	}

	if err := f.admin.PatchOptions(ctx, []byte("pageSize: 1\neventualReads: 3\n")); err != nil {
		t.Fatal(err)
	}
	o, err := f.admin.Options(ctx)
	if err != nil || o.PageSize != 1 || o.EventualReads != 3 || o.Region != "us-ashburn-1" || o.Durations != nil {
		t.Errorf("options %+v, %v", o, err)
	}
}

func TestRatesWhileRunning(t *testing.T) {
	f := start(t)
	ctx := t.Context()
	want := server.Rates{
		Write: ocisim.Rate{PerSecond: 5, Burst: 6}, RetryAfter: ocisim.Duration(7 * time.Second),
		Services: map[string]*ocisim.Rate{"compute.read": {PerSecond: 0.001}},
	}
	if err := f.admin.SetRates(ctx, want); err != nil {
		t.Fatal(err)
	}
	got, err := f.admin.Rates(ctx)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%s%v", diff, err)
	}
	for i, status := range []int{http.StatusOK, http.StatusTooManyRequests} {
		if got, text := f.get(ctx, t, f.instancePath()); got != status {
			t.Errorf("read %d: %d %s", i, got, text)
		}
	}
	if err := f.admin.SetRates(ctx, server.Rates{Services: map[string]*ocisim.Rate{"compute.read": nil}}); err != nil {
		t.Fatal(err)
	}
	if status, text := f.get(ctx, t, f.instancePath()); status != http.StatusOK {
		t.Errorf("without a budget: %d %s", status, text)
	}
}

func TestBehaviourWhileRunning(t *testing.T) {
	f := start(t)
	ctx := t.Context()
	patch := "values: {maxGroupRules: 3, vnicLinger: 1s-2s}\nrulings: {delete of a protected balancer: {allow: true}}\n"
	if err := f.admin.PatchBehaviour(ctx, []byte(patch)); err != nil {
		t.Fatal(err)
	}
	b, err := f.admin.Behaviour(ctx)
	if err != nil || b.MaxGroupRules != 3 || b.VNICLinger.Max != 2*time.Second || !b.Rulings[ocisim.DeleteProtected].Allow {
		t.Errorf("behaviour %+v, %v", b, err)
	}
	var shown struct {
		Reasons map[string]string
		Rulings map[string]map[string]any
	}
	if err := json.Unmarshal([]byte(f.post(t, http.MethodGet, "/behaviour", "", http.StatusOK)), &shown); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(shown.Reasons["vnicLinger"], "Reports say") || shown.Rulings[string(ocisim.BackendSetInUse)]["reason"] == "" {
		t.Errorf("reasons %v", shown)
	}
}

func TestRefusedChangesNameWhatIsWrong(t *testing.T) {
	f := start(t)
	for path, bodies := range map[string]map[string]string{
		"/options":   {`{"pageSizes": 1}`: "pageSizes", `{"pageSize": -1}`: "pageSize", `{"seed": 5}`: "seed", `{"behaviour": {}}`: "behaviour", `[`: ""},
		"/durations": {`{"loadbalancer.creation": "1s"}`: "loadbalancer.creation", `{"loadbalancer.create": "soon"}`: "soon", `[]`: ""},
		"/latency":   {`{"compute.Nothing": "1s"}`: "compute.Nothing", `{"GetInstance": "1s"}`: "GetInstance"},
		"/rates":     {`{"reads": {}}`: "reads", `{"read": {"perSecond": -1}}`: "negative", `{"services": {"compute": {}}}`: "compute"},
		"/behaviour": {`{"values": {"maxGroupRule": 1}}`: "maxGroupRule", `{"rulings": {"rain": {}}}`: "rain"},
	} {
		for body, name := range bodies {
			if text := f.post(t, http.MethodPatch, path, body, http.StatusBadRequest); !strings.Contains(text, name) {
				t.Errorf("PATCH %s %s: %s", path, body, text)
			}
		}
	}
}
