// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/identity"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// hosts are the endpoints of a client.
func hosts(c *Client) map[Service]string {
	return map[Service]string{
		ServiceCompute:             c.compute.Endpoint(),
		ServiceVirtualNetwork:      c.network.Endpoint(),
		ServiceIdentity:            c.identity.Endpoint(),
		ServiceLoadBalancer:        c.loadBalancer.Endpoint(),
		ServiceNetworkLoadBalancer: c.networkLoadBalancer.Endpoint(),
	}
}

func TestEndpoints(t *testing.T) {
	of := func(iaas, identity, nlb string) map[Service]string {
		return map[Service]string{
			ServiceCompute: iaas, ServiceVirtualNetwork: iaas, ServiceLoadBalancer: iaas, ServiceIdentity: identity, ServiceNetworkLoadBalancer: nlb,
		}
	}
	tests := []struct {
		name        string
		region      string
		realmDomain string
		override    map[Service]string
		want        map[Service]string
	}{
		{name: "region", region: "eu-frankfurt-1", want: of("https://iaas.eu-frankfurt-1.oraclecloud.com",
			"https://identity.eu-frankfurt-1.oci.oraclecloud.com", "https://network-load-balancer-api.eu-frankfurt-1.oci.oraclecloud.com")},
		{name: "region key", region: "FRA", want: of("https://iaas.eu-frankfurt-1.oraclecloud.com",
			"https://identity.eu-frankfurt-1.oci.oraclecloud.com", "https://network-load-balancer-api.eu-frankfurt-1.oci.oraclecloud.com")},
		{name: "another realm", region: "us-gov-ashburn-1", want: of("https://iaas.us-gov-ashburn-1.oraclegovcloud.com",
			"https://identity.us-gov-ashburn-1.oci.oraclegovcloud.com", "https://network-load-balancer-api.us-gov-ashburn-1.oci.oraclegovcloud.com")},
		{name: "the principal's", want: of("https://iaas.us-ashburn-1.oraclecloud.com",
			"https://identity.us-ashburn-1.oci.oraclecloud.com", "https://network-load-balancer-api.us-ashburn-1.oci.oraclecloud.com")},
		{name: "dotted region", region: "ocisim.svc.cluster.local", want: of("https://iaas.ocisim.svc.cluster.local",
			"https://identity.ocisim.svc.cluster.local", "https://network-load-balancer-api.ocisim.svc.cluster.local")},
		{name: "new region of another realm", region: "xx-new-1", realmDomain: "example.cloud", want: of("https://iaas.xx-new-1.example.cloud",
			"https://identity.xx-new-1.oci.example.cloud", "https://network-load-balancer-api.xx-new-1.oci.example.cloud")},
		{name: "known region stays in its realm", region: "eu-frankfurt-1", realmDomain: "example.cloud", want: of("https://iaas.eu-frankfurt-1.oraclecloud.com",
			"https://identity.eu-frankfurt-1.oci.oraclecloud.com", "https://network-load-balancer-api.eu-frankfurt-1.oci.oraclecloud.com")},
		{name: "override of one service", region: "eu-frankfurt-1", override: map[Service]string{ServiceIdentity: "http://127.0.0.1:18080/"},
			want: of("https://iaas.eu-frankfurt-1.oraclecloud.com", "http://127.0.0.1:18080", "https://network-load-balancer-api.eu-frankfurt-1.oci.oraclecloud.com")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := newTestClient(t, nil, func(o *Options) {
				o.Region, o.RealmDomain, o.Endpoints = tt.region, tt.realmDomain, tt.override
			})
			if diff := cmp.Diff(tt.want, hosts(c)); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	good := Options{Provider: testPrincipal(t), Region: testRegion}
	tests := map[string]func(*Options){
		"no principal":       func(o *Options) { o.Provider = nil },
		"no region":          func(o *Options) { o.Region = ""; o.Provider = &userPrincipal{} },
		"unknown service":    func(o *Options) { o.Endpoints = map[Service]string{"core": "https://h"} },
		"endpoint with path": func(o *Options) { o.Endpoints = map[Service]string{ServiceCompute: "https://h/20160918"} },
		"endpoint with user": func(o *Options) { o.Endpoints = map[Service]string{ServiceCompute: "https://x@h"} },
		"endpoint no scheme": func(o *Options) { o.Endpoints = map[Service]string{ServiceCompute: "h:443"} },
		"CA bundle no PEM":   func(o *Options) { o.CABundle = []byte("secret-looking text") },
	}
	for name, spoil := range tests {
		o := good
		spoil(&o)
		c, err := New(o)
		if err == nil || c != nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "secret-looking") {
			t.Errorf("%s: the message quotes the bundle: %v", name, err)
		}
	}
}

// The SDK repeats nothing and keeps nothing back by itself: each request it makes is one that invoke asked for.
func TestSDKNeitherRetriesNorBreaksTheCircuit(t *testing.T) {
	c, wire := newTestClient(t, func(int, *http.Request) (*http.Response, error) {
		return refusal(503, "ServiceUnavailable"), nil
	})
	id := "ocid1.networkloadbalancer.oc1.iad.n"
	for i := range 30 { // enough to open the SDK's circuit breaker
		_, err := c.networkLoadBalancer.GetNetworkLoadBalancer(t.Context(), networkloadbalancer.GetNetworkLoadBalancerRequest{NetworkLoadBalancerId: &id})
		if err == nil || wire.count() != i+1 {
			t.Fatalf("%d requests after %d calls; error: %v", wire.count(), i+1, err)
		}
	}
	c, wire = newTestClient(t, func(int, *http.Request) (*http.Response, error) {
		return refusal(401, "NotAuthenticated"), nil
	}, func(o *Options) { o.Provider = &refreshableOfSDK{o.Provider} })
	if _, err := c.identity.ListAvailabilityDomains(t.Context(), identity.ListAvailabilityDomainsRequest{CompartmentId: &id}); err == nil || wire.count() != 1 {
		t.Errorf("%d requests for a 401; error: %v", wire.count(), err)
	}
}

// refreshableOfSDK has the method by which the SDK knows principals whose 401s it repeats.
type refreshableOfSDK struct{ common.ConfigurationProvider }

func (refreshableOfSDK) Refreshable() bool { return true }

// C155: an unknown CA is a clear error, at once; with its bundle the call succeeds.
func TestPrivateCA(t *testing.T) {
	requests := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		_, _ = w.Write([]byte(runningInstance))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it is told that it is not trusted
	server.StartTLS()
	defer server.Close()
	options := Options{
		Provider: testPrincipal(t), Region: testRegion, Endpoints: map[Service]string{ServiceCompute: server.URL},
	}
	c, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Compute().GetInstance(t.Context(), testInstance)
	var unknown x509.UnknownAuthorityError
	var failure *Error
	if !errors.As(err, &unknown) || !errors.As(err, &failure) || failure.Attempts != 1 {
		t.Errorf("error %v, want one about the unknown authority after one attempt", err)
	}
	if requests != 0 {
		t.Errorf("%d requests reached a server that is not trusted", requests)
	}

	options.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if c, err = New(options); err != nil {
		t.Fatal(err)
	}
	i, err := c.Compute().GetInstance(t.Context(), testInstance)
	if err != nil || i.State != "RUNNING" || requests != 1 {
		t.Errorf("got %+v, %v after %d requests", i, err, requests)
	}

	// The variable that the existing implementation's SDK reads goes on working.
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, options.CABundle, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OCI_DEFAULT_CERTS_PATH", path)
	options.CABundle = nil
	if c, err = New(options); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compute().GetInstance(t.Context(), testInstance); err != nil {
		t.Error(err)
	}
}
