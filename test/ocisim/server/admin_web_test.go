// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// fetch reads an answer of the admin API.
func fetch[T any](t *testing.T, s *Server, path string) T {
	t.Helper()
	response, body := do(t, &http.Client{}, request(t, http.MethodGet, s.AdminURL()+path, nil))
	want(t, response, body, http.StatusOK, "")
	return unmarshal[T](t, body)
}

// listDomains makes the cheapest call of the region, as a principal.
func domainsAs(t *testing.T, s *Server, principal string) {
	t.Helper()
	response, body := do(t, client(t, s, false), signed(t, user(t, s, principal), http.MethodGet, domainsURL(s, s.URL()), nil))
	want(t, response, body, http.StatusOK, "")
}

func TestUpdatesSayWhatChanged(t *testing.T) {
	s := start(t, Options{})
	first := fetch[Updates](t, s, "/updates")
	if again := fetch[Updates](t, s, "/updates"); again.Tag != first.Tag {
		t.Error("the tag changed although nothing happened")
	}
	if got := fetch[Updates](t, s, "/updates?wait=50ms&since="+first.Tag); got.Tag != first.Tag {
		t.Error("a wait without any change returned another tag")
	}
	tag := first.Tag
	for name, change := range map[string]func(){
		"call":     func() { domainsAs(t, s, "alice") },
		"resource": func() { s.Region().AddInstance(ocisim.Instance{Name: "one more"}) },
		"fault":    func() { s.Region().Fault(ocisim.Fault{Operation: "GetVnic", Status: 500}) },
		"clock":    func() { s.Region().Advance(time.Hour) },
		"hold": func() {
			if _, err := s.StopAfter(StopRule{N: 1}); err != nil {
				t.Error(err)
			}
		},
	} {
		if name == "hold" {
			continue // last: it would hold the call
		}
		changed := make(chan struct{})
		go func() {
			defer close(changed)
			time.Sleep(20 * time.Millisecond) // so that the request waits, most probably
			change()
		}()
		u := fetch[Updates](t, s, "/updates?wait=60s&since="+tag)
		<-changed
		if u.Tag == tag {
			t.Errorf("%s: the wait ended without news", name)
		}
		tag = fetch[Updates](t, s, "/updates").Tag
	}
	if _, err := s.StopAfter(StopRule{N: 1}); err != nil {
		t.Fatal(err)
	}
	u := fetch[Updates](t, s, "/updates")
	if u.Calls != 1 || u.LastSeq != 1 || len(u.Faults) != 1 || len(u.Holds) != 1 || time.Duration(u.Ahead) != time.Hour {
		t.Errorf("updates are %+v", u)
	}
}

func TestFaultsInForce(t *testing.T) {
	s := start(t, Options{})
	c := &http.Client{}
	for range 2 { // equal ones
		response, body := do(t, c, request(t, http.MethodPost, s.AdminURL()+"/faults", []byte(`{"operation":"ListAvailabilityDomains","delay":"1ms","drop":"after","times":1}`)))
		want(t, response, body, http.StatusCreated, "")
	}
	s.Region().Fault(ocisim.Fault{Operation: "GetVnic", Status: 500})
	_, _ = c.Do(signed(t, user(t, s, "alice"), http.MethodGet, domainsURL(s, s.URL()), nil)) // does not trust the CA
	list := fetch[Updates](t, s, "/updates").Faults
	if len(list) != 3 || list[0].ID != "1" || list[1].ID != "2" || list[2].ID != "" {
		t.Fatalf("faults in force: %+v", list)
	}
	if v := list[0].Value; v.Drop != ocisim.AfterApply || v.Delay != time.Millisecond || v.Times != 1 {
		t.Errorf("the first fault shows as %+v", v)
	}
	response, body := do(t, c, request(t, http.MethodDelete, s.AdminURL()+"/faults/1", nil))
	want(t, response, body, http.StatusNoContent, "")
	if list = fetch[Updates](t, s, "/updates").Faults; len(list) != 2 || list[0].ID != "2" {
		t.Errorf("faults in force after a removal: %+v", list)
	}
}

