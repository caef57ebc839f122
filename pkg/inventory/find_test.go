// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func byName(names ...string) inventory.Query { return inventory.Query{Names: names} }

func TestFind(t *testing.T) {
	s := newSite(ocisim.Options{PageSize: 2})
	add := func(name, hostname, ip, subnet, state string) string {
		return s.AddInstance(ocisim.Instance{Name: name, State: state, VNIC: ocisim.VNIC{Subnet: subnet, Hostname: hostname, PrivateIP: ip}})
	}
	one := add("node-1", "-", "10.0.1.1", "nodes", "")
	ten := add("node-10", "-", "10.0.1.10", "nodes", "")
	host := add("by host", "host-a", "10.0.1.20", "nodes", "")
	old := add("replaced", "-", "10.0.1.30", "nodes", "TERMINATED")
	replaced := add("replaced", "-", "10.0.1.31", "nodes", "STOPPED")
	poolA := add("pool", "pool-a", "10.0.1.40", "nodes", "")
	poolB := add("pool", "pool-b", "10.0.1.41", "nodes", "")
	add("elsewhere", "host-e", "10.0.1.1", "other", "")
	labelled := add("renamed", "renamed", "10.0.1.42", "nodes", "")
	add("renamed", "has-a-name", "10.0.1.43", "nodes", "")
	twin := add("twin", "twin", "10.0.1.44", "nodes", "")
	nameless := add("twin", "-", "10.0.1.45", "nodes", "")
	swapX := add("swap-x", "swap-y", "10.0.1.50", "nodes", "")
	swapY := add("swap-y", "swap-x", "10.0.1.51", "nodes", "")
	v6 := s.AddInstance(ocisim.Instance{Name: "six", VNIC: ocisim.VNIC{Subnet: "nodes", IPv6: []string{"fd00:10::7"}}})
	second := s.AddInstance(ocisim.Instance{
		Name: "two cards", VNIC: ocisim.VNIC{Subnet: "other", Hostname: "-"},
		VNICs: []ocisim.VNIC{{Subnet: "nodes", PrivateIP: "10.0.1.60", Hostname: "card-2"}},
	})
	inv := s.inventory(t)
	for _, test := range []struct {
		name  string
		query inventory.Query
		want  string
		among []string // ambiguous
	}{
		{name: "display name", query: byName("node-1"), want: one},
		{name: "no prefix", query: byName("node-10"), want: ten},
		{name: "no prefix either way", query: byName("node")},
		{name: "without regard to case", query: byName("NODE-1"), want: one},
		{name: "host name label", query: byName("Host-A"), want: host},
		{name: "fully qualified", query: byName("host-a.nodes.one.oraclevcn.com"), want: host},
		{name: "of another subnet", query: byName("host-a.other.one.oraclevcn.com")},
		{name: "qualified otherwise", query: byName("host-a.example.com")},
		{name: "private address", query: inventory.Query{Names: []string{"whatever"}, Addresses: []string{"10.0.1.10"}}, want: ten},
		{name: "name is an address", query: byName("10.0.1.10"), want: ten},
		{name: "address of another VCN too", query: byName("10.0.1.1"), want: one},
		{name: "IPv6 with hyphens", query: byName("fd00-10--7"), want: v6},
		{name: "IPv6 address", query: inventory.Query{Names: []string{"x"}, Addresses: []string{"fd00:0010::0007"}}, want: v6},
		{name: "terminated ones do not count", query: byName("replaced"), want: replaced},
		{name: "nor by their address", query: byName("10.0.1.30")},
		{name: "equal display names", query: byName("pool"), among: []string{poolA, poolB}},
		{name: "equal display names, host name says which", query: byName("pool", "pool-b"), want: poolB},
		{name: "equal display names, address says which", query: inventory.Query{Names: []string{"pool"}, Addresses: []string{"10.0.1.40"}}, want: poolA},
		{name: "equal display names, the other one has another host name", query: byName("renamed"), want: labelled},
		{name: "equal display names, the other one has no other name", query: byName("twin"), among: []string{twin, nameless}},
		{name: "equal display names, the other one has no other name, but an address says which", query: byName("twin", "10.0.1.44"), want: twin},
		{name: "host name of one, address of another", query: byName("twin", "10.0.1.45"), among: []string{twin, nameless}},
		{name: "display name of one, host name of another", query: byName("swap-x"), among: []string{swapX, swapY}},
		{name: "names of two", query: byName("node-1", "node-10"), among: []string{one, ten}},
		{name: "another VCN", query: byName("elsewhere")},
		{name: "another VCN by host name", query: byName("host-e")},
		{name: "secondary VNIC", query: byName("card-2"), want: second},
		{name: "nobody", query: byName("typo-1")},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := inv.Find(t.Context(), test.query)
			var ambiguous *inventory.AmbiguousError
			var notFound *inventory.NotFoundError
			switch {
			case test.want != "":
				if err != nil || got.ID != test.want {
					t.Errorf("got %+v, error %v; want %s", got, err, test.want)
				}
			case test.among != nil:
				if !errors.As(err, &ambiguous) {
					t.Fatalf("got %+v, error %v; want ambiguity", got, err)
				}
				if diff := cmp.Diff(slices.Sorted(slices.Values(test.among)), ambiguous.InstanceIDs); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				for _, id := range test.among {
					if !strings.Contains(err.Error(), id) {
						t.Errorf("%q does not name %s", err, id)
					}
				}
			case !errors.As(err, &notFound):
				t.Errorf("got %+v, error %v; want none", got, err)
			}
		})
	}
	if !inv.Terminated(old) {
		t.Error("what the list said of a terminated instance is forgotten")
	}
}

