// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"crypto/rsa"
	"fmt"
	"net/http"
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// BenchmarkSeed makes 5,000 instances with attachments, VNICs and addresses.
func BenchmarkSeed(b *testing.B) {
	for b.Loop() {
		region := ocisim.New(ocisim.Options{})
		region.AddVCN(ocisim.VCN{Name: "net"})
		region.AddSubnet(ocisim.Subnet{Name: "nodes", CIDR: "10.0.0.0/16"})
		region.AddInstance(ocisim.Instance{Name: "node-%d", Count: 5000, VNIC: ocisim.VNIC{Subnet: "nodes"}})
	}
}

// BenchmarkSeedBalancers makes 2,000 load balancers with a listener and 10 backends each, and their addresses.
func BenchmarkSeedBalancers(b *testing.B) {
	for b.Loop() {
		region := ocisim.New(ocisim.Options{})
		region.AddVCN(ocisim.VCN{Name: "net"})
		region.AddSubnet(ocisim.Subnet{Name: "nodes", CIDR: "10.0.0.0/16"})
		region.AddInstance(ocisim.Instance{Name: "node-%d", Count: 10, VNIC: ocisim.VNIC{Subnet: "nodes"}})
		region.AddLoadBalancer(ocisim.LoadBalancer{
			Name: "service-%d", Count: 2000, Private: true,
			BackendSets: []ocisim.BackendSet{{Name: "TCP-80", Backends: []ocisim.Backend{{Instance: "node-*", Port: 30080}}}},
			Listeners:   []ocisim.Listener{{Port: 80}},
		})
	}
}

// BenchmarkRead reads instances, with signatures made beforehand and without any.
func BenchmarkRead(b *testing.B) {
	for _, verified := range []bool{false, true} {
		b.Run(fmt.Sprintf("verified=%t", verified), func(b *testing.B) {
			region := ocisim.New(ocisim.Options{Signatures: verified})
			id := region.AddInstance(ocisim.Instance{Name: "node-%d", Count: 5000})
			req := signedRead(b, region, pki.SigningKey(), id)
			transport := region.Transport()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					res, err := transport.RoundTrip(req.Clone(b.Context()))
					if err != nil || res.StatusCode != http.StatusOK {
						b.Errorf("%v %v", res, err)
						return
					}
				}
			})
		})
	}
}

func signedRead(b *testing.B, region *ocisim.Region, key *rsa.PrivateKey, id string) *http.Request {
	b.Helper()
	keyID := region.Options().Tenancy + "/bench/20:3b"
	region.RegisterKey(keyID, &key.PublicKey, ocisim.Principal{ID: "bench"})
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "https://iaas.us-ashburn-1.oraclecloud.com"+api+"/instances/"+id, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	c := &client{keyID: keyID, key: key}
	c.sign(req, nil)
	return req
}

// BenchmarkList reads a page of 1,000 instances.
func BenchmarkList(b *testing.B) {
	region := ocisim.New(ocisim.Options{PageSize: 1000})
	region.AddInstance(ocisim.Instance{Name: "node-%d", Count: 5000})
	transport := region.Transport()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet,
		"https://iaas.us-ashburn-1.oraclecloud.com"+api+"/instances?compartmentId="+region.Options().Tenancy, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		res, err := transport.RoundTrip(req.Clone(b.Context()))
		if err != nil || res.StatusCode != http.StatusOK {
			b.Fatalf("%v %v", res, err)
		}
	}
}