// objectPage is what /objects answers.
type objectPage struct {
	Objects []struct {
		ocisim.Object

		Extra map[string]any `json:"extra"`
	} `json:"objects"`
	Matched   int                       `json:"matched"`
	Mentioned map[string]ocisim.Mention `json:"mentioned"`
}

func TestObjects(t *testing.T) {
	s := start(t, Options{})
	s.Region().AddInstance(ocisim.Instance{Name: "stopped", State: "STOPPED"})
	subnet := "ocid1.subnet.oc1.iad.aaaaaaaademonodes"
	cases := map[string]struct {
		names   string
		matched int
	}{
		"kind=instance":                                              {"node-1 node-2 node-3 stopped", 4},
		"kind=instance&limit=2":                                      {"node-1 node-2", 4},
		"kind=instance&limit=2&skip=1":                               {"node-2 node-3", 4},
		"kind=instance&state=STOPPED":                                {"stopped", 1},
		"kind=instance&text=AAAADEMONODE2":                           {"node-2", 1},
		"kind=instance&text=us-ashburn-ad-3":                         {"node-3", 1},
		"kind=instance&text=nosuch":                                  {"", 0},
		"kind=subnet&kind=VCN":                                       {"demo load-balancers nodes", 3},
		"kind=VNIC&limit=1&under=" + subnet:                          {"node-1", 4}, // three nodes and a mount target
		"id=" + subnet:                                               {"nodes", 1},
		"id=" + subnet + "&kind=VCN":                                 {"", 0},
		"id=ocid1.instance.oc1.iad.aaaaaaaademonode1&id=" + "nosuch": {"node-1", 1},
	}
	for query, tc := range cases {
		page := fetch[objectPage](t, s, "/objects?"+query)
		var names []string
		for _, o := range page.Objects {
			names = append(names, o.Name)
		}
		if got := strings.Join(names, " "); got != tc.names || page.Matched != tc.matched {
			t.Errorf("%s: got %q of %d, want %q of %d", query, got, page.Matched, tc.names, tc.matched)
		}
	}
	page := fetch[objectPage](t, s, "/objects?kind=instance&limit=1")
	if vnics, ok := page.Objects[0].Extra["vnics"].([]any); !ok || len(vnics) != 1 {
		t.Errorf("the instance comes with %v", page.Objects[0].Extra)
	}
	if m := page.Mentioned["ocid1.compartment.oc1..aaaaaaaademo"]; m != (ocisim.Mention{Kind: "compartment", Name: "demo"}) {
		t.Errorf("the compartment of the instance is %+v", m)
	}
	for _, query := range []string{"limit=many", "skip=-1"} {
		response, body := do(t, &http.Client{}, request(t, http.MethodGet, s.AdminURL()+"/objects?"+query, nil))
		want(t, response, body, http.StatusBadRequest, "want a number")
	}
}

func TestKindsAndOperations(t *testing.T) {
	s := start(t, Options{})
	for _, k := range fetch[[]ocisim.KindSummary](t, s, "/kinds") {
		if k.Kind == "instance" && (k.Count != 3 || k.States["RUNNING"] != 3 || k.Revision == "") {
			t.Errorf("instances: %+v", k)
		}
	}
	found := false
	for _, o := range fetch[[]operation](t, s, "/operations") {
		if o.Name == "" || o.Service == "" {
			t.Errorf("operation without a name: %+v", o)
		}
		found = found || o == operation{Service: "compute", Name: "GetInstance", Verb: ocisim.Read, Resource: "instances"}
	}
	if !found {
		t.Error("GetInstance is missing, or incomplete")
	}
}

