// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// metadataRequest carries the header that the service insists on.
func metadataRequest(t *testing.T, target string) *http.Request {
	t.Helper()
	req := request(t, http.MethodGet, target, nil)
	req.Header.Set("Authorization", "Bearer Oracle")
	return req
}

func TestMetadataTellsOfTheInstance(t *testing.T) {
	s := start(t, Options{})
	first := s.Region().Instances()[0]
	response, body := do(t, http.DefaultClient, metadataRequest(t, s.MetadataURL()+"/instance/"))
	want(t, response, body, http.StatusOK, *first.Id)
	document := unmarshal[map[string]any](t, body)
	for key, wanted := range map[string]any{
		"id":                  *first.Id,
		"compartmentId":       *first.CompartmentId,
		"displayName":         *first.DisplayName,
		"availabilityDomain":  *first.AvailabilityDomain,
		"region":              "iad",
		"canonicalRegionName": "us-ashburn-1",
		"state":               "Running",
		"tenantId":            s.Region().Options().Tenancy,
	} {
		if document[key] != wanted {
			t.Errorf("%s: got %v, want %v", key, document[key], wanted)
		}
	}
	response, body = do(t, http.DefaultClient, metadataRequest(t, s.MetadataURL()+"/instance/regionInfo"))
	info := unmarshal[map[string]string](t, body)
	if response.StatusCode != http.StatusOK || info["realmKey"] != "oc1" || info["realmDomainComponent"] != "oraclecloud.com" ||
		info["regionKey"] != "IAD" || info["regionIdentifier"] != "us-ashburn-1" {
		t.Errorf("regionInfo: got %v", info)
	}
	for path, wanted := range map[string]string{
		"/instance/region":                   "iad",
		"/instance/regionInfo/realmKey":      "oc1",
		"/instance/shape":                    *first.Shape,
		"/vnics/0/vnicId":                    *s.Region().InstanceVNICs(*first.Id)[0].Id,
		"/vnics/0/nicIndex":                  "0",
		"/instance/canonicalRegionName":      "us-ashburn-1",
		"/instance/regionInfo/regionKey":     "IAD",
		"/instance/metadata/no-such-key":     "",
		"/vnics/7/vnicId":                    "",
		"/nothing":                           "",
		"/identity/no.pem":                   "",
		"/../v1/instance/":                   "",
		"/instance/shape/further/than/there": "",
	} {
		response, body := do(t, http.DefaultClient, metadataRequest(t, s.MetadataURL()+path))
		switch {
		case wanted == "" && response.StatusCode != http.StatusNotFound:
			t.Errorf("%s: got %d %s, want 404", path, response.StatusCode, body)
		case wanted != "" && (response.StatusCode != http.StatusOK || body != wanted):
			t.Errorf("%s: got %d %q, want the bare text %q", path, response.StatusCode, body, wanted)
		}
	}
}

func TestMetadataIsVersion2Only(t *testing.T) {
	s := start(t, Options{})
	base := strings.TrimSuffix(s.MetadataURL(), metadataPrefix)
	for _, path := range []string{"/opc/v1/instance/", "/openstack/latest/meta_data.json", "/opc/v20/instance/", "/"} {
		response, body := do(t, http.DefaultClient, metadataRequest(t, base+path))
		want(t, response, body, http.StatusNotFound, "")
	}
	response, body := do(t, http.DefaultClient, request(t, http.MethodGet, s.MetadataURL()+"/instance/", nil))
	want(t, response, body, http.StatusUnauthorized, "Bearer Oracle")
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host"} {
		req := metadataRequest(t, s.MetadataURL()+"/instance/")
		req.Header.Set(name, "10.0.0.1")
		response, body := do(t, http.DefaultClient, req)
		want(t, response, body, http.StatusForbidden, "rejected")
	}
	req := metadataRequest(t, s.MetadataURL()+"/instance/")
	req.Method = http.MethodPut
	response, body = do(t, http.DefaultClient, req)
	want(t, response, body, http.StatusMethodNotAllowed, "")
}

func TestMetadataThroughTheProxy(t *testing.T) {
	s := start(t, Options{})
	instances := s.Region().Instances()
	c := client(t, s, true)
	for _, host := range []string{metadataIPv4, "[" + metadataIPv6 + "]"} {
		response, body := do(t, c, metadataRequest(t, "http://"+host+"/opc/v2/instance/id"))
		want(t, response, body, http.StatusOK, *instances[0].Id)
	}
	// The user of the proxy's URL says on which instance the program runs.
	for _, ref := range []string{*instances[1].DisplayName, *instances[1].Id} {
		proxy := &url.URL{Scheme: "http", Host: s.proxyAddr, User: url.User(ref)}
		c.Transport.(*http.Transport).Proxy = http.ProxyURL(proxy)
		response, body := do(t, c, metadataRequest(t, "http://"+metadataIPv4+"/opc/v2/instance/id"))
		want(t, response, body, http.StatusOK, *instances[1].Id)
	}
	c.Transport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: s.proxyAddr, User: url.User("nobody")})
	response, body := do(t, c, metadataRequest(t, "http://"+metadataIPv4+"/opc/v2/instance/id"))
	want(t, response, body, http.StatusNotFound, "no such instance: nobody")
}

func TestMetadataOfAChosenInstance(t *testing.T) {
	name := func(i core.Instance) string { return *i.DisplayName }
	s := start(t, Options{Instance: "node-2"})
	response, body := do(t, http.DefaultClient, metadataRequest(t, s.MetadataURL()+"/instance/displayName"))
	want(t, response, body, http.StatusOK, "node-2")
	third := s.Region().Instances()[2]
	base, err := s.ServeInstance("", name(third))
	if err != nil {
		t.Fatal(err)
	}
	response, body = do(t, http.DefaultClient, metadataRequest(t, base+"/instance/id"))
	want(t, response, body, http.StatusOK, *third.Id)
}

func TestMetadataFaults(t *testing.T) {
	s := start(t, Options{})
	get := func() int {
		response, _ := do(t, http.DefaultClient, metadataRequest(t, s.MetadataURL()+"/instance/id"))
		return response.StatusCode
	}
	s.SetMetadataFault(MetadataFault{Calls: 2})
	for i, wanted := range []int{http.StatusNotFound, http.StatusNotFound, http.StatusOK} {
		if got := get(); got != wanted {
			t.Errorf("call %d: got %d, want %d", i+1, got, wanted)
		}
	}
	s.SetMetadataFault(MetadataFault{For: time.Hour, Status: http.StatusServiceUnavailable})
	if got := get(); got != http.StatusServiceUnavailable {
		t.Errorf("within the time of the fault: got %d, want 503", got)
	}
	s.SetMetadataFault(MetadataFault{})
	if got := get(); got != http.StatusOK {
		t.Errorf("after the fault was lifted: got %d, want 200", got)
	}
	seen := 0
	for _, c := range s.EdgeCalls() {
		if c.Kind == "metadata" {
			seen++
		}
	}
	if seen != 5 {
		t.Errorf("edge log has %d metadata calls, want 5", seen)
	}
}
