// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// crowd is what a pass over so many nodes asks for.
func crowd(n int) inventory.Need {
	return inventory.Need{MaxAge: time.Minute, Crowd: n, Patient: true}
}

// addresses are what matters of a VNIC.
type addresses struct {
	ID, Private, Public string
	IPv6                []string
	Primary             bool
}

func addressesOf(vnics []*oci.VNIC) []addresses {
	var list []addresses
	for _, v := range vnics {
		list = append(list, addresses{v.ID, v.PrivateIP, v.PublicIP, v.IPv6Addresses, v.IsPrimary})
	}
	return list
}

// pass asks for every instance and its VNICs, all at once.
func pass(t *testing.T, inv *inventory.Inventory, ids []string, need inventory.Need) map[string][]addresses {
	t.Helper()
	type answer struct {
		id    string
		vnics []*oci.VNIC
		err   error
	}
	answers := make(chan answer)
	for _, id := range ids {
		go func() {
			instance, err := inv.Instance(t.Context(), id, need)
			if err != nil {
				answers <- answer{id: id, err: err}
				return
			}
			vnics, err := inv.VNICs(t.Context(), instance, need)
			answers <- answer{id, vnics, err}
		}()
	}
	all := map[string][]addresses{}
	for range ids {
		if a := <-answers; a.err != nil {
			t.Errorf("%s: %v", a.id, a.err)
		} else {
			all[a.id] = addressesOf(a.vnics)
		}
	}
	return all
}

func (s *site) addNodes(n int, v ocisim.VNIC) []string {
	var ids []string
	for range n {
		ids = append(ids, s.AddInstance(ocisim.Instance{Name: fmt.Sprintf("%s-%d", v.Subnet, len(s.Instances())), VNIC: v}))
	}
	return ids
}

// A crowd gets from lists what each of it would get from reads of its own.
func TestCrowdSeesWhatSingleReadsSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{PageSize: 7})
		s.AddSubnet(ocisim.Subnet{VCN: s.vcn1, Name: "open", CIDR: "10.0.16.0/20"})
		s.AddSubnet(ocisim.Subnet{VCN: s.vcn1, Name: "closed", CIDR: "10.0.32.0/20", Private: true})
		ids := slices.Concat(
			s.addNodes(10, ocisim.VNIC{Subnet: "nodes", IPv6: []string{ocisim.Auto, ocisim.Auto}}),
			s.addNodes(5, ocisim.VNIC{Subnet: "open", PublicIP: ocisim.Auto}),
			s.addNodes(5, ocisim.VNIC{Subnet: "open"}),
			s.addNodes(5, ocisim.VNIC{Subnet: "closed"}),
		)
		several := s.AddInstance(ocisim.Instance{
			Name: "several", VNIC: ocisim.VNIC{Subnet: "nodes"}, VNICs: []ocisim.VNIC{{Subnet: "closed"}, {Subnet: "open", PublicIP: ocisim.Auto}},
		})
		ids = append(ids, several)

		single := pass(t, s.inventory(t), ids, inventory.Need{})
		listed := pass(t, s.inventory(t), ids, crowd(len(ids)))
		for id := range single { // the order of secondary VNICs is that of their OCIDs in both
			if diff := cmp.Diff(single[id], listed[id]); diff != "" {
				t.Errorf("%s (-single +listed):\n%s", id, diff)
			}
		}
		if len(listed) != len(ids) || len(listed[several]) != 3 {
			t.Errorf("%d answers, %v", len(listed), listed[several])
		}
	})
}

