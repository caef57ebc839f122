// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

const optionsFile = `
region: eu-frankfurt-1
pageSize: 7
durations: {"*": 1s, "loadbalancer.*": 2s-3s, loadbalancer.delete: 5s}
latency: {compute.GetInstance: 100ms-200ms, "identity.*": 1s}
read: {perSecond: 20, burst: 40}
rates: {"*.write": {perSecond: 1}}
retryAfter: 3s
behaviour:
  values: {vnicLinger: 1s-2s, serviceLimits: {lb-flexible-count: 3}, rulesChangeGroupETag: true, terminatedVisible: 5m}
  rulings:
    delete of a protected balancer: {status: 409, code: IncorrectState}
`

func TestOptionsFile(t *testing.T) {
	var o ocisim.Options
	if err := yaml.UnmarshalStrict([]byte(optionsFile), &o); err != nil {
		t.Fatal(err)
	}
	region := ocisim.New(o)
	got := region.Durations()
	for name, want := range map[string]string{
		"instance.stop": "1s", "loadbalancer.create": "2s-3s", "loadbalancer.delete": "5s", "networkloadbalancer.create": "1s",
	} {
		if got[name].String() != want {
			t.Errorf("duration of %s is %s, not %s", name, got[name], want)
		}
	}
	in := region.Options()
	if in.PageSize != 7 || in.RetryAfter != 3*time.Second || in.Read.String() != "20/40" || in.LogSize == 0 {
		t.Errorf("options %+v", in)
	}
	b := region.Behaviour()
	if b.VNICLinger.String() != "1s-2s" || b.ServiceLimits["lb-flexible-count"] != 3 || !b.RulesChangeGroupETag || b.TerminatedVisible != 5*time.Minute {
		t.Errorf("behaviour %+v", b)
	}
	if r := b.Rulings[ocisim.DeleteProtected]; r.Code != "IncorrectState" || r.Message == "" || r.Reason == "" {
		t.Errorf("ruling %+v", r)
	}
	// What is written reads back as the same.
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var again ocisim.Options
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, again); diff != "" {
		t.Error(diff)
	}
}