// TestEqualNamesInTwoVCNs is case C008.
func TestEqualNamesInTwoVCNs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		ours := s.AddInstance(ocisim.Instance{Name: "w-0", VNIC: ocisim.VNIC{Subnet: "nodes", PrivateIP: "10.0.1.1"}})
		theirs := s.AddInstance(ocisim.Instance{Name: "w-0", VNIC: ocisim.VNIC{Subnet: "other", PrivateIP: "10.0.1.2"}})
		query := inventory.Query{Names: []string{"w-0"}, Addresses: []string{"10.0.1.1"}}
		for name, config := range map[string]func(*inventory.Config){
			"VCN configured":     func(*inventory.Config) {},
			"VCN by its subnet":  func(c *inventory.Config) { c.VCNID, c.SubnetID = "", s.nodes },
			"neither configured": func(c *inventory.Config) { c.VCNID = "" },
		} {
			got, err := s.inventory(t, config).Find(t.Context(), query)
			if name != "neither configured" {
				if err != nil || got.ID != ours {
					t.Errorf("%s: got %+v, error %v; want %s", name, got, err, ours)
				}
				continue
			}
			var ambiguous *inventory.AmbiguousError
			if !errors.As(err, &ambiguous) || !strings.Contains(err.Error(), ours) || !strings.Contains(err.Error(), theirs) {
				t.Errorf("%s: got %+v, error %v; want an error with both OCIDs", name, got, err)
			}
		}
	})
}

// The hint helps, but does not decide: it comes from an annotation that anybody may have written.
func TestCompartmentHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		elsewhere := s.AddCompartment(ocisim.Compartment{Name: "elsewhere"})
		home := s.AddInstance(ocisim.Instance{Name: "home", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		away := s.AddInstance(ocisim.Instance{Name: "away", Compartment: elsewhere, VNIC: ocisim.VNIC{Subnet: "nodes"}})
		both := s.AddInstance(ocisim.Instance{Name: "both", VNIC: ocisim.VNIC{Subnet: "nodes", Hostname: "both-1"}})
		s.AddInstance(ocisim.Instance{Name: "both", Compartment: elsewhere, VNIC: ocisim.VNIC{Subnet: "nodes", Hostname: "both-2"}})
		inv := s.inventory(t)
		if got, err := inv.Find(t.Context(), inventory.Query{Names: []string{"both"}, CompartmentID: elsewhere}); !isAmbiguous(err) {
			t.Errorf("one in each compartment: got %+v, error %v", got, err)
		}
		for _, test := range []struct{ name, hint, want string }{
			{"home", "", home}, {"home", elsewhere, home}, {"home", "ocid1.compartment.oc1..wrong", home},
			{"away", "", ""}, {"away", elsewhere, away}, {"both", "", both}, {"both", "ocid1.compartment.oc1..wrong", both},
		} {
			got, err := inv.Find(t.Context(), inventory.Query{Names: []string{test.name}, CompartmentID: test.hint})
			if test.want == "" && err == nil || test.want != "" && (err != nil || got.ID != test.want) {
				t.Errorf("%s with hint %q: got %+v, error %v; want %q", test.name, test.hint, got, err, test.want)
			}
		}
		_, err := inv.Find(t.Context(), inventory.Query{Names: []string{"away"}, CompartmentID: "ocid1.compartment.oc1..wrong"})
		var notFound *inventory.NotFoundError
		if err == nil || errors.As(err, &notFound) {
			t.Errorf("a compartment that cannot be listed: error %v; want that of the list, not an absence", err)
		}
	})
}