// P1 of the budgets: the calls of a pass are those of the pages, not of the nodes.
func TestPassCostsPages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	for _, test := range []struct{ nodes, budget int }{{1000, 10}, {5000, 50}} {
		synctest.Test(t, func(t *testing.T) {
			const pageSize = 1000
			s := newSite(ocisim.Options{PageSize: pageSize})
			s.AddSubnet(ocisim.Subnet{VCN: s.vcn1, Name: "a", CIDR: "10.0.64.0/18", Private: true})
			s.AddSubnet(ocisim.Subnet{VCN: s.vcn1, Name: "b", CIDR: "10.0.128.0/18", Private: true})
			for _, subnet := range []string{"a", "b"} {
				s.AddInstance(ocisim.Instance{Name: subnet + "-%d", Count: test.nodes / 2, VNIC: ocisim.VNIC{Subnet: subnet}})
			}
			var ids []string
			for _, i := range s.Instances() {
				ids = append(ids, *i.Id)
			}
			inv := s.inventory(t)
			pages := func(rows int) int { return (rows + pageSize - 1) / pageSize }
			want := map[string]int{
				"compute.ListInstances": pages(test.nodes), "compute.ListVnicAttachments": pages(test.nodes),
				"virtualnetwork.ListPrivateIps": 2 * pages(test.nodes/2), "virtualnetwork.GetSubnet": 2,
			}
			pass(t, inv, ids, crowd(len(ids)))
			if diff := cmp.Diff(want, s.Counts()); diff != "" {
				t.Errorf("first pass (-want +got):\n%s", diff)
			}
			s.ResetCalls()
			pass(t, inv, ids, crowd(len(ids)))
			if s.total() != 0 {
				t.Errorf("a pass within the minute: %v", s.Counts())
			}
			time.Sleep(5 * time.Minute)
			pass(t, inv, ids, crowd(len(ids)))
			if diff := cmp.Diff(want, s.Counts()); diff != "" {
				t.Errorf("third pass (-want +got):\n%s", diff)
			}
			t.Logf("budget P1: %d calls for %d nodes: pages(instances) %d + pages(attachments) %d + pages(private addresses) %d + subnets %d",
				s.total(), test.nodes, want["compute.ListInstances"], want["compute.ListVnicAttachments"], want["virtualnetwork.ListPrivateIps"],
				want["virtualnetwork.GetSubnet"])
			if s.total() > test.budget {
				t.Errorf("%d calls for %d nodes; %d are allowed", s.total(), test.nodes, test.budget)
			}
		})
	}
}

// Which of several VNICs is the primary one costs one read in the life of a VNIC.
func TestPrimaryOfSeveralIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		var ids []string
		for n := range 10 {
			ids = append(ids, s.AddInstance(ocisim.Instance{
				Name: fmt.Sprint("w-", n), VNIC: ocisim.VNIC{Subnet: "nodes"}, VNICs: []ocisim.VNIC{{Subnet: "nodes"}},
			}))
		}
		inv := s.inventory(t)
		first := pass(t, inv, ids, crowd(10))
		reads := s.Counts()["virtualnetwork.GetVnic"]
		if reads < 10 || reads > 20 {
			t.Errorf("%d reads of 20 VNICs", reads)
		}
		for range 5 {
			time.Sleep(5 * time.Minute)
			if diff := cmp.Diff(first, pass(t, inv, ids, crowd(10))); diff != "" {
				t.Errorf("another pass (-first +now):\n%s", diff)
			}
		}
		// Every subnet allows public addresses here, so each primary VNIC is also asked for its own once an hour.
		if n := s.Counts()["virtualnetwork.GetVnic"]; n > 30 {
			t.Errorf("%d reads of VNICs in 30 minutes", n)
		}
	})
}

// A failed list costs no node its addresses: the answer is an error, whichever page of whichever list fails, and a
// thousand nodes do not repeat it.
func TestFailedPageIsAnErrorForAll(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	for _, operation := range []string{"ListInstances", "ListVnicAttachments", "ListPrivateIps", "ListIpv6s", "ListPublicIps"} {
		for page := 1; page <= 3; page++ {
			t.Run(fmt.Sprint(operation, page), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSite(ocisim.Options{PageSize: 3})
					ids := s.addNodes(30, ocisim.VNIC{Subnet: "nodes", PublicIP: ocisim.Auto, IPv6: []string{ocisim.Auto}})
					inv := s.inventory(t)
					need := crowd(len(ids))
					before := pass(t, inv, ids, need)
					time.Sleep(5 * time.Minute)
					s.ResetCalls()
					remove := s.Fault(ocisim.Fault{Operation: operation, Nth: page, Times: 1000, Status: 400})
					for _, id := range ids {
						instance, err := inv.Instance(t.Context(), id, need)
						if err == nil {
							_, err = inv.VNICs(t.Context(), instance, need)
						}
						var failure *oci.Error
						if !errors.As(err, &failure) || failure.Status != 400 {
							t.Fatalf("%s: %v; want the error of the list", id, err)
						}
					}
					// The public addresses of each of three availability domains are a list of their own.
					if n := s.Counts()["compute."+operation] + s.Counts()["virtualnetwork."+operation]; n > page+2 {
						t.Errorf("%d calls of %s for %d nodes", n, operation, len(ids))
					}
					remove()
					time.Sleep(inventory.ListPause)
					if diff := cmp.Diff(before, pass(t, inv, ids, need)); diff != "" {
						t.Errorf("after the fault (-before +after):\n%s", diff)
					}
				})
			})
		}
	}
}

