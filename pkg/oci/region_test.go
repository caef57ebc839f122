// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// These tests run the services against the simulated region, on virtual time.

var regionKey = sync.OnceValue(func() string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
})

// connect returns a client of the region.
func connect(t *testing.T, region *ocisim.Region, change ...func(*oci.Options)) *oci.Client {
	t.Helper()
	principal, err := oci.UserPrincipal(oci.UserCredentials{
		Tenancy: region.Options().Tenancy, User: "ocid1.user.oc1..u", Region: region.Options().Region,
		Fingerprint: "20:3b:97:13:55:1c:aa:66:41:41:4b:7c:7c:ef:2e:42", PrivateKey: regionKey(),
	})
	if err != nil {
		t.Fatal(err)
	}
	o := oci.Options{Provider: principal, Transport: region.Transport()}
	for _, f := range change {
		f(&o)
	}
	c, err := oci.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// place is where the tests' resources are.
type place struct {
	compartment, vcn, public, private, group, reserved string
}

func build(region *ocisim.Region) place {
	var p place
	p.compartment = region.AddCompartment(ocisim.Compartment{Name: "cluster"})
	p.vcn = region.AddVCN(ocisim.VCN{Compartment: p.compartment, IPv6CIDRs: []string{"fd00:10::/56"}})
	p.public = region.AddSubnet(ocisim.Subnet{VCN: p.vcn, Name: "public", CIDR: "10.0.0.0/24"})
	p.private = region.AddSubnet(ocisim.Subnet{VCN: p.vcn, Name: "nodes", CIDR: "10.0.8.0/21", IPv6CIDR: "fd00:10::/64", Private: true})
	p.group = region.AddSecurityGroup(ocisim.SecurityGroup{VCN: p.vcn, Name: "balancers"})
	p.reserved = region.AddPublicIP(ocisim.PublicIP{Compartment: p.compartment, Name: "address"})
	return p
}

// Everything that exists is read, over many short, partly empty pages, with optional fields missing by chance and pages
// throttled by chance.
func TestListsOfARegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		region := ocisim.New(ocisim.Options{Seed: 7, PageSize: 4, ShortPages: 0.4})
		p := build(region)
		region.AddInstance(ocisim.Instance{
			Compartment: p.compartment, Name: "node-%d", Count: 30,
			VNIC:  ocisim.VNIC{Subnet: "nodes", IPv6: []string{ocisim.Auto}},
			VNICs: []ocisim.VNIC{{Subnet: "public", PublicIP: ocisim.Auto}},
		})
		region.Fault(ocisim.Fault{Operation: "*", Chance: 0.1, Status: 429})
		c := connect(t, region)
		ctx := t.Context()

		instances, err := c.Compute().ListInstances(ctx, p.compartment, "")
		sameIDs(t, "instances", err, ids(region.Instances(), func(i core.Instance) *string { return i.Id }), ids(instances, func(i *oci.Instance) *string { return &i.ID }))
		named, err := c.Compute().ListInstances(ctx, p.compartment, "node-17")
		if err != nil || len(named) != 1 || named[0].DisplayName != "node-17" {
			t.Errorf("instances named node-17: %v, error %v", named, err)
		}
		attachments, err := c.Compute().ListVNICAttachments(ctx, p.compartment, "")
		sameIDs(t, "attachments", err, ids(region.VNICAttachments(), func(a core.VnicAttachment) *string { return a.Id }), ids(attachments, func(a *oci.VNICAttachment) *string { return &a.ID }))
		ofOne, err := c.Compute().ListVNICAttachments(ctx, p.compartment, named[0].ID)
		if err != nil || len(ofOne) != 2 {
			t.Errorf("attachments of one instance: %v, error %v", ofOne, err)
		}
		subnets, err := c.Network().ListSubnets(ctx, p.compartment, p.vcn)
		sameIDs(t, "subnets", err, []string{p.private, p.public}, ids(subnets, func(s *oci.Subnet) *string { return &s.ID }))
		private, err := c.Network().ListPrivateIPs(ctx, p.private, "")
		if err != nil || len(private) != 30 {
			t.Errorf("%d private addresses, error %v; want 30", len(private), err)
		}
		v6, err := c.Network().ListIPv6s(ctx, p.private, "")
		if err != nil || len(v6) != 30 {
			t.Errorf("%d IPv6 addresses, error %v; want 30", len(v6), err)
		}
		reserved, err := c.Network().ListPublicIPs(ctx, p.compartment, "REGION", "")
		if err != nil || !slices.ContainsFunc(reserved, func(ip *oci.PublicIP) bool { return ip.ID == p.reserved && ip.Lifetime == "RESERVED" }) {
			t.Errorf("public addresses %v, error %v; want %s among them", reserved, err, p.reserved)
		}
		ads, err := c.Identity().ListAvailabilityDomains(ctx, p.compartment)
		if diff := cmp.Diff(region.Options().AvailabilityDomains, ads); diff != "" || err != nil {
			t.Errorf("error %v, availability domains (-want +got):\n%s", err, diff)
		}
	})
}

func TestReadsOfARegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		region := ocisim.New(ocisim.Options{Seed: 8})
		p := build(region)
		id := region.AddInstance(ocisim.Instance{
			Compartment: p.compartment, Name: "node", Shape: "VM.Standard.A1.Flex", FaultDomain: "FAULT-DOMAIN-2", Metadata: map[string]string{"k": "v"},
			VNIC: ocisim.VNIC{Subnet: "public", PublicIP: ocisim.Auto, Hostname: "node", SecurityGroups: []string{p.group}},
			Tags: ocisim.Tags{Freeform: map[string]string{"a": "b"}},
		})
		c := connect(t, region)
		ctx := t.Context()

		instance, err := c.Compute().GetInstance(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if instance.TimeCreated.IsZero() || instance.AvailabilityDomain == "" {
			t.Errorf("instance without creation time or availability domain: %+v", instance)
		}
		want := &oci.Instance{
			ID: id, CompartmentID: p.compartment, Region: "iad", FaultDomain: "FAULT-DOMAIN-2", Shape: "VM.Standard.A1.Flex",
			DisplayName: "node", State: "RUNNING", Metadata: map[string]string{"k": "v"},
			AvailabilityDomain: instance.AvailabilityDomain, TimeCreated: instance.TimeCreated, ETag: region.ETag(id),
			Tags: oci.Tags{Freeform: map[string]string{"a": "b"}, Defined: instance.Defined},
		}
		if diff := cmp.Diff(want, instance); diff != "" {
			t.Errorf("instance (-want +got):\n%s", diff)
		}
		attachments, err := c.Compute().ListVNICAttachments(ctx, p.compartment, id)
		if err != nil || len(attachments) != 1 || attachments[0].State != "ATTACHED" || attachments[0].InstanceID != id {
			t.Fatalf("attachments %v, error %v", attachments, err)
		}
		vnic, err := c.Network().GetVNIC(ctx, attachments[0].VNICID)
		if err != nil {
			t.Fatal(err)
		}
		if !vnic.IsPrimary || vnic.SubnetID != p.public || vnic.PrivateIP == "" || vnic.PublicIP == "" || vnic.HostnameLabel != "node" || !slices.Equal(vnic.NSGIDs, []string{p.group}) {
			t.Errorf("VNIC is %+v", vnic)
		}
		ip, err := c.Network().GetPublicIPByAddress(ctx, vnic.PublicIP)
		if err != nil || ip.IPAddress != vnic.PublicIP || ip.Lifetime != "EPHEMERAL" || ip.AssignedEntityID == "" {
			t.Errorf("public address %+v, error %v", ip, err)
		}
		subnet, err := c.Network().GetSubnet(ctx, p.private)
		if err != nil || !subnet.ProhibitPublicIP || subnet.VCNID != p.vcn || !slices.Equal(subnet.CIDRs, []string{"10.0.8.0/21"}) || !slices.Equal(subnet.IPv6CIDRs, []string{"fd00:10::/64"}) {
			t.Errorf("subnet %+v, error %v", subnet, err)
		}
		vcn, err := c.Network().GetVCN(ctx, p.vcn)
		if err != nil || !slices.Equal(vcn.CIDRs, []string{"10.0.0.0/16"}) || !slices.Equal(vcn.IPv6CIDRs, []string{"fd00:10::/56"}) {
			t.Errorf("VCN %+v, error %v", vcn, err)
		}

		// A policy that is missing looks like a thing that is missing; no list is passed off as empty.
		region.Deny(ocisim.Policy{Verb: ocisim.Inspect})
		if _, err := c.Compute().GetInstance(ctx, id); !errors.Is(err, oci.ErrNotFound) {
			t.Errorf("read without a policy: error %v", err)
		}
		if list, err := c.Compute().ListInstances(ctx, p.compartment, ""); !errors.Is(err, oci.ErrNotFound) {
			t.Errorf("list without a policy: %v, error %v", list, err)
		}
	})
}

func ids[T any](from []T, id func(T) *string) []string {
	set := map[string]struct{}{}
	for _, v := range from {
		set[*id(v)] = struct{}{}
	}
	return slices.Sorted(maps.Keys(set))
}

func sameIDs(t *testing.T, what string, err error, want, got []string) {
	t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(got) == 0 {
		t.Errorf("%s: error %v (-want +got):\n%s", what, err, diff)
	}
}
