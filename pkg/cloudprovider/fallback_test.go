// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Each list that a missing policy hides is one event, with the statement to add; the nodes get what they need all the same.
func TestDeniedListsAreAnnounced(t *testing.T) {
	ofCompartment := func(c ocisim.Call) bool { return !strings.Contains(c.Query, "instanceId") }
	for name, test := range map[string]struct {
		fault             ocisim.Fault
		reason, list, may string
	}{
		"instances":         {ocisim.Fault{Operation: "ListInstances"}, "InstanceListsUnusable", "The instances in compartment ", "read instance-family"},
		"attachments":       {ocisim.Fault{Operation: "ListVnicAttachments", Match: ofCompartment}, "InstanceListsUnusable", "The VNIC attachments in compartment ", "read instance-family"},
		"private addresses": {ocisim.Fault{Operation: "ListPrivateIps"}, "AddressListsUnusable", "The private IP addresses in subnet ", "use virtual-network-family"},
		"IPv6 addresses":    {ocisim.Fault{Operation: "ListIpv6s"}, "AddressListsUnusable", "The IPv6 addresses in subnet ", "use virtual-network-family"},
		"public addresses":  {ocisim.Fault{Operation: "ListPublicIps"}, "AddressListsUnusable", "The public IP addresses in compartment ", "use virtual-network-family"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
				b.options.Inventory = inventory.New(inventory.Config{
					CompartmentID: b.compartment, VCNID: b.vcn, Trim: cloudprovider.TrimInstance(nil),
					Report: func(f inventory.Fallback) { b.provider.ReportFallback(f) },
				}, b.oci.Compute(), b.oci.Network())
				// Two subnets of one compartment lack the same policy.
				b.region.AddSubnet(ocisim.Subnet{VCN: b.vcn, Name: "more", CIDR: "10.0.48.0/20", IPv6CIDR: "2001:db8:0:1::/64"})
				test.fault.Status = http.StatusNotFound
				b.region.Fault(test.fault)
				b.startNodesOnly()
				for i := range 12 {
					name := fmt.Sprint("w-", i)
					b.addNode(name, b.region.AddInstance(ocisim.Instance{Name: name, VNIC: ocisim.VNIC{
						Subnet: []string{"nodes", "more"}[i%2], PublicIP: ocisim.Auto, IPv6: []string{ocisim.Auto},
					}}))
				}
				b.hold(time.Hour)
				for i := range 12 {
					if n := b.node(fmt.Sprint("w-", i)); !b.isInitialized(n.Name) || len(n.Status.Addresses) != 3 {
						t.Errorf("%s: taints %v, addresses %v", n.Name, n.Spec.Taints, n.Status.Addresses)
					}
				}
				for _, reason := range []string{"InstanceListsUnusable", "AddressListsUnusable"} {
					events := b.eventsOf("Lease", reason)
					if reason != test.reason {
						if len(events) > 0 {
							t.Errorf("event %s: %s", reason, events[0].Message)
						}
						continue
					}
					if len(events) != 1 {
						t.Fatalf("%d events; want one: %v", len(events), events)
					}
					statement := "Allow dynamic-group <name> to " + test.may + " in compartment id " + b.compartment
					for _, part := range []string{test.list, statement, "404", "opc-request-id"} {
						if !strings.Contains(events[0].Message, part) {
							t.Errorf("%q lacks %q", events[0].Message, part)
						}
					}
				}
			})
		})
	}
}