// A subnet that becomes dual-stack shows in the next pass; a node that joined with IPv6 does not lose it.
func TestSubnetBecomesDualStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		s.AddSubnet(ocisim.Subnet{VCN: s.vcn1, Name: "later", CIDR: "10.0.32.0/20", IPv6CIDR: "fd00:10:0:7::/64", Private: true})
		var id string
		for _, subnet := range s.Subnets() {
			if *subnet.DisplayName == "later" {
				id = *subnet.Id
			}
		}
		prefix := func(blocks ...string) {
			t.Helper()
			if err := s.Foreign().Subnet(id, func(v *core.Subnet) { v.Ipv6CidrBlocks, v.Ipv6CidrBlock = blocks, nil }); err != nil {
				t.Fatal(err)
			}
		}
		ids := s.addNodes(5, ocisim.VNIC{Subnet: "later", IPv6: []string{ocisim.Auto}})
		prefix()
		inv := s.inventory(t)
		if got := pass(t, inv, ids, crowd(5))[ids[0]][0].IPv6; len(got) != 0 {
			t.Fatalf("addresses %v of a subnet without IPv6", got)
		}
		prefix("fd00:10:0:7::/64")
		time.Sleep(5 * time.Minute)
		if got := pass(t, inv, ids, crowd(5))[ids[0]][0].IPv6; len(got) != 1 {
			t.Errorf("addresses %v in the pass after the change", got)
		}
	})
}

// Where the address lists do not serve, VNICs are read one by one over the period, and the owner is told once.
func TestFallBackToSingleReads(t *testing.T) {
	const nodes = 40
	for name, prepare := range map[string]func(t *testing.T, s *site){
		"denied": func(t *testing.T, s *site) { s.Deny(ocisim.Policy{ResourceType: "private-ips"}) },
		"pods": func(t *testing.T, s *site) {
			for _, v := range s.VNICs() {
				for range 2 * inventory.CrowdFactor {
					if _, err := s.network(t).CreatePrivateIp(t.Context(), core.CreatePrivateIpRequest{
						CreatePrivateIpDetails: core.CreatePrivateIpDetails{VnicId: v.Id},
					}); err != nil {
						t.Fatal(err)
					}
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(ocisim.Options{})
				s.AddSubnet(ocisim.Subnet{VCN: s.vcn1, Name: "closed", CIDR: "10.0.32.0/20", Private: true})
				ids := s.addNodes(nodes, ocisim.VNIC{Subnet: "closed"})
				want := pass(t, s.inventory(t), ids, inventory.Need{})
				prepare(t, s)
				var told []inventory.Fallback
				inv := s.inventory(t, func(c *inventory.Config) {
					c.Report = func(f inventory.Fallback) { told = append(told, f) }
				})
				for n := range 3 {
					s.ResetCalls()
					began := time.Now()
					if diff := cmp.Diff(want, pass(t, inv, ids, crowd(nodes))); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
					if took := time.Since(began); took < nodes/inventory.MinPace*time.Second/2 || took > 5*time.Minute {
						t.Errorf("the reads of a pass took %s", took)
					}
					if got := s.Counts()["virtualnetwork.GetVnic"]; got != nodes {
						t.Errorf("pass %d: %d reads of %d VNICs", n, got, nodes)
					}
					if n > 0 && s.Counts()["virtualnetwork.ListPrivateIps"] != 0 {
						t.Errorf("pass %d: the list that does not serve was read again", n)
					}
					time.Sleep(2 * time.Minute)
				}
				if len(told) != 1 || told[0].Nodes != nodes || (told[0].Denied != nil) != (name == "denied") {
					t.Errorf("told %+v", told)
				}
				// Who waits for a node to start does not wait for the pass.
				time.Sleep(10 * time.Minute)
				began := time.Now()
				urgent := crowd(nodes)
				urgent.Patient = false
				pass(t, inv, ids, urgent)
				if took := time.Since(began); took > 5*time.Second { // what the client's own budget allows
					t.Errorf("urgent reads took %s", took)
				}
			})
		})
	}
}

