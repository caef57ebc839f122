// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	nlb "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// newUser makes a user with an API key that the region knows.
func newUser(region *ocisim.Region) (common.ConfigurationProvider, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	const user, fingerprint = "ocid1.user.oc1..example", "aa:bb"
	o := region.Options()
	region.RegisterKey(o.Tenancy+"/"+user+"/"+fingerprint, &key.PublicKey, ocisim.Principal{ID: user})
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return common.NewRawConfigurationProvider(o.Tenancy, user, o.Region, fingerprint, string(text), nil), nil
}

// A program on the OCI SDK and a region in one process: no connection, no server.
func Example() {
	region := ocisim.New(ocisim.Options{Seed: 1, Signatures: true})
	compartment := region.AddCompartment(ocisim.Compartment{Name: "cluster"})
	region.AddVCN(ocisim.VCN{})
	region.AddSubnet(ocisim.Subnet{Name: "nodes", CIDR: "10.0.0.0/24"})
	region.AddInstance(ocisim.Instance{Name: "node-%d", Count: 3, VNIC: ocisim.VNIC{Subnet: "nodes"}})

	user, err := newUser(region)
	if err != nil {
		fmt.Println(err)
		return
	}
	compute, err := core.NewComputeClientWithConfigurationProvider(user)
	if err != nil {
		fmt.Println(err)
		return
	}
	compute.HTTPClient = &http.Client{Transport: region.Transport()}

	answer, err := compute.ListInstances(context.Background(), core.ListInstancesRequest{CompartmentId: &compartment})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, instance := range answer.Items {
		fmt.Println(*instance.DisplayName, instance.LifecycleState)
	}
	fmt.Println(region.Counts())
	// Output:
	// node-1 RUNNING
	// node-2 RUNNING
	// node-3 RUNNING
	// map[compute.ListInstances:1]
}

// TestExampleOnVirtualTime waits for a balancer as long as the real one takes, which is no time at all in a bubble.
func TestExampleOnVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		region := ocisim.New(ocisim.Options{Seed: 1, Signatures: true})
		compartment := region.AddCompartment(ocisim.Compartment{Name: "cluster"})
		region.AddVCN(ocisim.VCN{})
		subnet := region.AddSubnet(ocisim.Subnet{Name: "balancers", CIDR: "10.0.0.0/24"})
		user, err := newUser(region)
		if err != nil {
			t.Fatal(err)
		}
		client, err := nlb.NewNetworkLoadBalancerClientWithConfigurationProvider(user)
		if err != nil {
			t.Fatal(err)
		}
		client.HTTPClient = &http.Client{Transport: region.Transport()}
		began := time.Now()

		created, err := client.CreateNetworkLoadBalancer(t.Context(), nlb.CreateNetworkLoadBalancerRequest{
			CreateNetworkLoadBalancerDetails: nlb.CreateNetworkLoadBalancerDetails{
				CompartmentId: &compartment, SubnetId: &subnet, DisplayName: common.String("web"),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for {
			got, err := client.GetNetworkLoadBalancer(t.Context(), nlb.GetNetworkLoadBalancerRequest{NetworkLoadBalancerId: created.Id})
			if err != nil {
				t.Fatal(err)
			}
			if got.LifecycleState == nlb.LifecycleStateActive {
				break
			}
			time.Sleep(5 * time.Second)
		}
		if took := time.Since(began); took < 10*time.Second {
			t.Errorf("the balancer was there after %s", took)
		}

		// Now the policy is taken away: the balancer is there, and yet the answer is 404.
		restore := region.Deny(ocisim.Policy{Verb: ocisim.Read, ResourceType: "network-load-balancers"})
		defer restore()
		_, err = client.GetNetworkLoadBalancer(t.Context(), nlb.GetNetworkLoadBalancerRequest{NetworkLoadBalancerId: created.Id})
		if failure, ok := common.IsServiceError(err); !ok || failure.GetHTTPStatusCode() != http.StatusNotFound {
			t.Errorf("without the policy the answer was %v", err)
		}
	})
}