func TestRecentCalls(t *testing.T) {
	s := start(t, Options{})
	for range 3 {
		domainsAs(t, s, "alice")
	}
	domainsAs(t, s, "bob")
	bob := user(t, s, "bob")
	response, body := do(t, client(t, s, false), signed(t, bob, http.MethodGet, s.URL()+"/20160918/instances/ocid1.instance.oc1.iad.nosuch", nil))
	want(t, response, body, http.StatusNotFound, "")
	cases := map[string]struct {
		seqs []uint64
		more bool
	}{
		"":                        {[]uint64{5, 4, 3, 2, 1}, false},
		"limit=2":                 {[]uint64{5, 4}, true},
		"limit=2&before=4":        {[]uint64{3, 2}, true},
		"limit=3&before=4":        {[]uint64{3, 2, 1}, false},
		"since=3":                 {[]uint64{5, 4}, false},
		"since=1&limit=2":         {[]uint64{5, 4}, true},
		"operation=availability":  {[]uint64{4, 3, 2, 1}, false},
		"operation=compute.getin": {[]uint64{5}, false},
		"principal=" + url.QueryEscape(strings.ToUpper(bob.OCID)): {[]uint64{5, 4}, false},
		"status=404":     {[]uint64{5}, false},
		"status=2xx":     {[]uint64{4, 3, 2, 1}, false},
		"status=errors":  {[]uint64{5}, false},
		"status=dropped": {nil, false},
		"text=NOSUCH":    {[]uint64{5}, false},
		"writes=true":    {nil, false},
		"faults=true":    {nil, false},
	}
	for query, tc := range cases {
		page := fetch[RecentCalls](t, s, "/calls/recent?"+query)
		var seqs []uint64
		for _, c := range page.Calls {
			seqs = append(seqs, c.Seq)
		}
		if len(seqs) != len(tc.seqs) || page.More != tc.more || page.LastSeq != 5 {
			t.Errorf("%s: got %v, more %v, last %d; want %v, more %v", query, seqs, page.More, page.LastSeq, tc.seqs, tc.more)
			continue
		}
		for i := range seqs {
			if seqs[i] != tc.seqs[i] {
				t.Errorf("%s: got %v, want %v", query, seqs, tc.seqs)
				break
			}
		}
	}
	if m := fetch[RecentCalls](t, s, "/calls/recent?limit=1").Mentioned[bob.OCID]; m != (ocisim.Mention{Kind: "user", Name: "bob"}) {
		t.Errorf("the principal of the last call is %+v", m)
	}
	third := fetch[RecentCalls](t, s, "/calls/recent?before=4&limit=1").Calls[0]
	if page := fetch[RecentCalls](t, s, "/calls/recent?since=3"); !page.Since.Equal(third.Time) {
		t.Errorf("call 3 was made %s, not %s", third.Time, page.Since)
	}
	s.Region().ResetCalls()
	if page := fetch[RecentCalls](t, s, "/calls/recent?since=3"); !page.Since.IsZero() || page.LastSeq != 0 {
		t.Errorf("the empty log answers %+v", page)
	}
	for _, query := range []string{"status=600", "status=often", "before=first", "limit=-1"} {
		response, body := do(t, &http.Client{}, request(t, http.MethodGet, s.AdminURL()+"/calls/recent?"+query, nil))
		want(t, response, body, http.StatusBadRequest, "want a")
	}
}

func TestRecentEdge(t *testing.T) {
	s := start(t, Options{})
	for _, path := range []string{"/opc/v2/instance/", "/opc/v2/vnics/"} {
		req := request(t, http.MethodGet, strings.TrimSuffix(s.MetadataURL(), "/opc/v2")+path, nil)
		req.Header.Set("Authorization", "Bearer Oracle")
		do(t, &http.Client{}, req)
	}
	list := fetch[[]EdgeCall](t, s, "/edge/recent?limit=1")
	if len(list) != 1 || !strings.Contains(list[0].Target, "vnics") {
		t.Errorf("the newest request is %+v", list)
	}
	if n := fetch[Updates](t, s, "/updates").Edge; n != 2 {
		t.Errorf("%d requests are counted, want 2", n)
	}
}