func TestOptionErrors(t *testing.T) {
	tests := map[string]ocisim.Options{
		"state change":  {Durations: map[string]ocisim.Range{"loadbalancer.creation": {}}},
		"operation":     {Latency: map[string]ocisim.Range{"compute.GetNothing": {}}},
		"bare name":     {Latency: map[string]ocisim.Range{"GetInstance": {}}},
		"budget":        {Rates: map[string]ocisim.Rate{"compute": {}}},
		"probability":   {ShortPages: 1.5},
		"negative rate": {Read: ocisim.Rate{PerSecond: -1}},
		"negative span": {Durations: map[string]ocisim.Range{"work.accept": {Min: -1}}},
		"reads":         {EventualReads: -1},
	}
	for name, o := range tests {
		if err := o.Validate(); !errors.Is(err, ocisim.ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
		region := ocisim.New(ocisim.Options{})
		before := region.Durations()
		o.PageSize = 3
		err := region.Configure(func(now *ocisim.Options) error {
			now.Durations, now.Latency, now.Rates = o.Durations, o.Latency, o.Rates
			now.ShortPages, now.Read, now.EventualReads, now.PageSize = o.ShortPages, o.Read, o.EventualReads, o.PageSize
			return nil
		})
		if err == nil || region.Options().PageSize == 3 || cmp.Diff(before, region.Durations()) != "" {
			t.Errorf("%s: Configure changed something, or no error: %v", name, err)
		}
	}
	for name, change := range map[string]func(*ocisim.Options){
		"fixed option":    func(o *ocisim.Options) { o.Seed = 9 },
		"behaviour table": func(o *ocisim.Options) { o.Behaviour = ocisim.DefaultBehaviour() },
	} {
		err := ocisim.New(ocisim.Options{}).Configure(func(o *ocisim.Options) error { change(o); return nil })
		if !errors.Is(err, ocisim.ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", "1", "5s-1s", "-1s", "1s-", "x-y"} {
		if r, err := ocisim.ParseRange(text); err == nil {
			t.Errorf("%q is %v", text, r)
		}
	}
	for _, text := range []string{"", "x", "-1", "1/x", "1/-2"} {
		if r, err := ocisim.ParseRate(text); err == nil {
			t.Errorf("%q is %v", text, r)
		}
	}
}

// TestConfigure changes a region in use, and the change outlives a reset.
func TestConfigure(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	f.region.AddInstance(ocisim.Instance{Name: "more-%d", Count: 9, Compartment: f.compartment})
	uri := api + "/instances?compartmentId=" + f.compartment
	if n := len(f.get(uri).want(http.StatusOK).array()); n != 10 {
		t.Fatalf("%d instances", n)
	}
	if err := f.region.Configure(func(o *ocisim.Options) error {
		o.PageSize, o.Rates = 4, map[string]ocisim.Rate{"compute.*": {PerSecond: 1, Burst: 2}}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n := len(f.get(uri).want(http.StatusOK).array()); n != 4 {
		t.Errorf("a page of %d", n)
	}
	f.get(uri).want(http.StatusOK)
	f.get(uri).wantError(http.StatusTooManyRequests, "TooManyRequests")
	f.region.Reset()
	if o := f.region.Options(); o.PageSize != 4 || len(o.Rates) != 1 {
		t.Errorf("after a reset: %+v", o)
	}
}

// TestBehaviourShowsItsReasons wants a reason for every entry of the table: it is what tells a reader how far to
// trust the simulator.
func TestBehaviourShowsItsReasons(t *testing.T) {
	text, err := json.Marshal(ocisim.DefaultBehaviour())
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Values  map[string]any
		Reasons map[string]string
		Rulings map[string]struct {
			Allow                 bool
			Status                int
			Code, Message, Reason string
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if want := reflect.TypeFor[ocisim.Behaviour]().NumField() - 1; len(file.Values) != want || file.Values["vnicLinger"] != "1m0s-5m0s" {
		t.Errorf("%d values, want %d: %v", len(file.Values), want, file.Values)
	}
	for name := range file.Values {
		if len(strings.Fields(file.Reasons[name])) < 5 {
			t.Errorf("%s has no reason, but %q; it is the comment on the field of Behaviour", name, file.Reasons[name])
		}
	}
	if len(file.Rulings) < 20 {
		t.Errorf("%d rulings", len(file.Rulings))
	}
	for situation, r := range file.Rulings {
		if r.Reason == "" || r.Status < 400 || r.Code == "" || r.Message == "" {
			t.Errorf("%s: %+v", situation, r)
		}
	}
}

func TestPatchBehaviour(t *testing.T) {
	region := ocisim.New(ocisim.Options{})
	before := region.Behaviour()
	for _, bad := range []string{
		`{"values":{"vnicLingers":"1s"}}`, `{"values":{"vnicLinger":"soon"}}`, `{"values":{"maxGroupRules":"many"}}`,
		`{"rulings":{"rain":{"allow":true}}}`, `{"rulings":{"reserved public address already assigned":{"status":200}}}`,
		`{"rulings":{"reserved public address already assigned":{"statuss":400}}}`, `{"value":{}}`, `[]`,
		`{"values":{"maxGroupRules":7,"vnicLinger":"soon"}}`,
	} {
		if err := region.PatchBehaviour([]byte(bad)); !errors.Is(err, ocisim.ErrBehaviour) {
			t.Errorf("%s: %v", bad, err)
		}
		if diff := cmp.Diff(before, region.Behaviour()); diff != "" {
			t.Errorf("%s changed the table:\n%s", bad, diff)
		}
	}
	good := `{"values":{"serviceLimits":{"a":1,"b":2}},"rulings":{"reserved public address already assigned":{"allow":true}}}`
	if err := region.PatchBehaviour([]byte(good)); err != nil {
		t.Fatal(err)
	}
	if err := region.PatchBehaviour([]byte(`{"values":{"serviceLimits":{"a":null}},"reasons":{"vnicLinger":"edited"}}`)); err != nil {
		t.Fatal(err)
	}
	b := region.Behaviour()
	limits := maps.Clone(before.ServiceLimits)
	limits["b"] = 2
	if diff := cmp.Diff(limits, b.ServiceLimits); diff != "" {
		t.Error(diff)
	}
	if r := b.Rulings[ocisim.ReservedIPInUse]; !r.Allow || r.Status != http.StatusConflict {
		t.Errorf("ruling %+v", r)
	}
}