// Whichever list a policy hides, the answers are those of single reads, the owner is told once which list it is, and the
// reads of a pass are spread over its time. An absent policy for what nobody needs is no fallback.
func TestEachDeniedListIsTold(t *testing.T) {
	const nodes = 30
	ofCompartment := func(c ocisim.Call) bool { return !strings.Contains(c.Query, "instanceId") }
	for name, test := range map[string]struct {
		fault        ocisim.Fault
		list         inventory.List
		inSubnet     bool
		readsPerNode int // of compute and network
	}{
		"instances":         {fault: ocisim.Fault{Operation: "ListInstances"}, list: inventory.ListOfInstances, readsPerNode: 1},
		"attachments":       {fault: ocisim.Fault{Operation: "ListVnicAttachments", Match: ofCompartment}, list: inventory.ListOfAttachments, readsPerNode: 2},
		"private addresses": {fault: ocisim.Fault{Operation: "ListPrivateIps"}, list: inventory.ListOfPrivateIPs, inSubnet: true, readsPerNode: 1},
		"IPv6 addresses":    {fault: ocisim.Fault{Operation: "ListIpv6s"}, list: inventory.ListOfIPv6s, inSubnet: true, readsPerNode: 1},
		"public addresses":  {fault: ocisim.Fault{Operation: "ListPublicIps"}, list: inventory.ListOfPublicIPs, readsPerNode: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(ocisim.Options{})
				ids := s.addNodes(nodes, ocisim.VNIC{Subnet: "nodes", PublicIP: ocisim.Auto, IPv6: []string{ocisim.Auto}})
				want := pass(t, s.inventory(t), ids, inventory.Need{})
				test.fault.Status = http.StatusNotFound
				remove := s.Fault(test.fault)
				var told []inventory.Fallback
				inv := s.inventory(t, func(c *inventory.Config) {
					c.Report = func(f inventory.Fallback) { told = append(told, f) }
				})
				s.ResetCalls()
				for range 2 {
					began := time.Now()
					if diff := cmp.Diff(want, pass(t, inv, ids, crowd(nodes))); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
					if took := time.Since(began); took > 4*time.Minute {
						t.Errorf("the reads of a pass took %s", took)
					}
					time.Sleep(2 * time.Minute)
				}
				counts := s.Counts()
				single := counts["compute.GetInstance"] + counts["virtualnetwork.GetVnic"]
				if test.readsPerNode == 2 {
					single += counts["compute.ListVnicAttachments"]
				}
				if single < nodes || single > 2*test.readsPerNode*nodes+20 {
					t.Errorf("%d single reads in two passes: %v", single, counts)
				}
				if len(told) != 1 {
					t.Fatalf("told %+v", told)
				}
				f := told[0]
				subnet := ""
				if test.inSubnet {
					subnet = s.nodes
				}
				if f.List != test.list || f.CompartmentID != s.compartment || f.SubnetID != subnet || f.Nodes != nodes || !errors.Is(f.Denied, oci.ErrNotFound) {
					t.Errorf("told %+v", f)
				}

				// Half an hour later it is told again, if it is still so; otherwise lists serve again.
				time.Sleep(30 * time.Minute)
				pass(t, inv, ids, crowd(nodes))
				if len(told) != 2 {
					t.Errorf("told %d times", len(told))
				}
				remove()
				time.Sleep(30 * time.Minute)
				pass(t, inv, ids, crowd(nodes))
				s.ResetCalls()
				time.Sleep(2 * time.Minute)
				pass(t, inv, ids, crowd(nodes))
				if counts := s.Counts(); counts["compute.GetInstance"]+counts["virtualnetwork.GetVnic"] > 0 || len(told) != 2 {
					t.Errorf("with the policy: told %d times, calls %v", len(told), counts)
				}
			})
		})
	}
}

