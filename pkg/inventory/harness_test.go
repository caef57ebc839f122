// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// site is a region with one compartment and two VCNs.
type site struct {
	*ocisim.Region

	compartment  string
	vcn1, vcn2   string
	nodes, other string // subnets of vcn1 and vcn2
}

func newSite(options ocisim.Options) *site {
	s := &site{Region: ocisim.New(options)}
	s.compartment = s.AddCompartment(ocisim.Compartment{Name: "cluster"})
	s.vcn1 = s.AddVCN(ocisim.VCN{Name: "vcn1", IPv6CIDRs: []string{"fd00:10::/56"}, DNSLabel: "one"})
	s.vcn2 = s.AddVCN(ocisim.VCN{Name: "vcn2"})
	s.nodes = s.AddSubnet(ocisim.Subnet{VCN: s.vcn1, Name: "nodes", CIDR: "10.0.0.0/20", IPv6CIDR: "fd00:10::/64", DNSLabel: "nodes"})
	s.other = s.AddSubnet(ocisim.Subnet{VCN: s.vcn2, Name: "other", CIDR: "10.0.0.0/20"})
	return s
}

// inventory returns an inventory of the cluster in vcn1.
func (s *site) inventory(t *testing.T, change ...func(*inventory.Config)) *inventory.Inventory {
	t.Helper()
	c := s.client(t)
	config := inventory.Config{CompartmentID: s.compartment, VCNID: s.vcn1}
	for _, f := range change {
		f(&config)
	}
	return inventory.New(config, c.Compute(), c.Network())
}

func (s *site) client(t *testing.T) *oci.Client {
	t.Helper()
	principal, err := oci.UserPrincipal(oci.UserCredentials{
		Tenancy: s.Options().Tenancy, User: "ocid1.user.oc1..u", Region: s.Options().Region,
		Fingerprint: "20:3b:97:13:55:1c:aa:66:41:41:4b:7c:7c:ef:2e:42", PrivateKey: pki.SigningKeyPEM(),
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := oci.New(oci.Options{Provider: principal, Transport: s.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// total counts the calls since the last reset.
func (s *site) total() int {
	n := 0
	for _, count := range s.Counts() {
		n += count
	}
	return n
}
