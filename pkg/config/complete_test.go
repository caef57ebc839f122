// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fakeMetadata answers with an error until a moment.
type fakeMetadata struct {
	document InstanceDocument
	until    time.Time
	asked    int
}

func (f *fakeMetadata) Instance(context.Context) (InstanceDocument, error) {
	f.asked++
	if time.Now().Before(f.until) {
		return InstanceDocument{}, &MetadataStatusError{URL: "http://metadata", Status: http.StatusNotFound}
	}
	return f.document, nil
}

func ashburn() InstanceDocument {
	return InstanceDocument{
		CompartmentID: "ocid1.compartment.oc1..instance", Region: "iad", CanonicalRegionName: "us-ashburn-1",
		RegionInfo: RegionInfo{RealmKey: "oc1", RealmDomainComponent: "oraclecloud.com", RegionKey: "IAD", RegionIdentifier: "us-ashburn-1"},
	}
}

func TestComplete(t *testing.T) {
	newRegion := InstanceDocument{
		CompartmentID: "ocid1.compartment.oc99..instance", Region: "xx-new-1", CanonicalRegionName: "xx-new-1",
		RegionInfo: RegionInfo{RealmKey: "oc99", RealmDomainComponent: "example-realm.com", RegionKey: "XNW", RegionIdentifier: "xx-new-1"},
	}
	for _, test := range []struct {
		name        string
		config      Config
		document    InstanceDocument
		asked       int
		region, key string
		compartment string
		realm       Realm
	}{
		{"explicit", Config{Compartment: "c", Auth: Auth{Region: "us-phoenix-1"}}, ashburn(), 0, "us-phoenix-1", "", "c", Realm{}},
		{"nothing set", Config{}, ashburn(), 1, "us-ashburn-1", "iad", "ocid1.compartment.oc1..instance", Realm{"oc1", "oraclecloud.com"}},
		{"only the compartment is missing", Config{Auth: Auth{Region: "us-phoenix-1"}}, ashburn(), 1, "us-phoenix-1", "", "ocid1.compartment.oc1..instance", Realm{}},
		{"region set as a key", Config{Auth: Auth{Region: "IAD"}}, ashburn(), 1, "IAD", "iad", "ocid1.compartment.oc1..instance", Realm{"oc1", "oraclecloud.com"}},
		{"own region key", Config{RegionKey: "mine"}, ashburn(), 1, "us-ashburn-1", "mine", "ocid1.compartment.oc1..instance", Realm{"oc1", "oraclecloud.com"}},
		{"region that the SDK does not know", Config{}, newRegion, 1, "xx-new-1", "xx-new-1", "ocid1.compartment.oc99..instance", Realm{"oc99", "example-realm.com"}},
		{"no canonical name", Config{}, InstanceDocument{Region: "iad"}, 1, "iad", "iad", "", Realm{}},
		{"instance principal keeps the region of the instance", Config{UseInstancePrincipals: true, Compartment: "c", Auth: Auth{Region: "us-phoenix-1"}}, ashburn(), 1, "us-ashburn-1", "iad", "c", Realm{"oc1", "oraclecloud.com"}},
		{"empty document", Config{}, InstanceDocument{}, 1, "", "", "", Realm{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, metadata := test.config, &fakeMetadata{document: test.document}
			if err := Complete(t.Context(), &c, metadata); err != nil {
				t.Fatal(err)
			}
			if metadata.asked != test.asked {
				t.Errorf("asked metadata %d times, want %d", metadata.asked, test.asked)
			}
			if c.Auth.Region != test.region || c.RegionKey != test.key || c.Compartment != test.compartment || c.Realm != test.realm {
				t.Errorf("got region %q, key %q, compartment %q, realm %v", c.Auth.Region, c.RegionKey, c.Compartment, c.Realm)
			}
			if fromFile := test.config.Compartment != ""; !fromFile && test.compartment != "" && c.Origin("compartment").String() != "instance metadata" {
				t.Errorf("origin of compartment is %v", c.Origin("compartment"))
			}
		})
	}
}

func TestCompleteAsksOnceMoreUntilThereIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		metadata := &fakeMetadata{document: ashburn(), until: start.Add(20 * time.Second)}
		c := &Config{}
		if err := Complete(t.Context(), c, metadata); err != nil {
			t.Fatal(err)
		}
		if c.Auth.Region != "us-ashburn-1" {
			t.Errorf("region is %q", c.Auth.Region)
		}
		if d := time.Since(start); d > 33*time.Second || metadata.asked < 5 || metadata.asked > 10 {
			t.Errorf("took %s and %d questions", d, metadata.asked)
		}
	})
}

func TestCompleteEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := Complete(ctx, &Config{}, &fakeMetadata{until: start.Add(time.Hour)})
		var missing *MetadataError
		var status *MetadataStatusError
		if !errors.As(err, &missing) || !errors.As(err, &status) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if !strings.Contains(err.Error(), "auth.region and compartment") || status.Status != http.StatusNotFound {
			t.Errorf("got %v", err)
		}
		if d := time.Since(start); d != time.Minute {
			t.Errorf("ended after %s", d)
		}
	})
}

func TestValidate(t *testing.T) {
	lookup := func(set map[string]string) Environment {
		e, _ := FromEnviron(func(name string) (string, bool) { v, ok := set[name]; return v, ok })
		return e
	}
	for _, test := range []struct {
		name   string
		config Config
		want   []string // parts of the messages
	}{
		{"complete", Config{Compartment: "c", Auth: Auth{Region: "r"}}, nil},
		{"nothing", Config{}, []string{"auth.region: required", "compartment: required"}},
		{"workload identity without environment", Config{UseWorkloadIdentity: true, Compartment: "c", Auth: Auth{Region: "r"}},
			[]string{"OCI_WORKLOAD_IDENTITY_DOMAIN_URL: required", "OCI_WORKLOAD_IDENTITY_RESOURCE_TYPE: required", "OCI_WORKLOAD_IDENTITY_CLIENT_ID: required", "OCI_WORKLOAD_IDENTITY_CLIENT_SECRET: required"}},
		{"workload identity of an instance", Config{UseWorkloadIdentity: true, Compartment: "c", Auth: Auth{Region: "r"}, Environment: lookup(map[string]string{
			"OCI_WORKLOAD_IDENTITY_DOMAIN_URL": "https://idcs.example.com", "OCI_WORKLOAD_IDENTITY_RESOURCE_TYPE": "t",
			"OCI_WORKLOAD_IDENTITY_USE_INSTANCE_PRINCIPAL_FOR_TOKEN_EXCHANGE": "TRUE"})}, nil},
		{"workload identity with a bad URL", Config{UseWorkloadIdentity: true, Compartment: "c", Auth: Auth{Region: "r"}, Environment: lookup(map[string]string{
			"OCI_WORKLOAD_IDENTITY_DOMAIN_URL": "idcs", "OCI_WORKLOAD_IDENTITY_RESOURCE_TYPE": "t",
			"OCI_WORKLOAD_IDENTITY_CLIENT_ID": "i", "OCI_WORKLOAD_IDENTITY_CLIENT_SECRET": "s"})}, []string{`OCI_WORKLOAD_IDENTITY_DOMAIN_URL: not a URL: "idcs"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := messages(Validate(&test.config))
			if len(got) != len(test.want) {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			for i := range got {
				if !strings.Contains(got[i], test.want[i]) {
					t.Errorf("got %q, want %q", got[i], test.want[i])
				}
			}
		})
	}
}

// metadataServer is a metadata service as strict as the real one.
func metadataServer(t *testing.T, answer http.HandlerFunc) (url string, requests *atomic.Int32) {
	t.Helper()
	requests = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		for _, forwarded := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host"} {
			if r.Header.Get(forwarded) != "" {
				t.Errorf("the request carries %s", forwarded)
			}
		}
		if r.Method != http.MethodGet || r.URL.Path != "/opc/v2/instance/" {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		if r.Header.Get("Authorization") != "Bearer Oracle" {
			http.Error(w, "version 2 only", http.StatusUnauthorized)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/opc/v2", requests
}

func TestMetadataClient(t *testing.T) {
	url, requests := metadataServer(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"id":"ocid1.instance.oc1.iad.x","compartmentId":"ocid1.compartment.oc1..instance","region":"iad","canonicalRegionName":"us-ashburn-1",
			"regionInfo":{"realmKey":"oc1","realmDomainComponent":"oraclecloud.com","regionKey":"IAD","regionIdentifier":"us-ashburn-1"},"metadata":{"user_data":"x"}}`))
	})
	got, err := NewMetadataClient(url + "/").Instance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got != ashburn() {
		t.Errorf("got %+v", got)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestMetadataClientErrors(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"not found": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"redirect":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"no JSON":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"half a body": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"compartmentId":"ocid1.comp`))
		},
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"x":"` + strings.Repeat("x", 2*maxMetadataSize) + `"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, requests := metadataServer(t, answer)
			document, err := NewMetadataClient(url).Instance(t.Context())
			if err == nil {
				t.Fatalf("got %+v", document)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// TestMetadataClientUsesNoProxy looks at the transport, since Go never sends loopback addresses through a proxy anyway.
func TestMetadataClientUsesNoProxy(t *testing.T) {
	client := NewMetadataClient("")
	if client.url != "http://169.254.169.254/opc/v2/instance/" {
		t.Errorf("asks %s", client.url)
	}
	if transport := client.client.Transport.(*http.Transport); transport.Proxy != nil {
		t.Error("the transport has a proxy function")
	}
	if client.client.Timeout != 5*time.Second {
		t.Errorf("one try may take %s", client.client.Timeout)
	}
}