// TestMissesCostLittle is the inventory's part of case C009: 200 instances, 20 nodes asked for by name, one name that
// nobody has.
func TestMissesCostLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{PageSize: 50, Rates: map[string]ocisim.Rate{
			"compute.read": {PerSecond: 10, Burst: 10}, "virtualnetwork.read": {PerSecond: 10, Burst: 10},
		}})
		s.AddInstance(ocisim.Instance{Name: "w-%d", Count: 200, VNIC: ocisim.VNIC{Subnet: "nodes"}})
		inv := s.inventory(t)
		var wg sync.WaitGroup
		for n := range 20 {
			wg.Go(func() {
				if _, err := inv.Find(t.Context(), byName(fmt.Sprintf("w-%d", n+1))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		// Four pages each of instances, attachments and addresses, one of IPv6 addresses, and one subnet.
		if n := s.total(); n != 14 {
			t.Errorf("%d calls for 20 names; want 14: %v", n, s.Counts())
		}

		s.ResetCalls()
		for began := time.Now(); time.Since(began) < 10*time.Minute; time.Sleep(time.Second) {
			var notFound *inventory.NotFoundError
			if _, err := inv.Find(t.Context(), byName("typo-1")); !errors.As(err, &notFound) {
				t.Fatalf("error %v", err)
			}
		}
		// Looked for after 0, 15, 45, 105, 225 and 465 s.
		if n := s.total(); n > 6*13 {
			t.Errorf("%d calls in ten minutes for a name that nobody has; want at most 78: %v", n, s.Counts())
		}
		if n := s.total(); n < 4*13 {
			t.Errorf("%d calls: it was given up", n)
		}
	})
}

// A miss does not outlive the appearance of its instance by more than the delay that it has reached.
func TestMissIsLookedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		inv := s.inventory(t)
		_, err := inv.Find(t.Context(), byName("late"))
		var notFound *inventory.NotFoundError
		if !errors.As(err, &notFound) || !notFound.Retry.Equal(time.Now().Add(15*time.Second)) {
			t.Fatalf("error %v, retry %v", err, notFound)
		}
		id := s.AddInstance(ocisim.Instance{Name: "late", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		time.Sleep(time.Until(notFound.Retry))
		got, err := inv.Find(t.Context(), byName("late"))
		if err != nil || got.ID != id {
			t.Errorf("got %+v, error %v", got, err)
		}
	})
}

// A hit in shared lists that are up to a minute old costs nothing; a miss in them is checked in new ones at once.
func TestOldListsDoNotHideNewInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		s.AddInstance(ocisim.Instance{Name: "first", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		inv := s.inventory(t)
		if _, err := inv.Find(t.Context(), byName("first")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		id := s.AddInstance(ocisim.Instance{Name: "second", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		if got, err := inv.Find(t.Context(), byName("second")); err != nil || got.ID != id {
			t.Errorf("got %+v, error %v", got, err)
		}
		s.ResetCalls()
		if _, err := inv.Find(t.Context(), byName("first")); err != nil || s.total() != 0 {
			t.Errorf("error %v, calls %v", err, s.Counts())
		}
	})
}

// A list that fails is an error, never an absence, whichever list it is.
func TestFailedListIsNoMiss(t *testing.T) {
	for _, operation := range []string{"ListInstances", "ListVnicAttachments", "GetSubnet", "ListPrivateIps", "ListIpv6s"} {
		t.Run(operation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(ocisim.Options{PageSize: 2})
				s.AddInstance(ocisim.Instance{Name: "w-%d", Count: 5, VNIC: ocisim.VNIC{Subnet: "nodes", IPv6: []string{ocisim.Auto}}})
				remove := s.Fault(ocisim.Fault{Operation: operation, Nth: 1, Times: 1000, Status: 400})
				inv := s.inventory(t)
				_, err := inv.Find(t.Context(), byName("w-5"))
				var failure *oci.Error
				if !errors.As(err, &failure) || failure.Status != 400 {
					t.Errorf("error %v; want that of the list", err)
				}
				remove()
				time.Sleep(inventory.ListPause)
				if _, err := inv.Find(t.Context(), byName("w-5")); err != nil {
					t.Errorf("after the fault: %v", err)
				}
			})
		})
	}
}