// A wrong hint, whose compartment cannot be listed, is no missing policy.
func TestWrongHintIsNoFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		elsewhere := s.AddCompartment(ocisim.Compartment{Name: "elsewhere"})
		ids := s.addNodes(10, ocisim.VNIC{Subnet: "nodes"})
		away := s.AddInstance(ocisim.Instance{Name: "away", Compartment: elsewhere, VNIC: ocisim.VNIC{Subnet: "nodes"}})
		inv := s.inventory(t, func(c *inventory.Config) {
			c.Report = func(f inventory.Fallback) { t.Errorf("told %+v", f) }
		})
		need := crowd(10)
		need.Compartments = []string{"ocid1.compartment.oc1..wrong"}
		pass(t, inv, append(ids, away), need)
	})
}

// The first pass over instances with several VNICs reads each VNIC; it does not take longer than a pass may.
func TestFirstPassOverSeveralVNICs(t *testing.T) {
	const nodes = 400
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{PageSize: 1000})
		s.AddSubnet(ocisim.Subnet{VCN: s.vcn1, Name: "closed", CIDR: "10.0.32.0/20", Private: true})
		s.AddInstance(ocisim.Instance{
			Name: "w-%d", Count: nodes, VNIC: ocisim.VNIC{Subnet: "closed"}, VNICs: []ocisim.VNIC{{Subnet: "closed"}},
		})
		var ids []string
		for _, i := range s.Instances() {
			ids = append(ids, *i.Id)
		}
		inv := s.inventory(t)
		began := time.Now()
		pass(t, inv, ids, crowd(nodes))
		if took := time.Since(began); took > 5*time.Minute {
			t.Errorf("took %s", took)
		}
		if n := s.Counts()["virtualnetwork.GetVnic"]; n < nodes || n > 2*nodes {
			t.Errorf("%d reads of %d VNICs", n, 2*nodes)
		}
	})
}

// An address that is in no list is lost only if the VNIC itself says so: a reserved one may belong to another compartment.
func TestPublicAddressOfAnotherCompartment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		elsewhere := s.AddCompartment(ocisim.Compartment{Name: "elsewhere"})
		ids := s.addNodes(5, ocisim.VNIC{Subnet: "nodes"})
		inv := s.inventory(t)
		bare := pass(t, inv, ids, crowd(5))
		id := s.AddPublicIP(ocisim.PublicIP{Compartment: elsewhere, Address: "203.0.113.7"})
		assign(t, s, id, bare[ids[0]][0].ID)
		time.Sleep(61 * time.Minute) // the VNIC is asked once an hour
		if got := pass(t, inv, ids, crowd(5))[ids[0]][0].Public; got != "203.0.113.7" {
			t.Errorf("public address %q", got)
		}
		for range 3 {
			time.Sleep(5 * time.Minute)
			if got := pass(t, inv, ids, crowd(5))[ids[0]][0].Public; got != "203.0.113.7" {
				t.Errorf("public address %q in a later pass", got)
			}
		}
	})
}

// network returns the SDK's client for what the product never does.
func (s *site) network(t *testing.T) core.VirtualNetworkClient {
	t.Helper()
	provider := common.NewRawConfigurationProvider(s.Options().Tenancy, "ocid1.user.oc1..admin", s.Options().Region, "20:3b", pki.SigningKeyPEM(), nil)
	c, err := core.NewVirtualNetworkClientWithConfigurationProvider(provider)
	if err != nil {
		t.Fatal(err)
	}
	c.HTTPClient = &http.Client{Transport: s.Transport()}
	return c
}

// assign gives the primary private address of a VNIC a reserved public one.
func assign(t *testing.T, s *site, publicIP, vnic string) {
	t.Helper()
	for _, private := range s.PrivateIPs() {
		if *private.VnicId != vnic || !*private.IsPrimary {
			continue
		}
		_, err := s.network(t).UpdatePublicIp(t.Context(), core.UpdatePublicIpRequest{
			PublicIpId: &publicIP, UpdatePublicIpDetails: core.UpdatePublicIpDetails{PrivateIpId: private.Id},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
