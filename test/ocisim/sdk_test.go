// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/identity"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// sdkProvider is a user principal that the region knows.
func sdkProvider(region *ocisim.Region) common.ConfigurationProvider {
	tenancy := region.Options().Tenancy
	region.RegisterKey(tenancy+"/ocid1.user.oc1..u/aa:bb", &pki.SigningKey().PublicKey, ocisim.Principal{ID: "ocid1.user.oc1..u"})
	key := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(pki.SigningKey())})
	return common.NewRawConfigurationProvider(tenancy, "ocid1.user.oc1..u", "us-ashburn-1", "aa:bb", string(key), nil)
}

// TestSDKOnVirtualTime drives the unmodified SDK through the transport: signatures, pages, the models with their
// polymorphic parts, errors, and retries that take their full waiting time, which is nothing here.
func TestSDKOnVirtualTime(t *testing.T) {
	pki.SigningKey()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, ocisim.Options{Signatures: true, PageSize: 2})
		f.region.AddInstance(ocisim.Instance{Name: "more-%d", Count: 4})
		provider := sdkProvider(f.region)
		compute, err := core.NewComputeClientWithConfigurationProvider(provider)
		if err != nil {
			t.Fatal(err)
		}
		compute.HTTPClient = &http.Client{Transport: f.region.Transport()}
		ctx := t.Context()

		seen, page := 0, (*string)(nil)
		for {
			r, err := compute.ListInstances(ctx, core.ListInstancesRequest{CompartmentId: &f.compartment, Page: page})
			if err != nil {
				t.Fatal(err)
			}
			seen += len(r.Items)
			if page = r.OpcNextPage; page == nil {
				break
			}
		}
		if seen != 5 {
			t.Errorf("the pages brought %d instances", seen)
		}

		sdkRetries(ctx, t, f, compute)
		sdkNetwork(ctx, t, f, provider)

		identities, err := identity.NewIdentityClientWithConfigurationProvider(provider)
		if err != nil {
			t.Fatal(err)
		}
		identities.HTTPClient = &http.Client{Transport: f.region.Transport()}
		domains, err := identities.ListAvailabilityDomains(ctx, identity.ListAvailabilityDomainsRequest{CompartmentId: &f.compartment})
		if err != nil || len(domains.Items) != 3 {
			t.Errorf("domains %v: %v", domains.Items, err)
		}
	})
}

// sdkRetries lets the SDK's own policy ride out an outage.
func sdkRetries(ctx context.Context, t *testing.T, f *fixture, compute core.ComputeClient) {
	t.Helper()
	f.region.Fault(ocisim.Fault{Operation: "GetInstance", Status: 429, Times: 2})
	f.region.Fault(ocisim.Fault{Operation: "GetInstance", Drop: ocisim.BeforeApply, Nth: 3, Times: 2})
	policy := common.DefaultRetryPolicy()
	began := time.Now()
	r, err := compute.GetInstance(ctx, core.GetInstanceRequest{
		InstanceId: &f.instance, RequestMetadata: common.RequestMetadata{RetryPolicy: &policy},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := f.region.Counts()["compute.GetInstance"]; n != 5 {
		t.Errorf("%d attempts, want four failures and a success", n)
	}
	if time.Since(began) < time.Second {
		t.Errorf("four retries took %s of virtual time", time.Since(began))
	}
	if _, ok := r.SourceDetails.(core.InstanceSourceViaImageDetails); !ok || *r.Etag == "" || *r.LaunchOptions.IsPvEncryptionInTransitEnabled {
		t.Errorf("instance %v", r.Instance)
	}

	unknown := "ocid1.instance.oc1.iad.gone"
	_, err = compute.GetInstance(ctx, core.GetInstanceRequest{InstanceId: &unknown})
	failure, ok := common.IsServiceError(err)
	if !ok || failure.GetHTTPStatusCode() != 404 || failure.GetCode() != "NotAuthorizedOrNotFound" || failure.GetOpcRequestID() == "" {
		t.Errorf("error %v", err)
	}
}

// sdkNetwork writes through the SDK, which adds a retry token of its own to creates.
func sdkNetwork(ctx context.Context, t *testing.T, f *fixture, provider common.ConfigurationProvider) {
	t.Helper()
	network, err := core.NewVirtualNetworkClientWithConfigurationProvider(provider)
	if err != nil {
		t.Fatal(err)
	}
	network.HTTPClient = &http.Client{Transport: f.region.Transport()}
	f.region.Fault(ocisim.Fault{Operation: "CreateNetworkSecurityGroup", Drop: ocisim.AfterApply, Times: 1})
	policy := common.DefaultRetryPolicy()
	created, err := network.CreateNetworkSecurityGroup(ctx, core.CreateNetworkSecurityGroupRequest{
		CreateNetworkSecurityGroupDetails: core.CreateNetworkSecurityGroupDetails{CompartmentId: &f.compartment, VcnId: &f.vcn},
		RequestMetadata:                   common.RequestMetadata{RetryPolicy: &policy},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.region.SecurityGroups()); n != 1 {
		t.Errorf("%d groups after a lost answer and a retry with the SDK's token", n)
	}
	_, err = network.AddNetworkSecurityGroupSecurityRules(ctx, core.AddNetworkSecurityGroupSecurityRulesRequest{
		NetworkSecurityGroupId: created.Id,
		AddNetworkSecurityGroupSecurityRulesDetails: core.AddNetworkSecurityGroupSecurityRulesDetails{
			SecurityRules: []core.AddSecurityRuleDetails{{
				Direction: core.AddSecurityRuleDetailsDirectionIngress, Protocol: common.String("6"), Source: common.String("0.0.0.0/0"),
				TcpOptions: &core.TcpOptions{DestinationPortRange: &core.PortRange{Min: common.Int(443), Max: common.Int(443)}},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if rules := f.region.GroupRules(*created.Id); len(rules) != 1 || *rules[0].TcpOptions.DestinationPortRange.Max != 443 {
		t.Errorf("rules %v", rules)
	}
}