// Where a policy hides the lists of addresses, each VNIC is read, once in its life.
func TestAddressListsHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		s.AddInstance(ocisim.Instance{Name: "i-%d", Count: 5, VNIC: ocisim.VNIC{Subnet: "nodes", Hostname: "w-%d"}})
		s.Deny(ocisim.Policy{ResourceType: "private-ips"})
		inv := s.inventory(t)
		if got, err := inv.Find(t.Context(), byName("w-3")); err != nil || got.DisplayName != "i-3" {
			t.Errorf("got %+v, error %v", got, err)
		}
		if n := s.Counts()["virtualnetwork.GetVnic"]; n != 5 {
			t.Errorf("%d VNICs read; want 5", n)
		}
		time.Sleep(2 * time.Minute)
		if _, err := inv.Find(t.Context(), byName("w-4")); err != nil {
			t.Error(err)
		}
		if n := s.Counts()["virtualnetwork.GetVnic"]; n != 5 {
			t.Errorf("%d VNICs read in the end; want 5", n)
		}
	})
}

// A subnet that cannot be read is not searched; the error says so.
func TestHiddenSubnet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		s.AddInstance(ocisim.Instance{Name: "w-0", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		s.Deny(ocisim.Policy{ResourceType: "subnets"})
		_, err := s.inventory(t).Find(t.Context(), byName("w-0"))
		var notFound *inventory.NotFoundError
		if !errors.As(err, &notFound) || !strings.Contains(err.Error(), s.nodes) {
			t.Errorf("error %v; want one that names subnet %s", err, s.nodes)
		}
	})
}

// For random worlds, a machine that tells its host name and address gets its own instance, or nothing.
func TestFindNeverTakesAnothersInstance(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := []string{"w", "w-1", "w-10", "W-1", "x"}
		type machine struct{ id, name, host, ip string }
		synctest.Test(t, func(t *testing.T) {
			s := newSite(ocisim.Options{PageSize: rapid.IntRange(1, 4).Draw(rt, "page")})
			var machines []machine
			taken := map[string]bool{}
			for n := range rapid.IntRange(1, 8).Draw(rt, "instances") {
				subnet := rapid.SampledFrom([]string{"nodes", "other"}).Draw(rt, "subnet")
				m := machine{
					name: rapid.SampledFrom(names).Draw(rt, "display name"),
					host: rapid.SampledFrom([]string{"-", "w", "w-1", "w-10", "x"}).Draw(rt, "host"),
					ip:   fmt.Sprintf("10.0.1.%d", n+1),
				}
				if taken[subnet+m.host] {
					m.host = "-" // host names are unique in a subnet
				}
				taken[subnet+m.host] = true
				m.id = s.AddInstance(ocisim.Instance{Name: m.name, VNIC: ocisim.VNIC{Subnet: subnet, Hostname: m.host, PrivateIP: m.ip}})
				if subnet == "nodes" {
					machines = append(machines, m)
				}
			}
			inv := s.inventory(t)
			for _, m := range machines {
				host := m.host
				if host == "-" {
					host = m.name
				}
				got, err := inv.Find(t.Context(), inventory.Query{Names: []string{host}, Addresses: []string{m.ip}})
				if err != nil && !isAmbiguous(err) {
					rt.Errorf("machine %+v: %v", m, err)
				}
				if err == nil && got.ID != m.id {
					rt.Errorf("machine %+v got %s", m, got.ID)
				}
			}
		})
	})
}

func isAmbiguous(err error) bool {
	var ambiguous *inventory.AmbiguousError
	return errors.As(err, &ambiguous)
}

// TestAbsentFieldsDoNotCrash is the inventory's part of case C012.
func TestAbsentFieldsDoNotCrash(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(ocisim.Options{Seed: seed, DropOptional: 0.5})
			s.AddInstance(ocisim.Instance{
				Name: "w-%d", Count: 5, VNIC: ocisim.VNIC{Subnet: "nodes", IPv6: []string{ocisim.Auto}}, VNICs: []ocisim.VNIC{{Subnet: "nodes"}},
			})
			inv := s.inventory(t)
			found := 0
			for _, instance := range s.Instances() {
				i, err := inv.Instance(t.Context(), *instance.Id, inventory.Need{})
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
					continue
				}
				if _, err := inv.VNICs(t.Context(), i, inventory.Need{}); err == nil {
					found++
				} else if !errors.Is(err, inventory.ErrNoPrimaryVNIC) {
					t.Errorf("seed %d: %v", seed, err)
				}
				if _, err := inv.Find(t.Context(), byName(*instance.DisplayName)); err != nil && !isUnresolved(err) {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
			if found == 0 {
				t.Errorf("seed %d: no instance shows its VNICs", seed)
			}
		})
	}
}

func isUnresolved(err error) bool {
	var notFound *inventory.NotFoundError
	return isAmbiguous(err) || errors.As(err, &notFound)
}
