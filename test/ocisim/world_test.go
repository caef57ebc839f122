// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"sigs.k8s.io/yaml"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

const seedFile = `
compartments:
- {name: network}
- {name: nodes, id: ocid1.compartment.oc1..nodes}
tagNamespaces: [team]
vcns:
- {name: net, compartment: network, cidrs: [10.0.0.0/16], dnsLabel: net}
securityLists:
- name: nodes
  ingress: [{protocol: tcp, ports: 30000-32767, peer: 10.0.0.0/16, description: node ports}]
  egress: [{}]
securityGroups:
- {name: lb, ingress: [{protocol: tcp, ports: "443"}]}
- {name: workers, ingress: [{protocol: all, peer: lb}]}
subnets:
- {name: workers, cidr: 10.0.10.0/24, private: true, dnsLabel: workers, securityLists: [nodes]}
- {name: public, cidr: 10.0.0.0/24}
publicIPs:
- {name: ingress, address: 198.18.0.200}
instances:
- name: worker-%d
  count: 3
  compartment: nodes
  subnet: workers
  securityGroups: [workers]
  freeformTags: {role: worker}
- name: bastion
  id: ocid1.instance.oc1.iad.bastion
  compartment: nodes
  state: STOPPED
  subnet: public
  privateIp: 10.0.0.9
  publicIp: auto
  hostname: "-"
  vnics: [{subnet: workers}]
`

func TestSeedFile(t *testing.T) {
	var world ocisim.World
	if err := yaml.UnmarshalStrict([]byte(seedFile), &world); err != nil {
		t.Fatal(err)
	}
	region := ocisim.New(ocisim.Options{Seed: 1})
	if err := region.Seed(world); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, region)
	list := c.all(api + "/instances?compartmentId=ocid1.compartment.oc1..nodes")
	var names, domains, faults []string
	for _, o := range list {
		names = append(names, str(o, "displayName"))
		domains = append(domains, str(o, "availabilityDomain")[len("Uocm:US-ASHBURN-"):])
		faults = append(faults, str(o, "faultDomain"))
	}
	if diff := cmp.Diff([]string{"worker-1", "worker-2", "worker-3", "bastion"}, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"AD-1", "AD-2", "AD-3", "AD-1"}, domains); diff != "" {
		t.Error(diff)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(faults)))) != 3 {
		t.Errorf("fault domains %v", faults)
	}
	worker := region.InstanceVNICs(str(list[0], "id"))[0]
	if *worker.PrivateIp != "10.0.10.2" || *worker.HostnameLabel != "worker-1" || len(worker.NsgIds) != 1 || worker.PublicIp != nil {
		t.Errorf("worker's VNIC %v", worker)
	}
	bastion := region.InstanceVNICs("ocid1.instance.oc1.iad.bastion")
	if len(bastion) != 2 || *bastion[0].PrivateIp != "10.0.0.9" || !strings.HasPrefix(*bastion[0].PublicIp, "198.18.") ||
		bastion[0].HostnameLabel != nil || *bastion[1].PrivateIp != "10.0.10.5" || *bastion[1].IsPrimary {
		t.Errorf("bastion's VNICs %v", bastion)
	}
	subnet := region.Subnets()[0]
	if !*subnet.ProhibitPublicIpOnVnic || *subnet.SubnetDomainName != "workers.net.oraclevcn.com" || len(subnet.SecurityListIds) != 1 {
		t.Errorf("subnet %v", subnet)
	}
	if public := region.Subnets()[1]; public.SecurityListIds[0] != *region.VCNs()[0].DefaultSecurityListId {
		t.Errorf("a subnet without lists has the default one, not %v", public.SecurityListIds)
	}
	rules := region.GroupRules(*region.SecurityGroups()[1].Id)
	if len(rules) != 1 || *rules[0].Source != *region.SecurityGroups()[0].Id || *rules[0].Protocol != "all" {
		t.Errorf("rules %v", rules)
	}
	if reserved := region.PublicIPs()[0]; *reserved.IpAddress != "198.18.0.200" || reserved.LifecycleState != core.PublicIpLifecycleStateAvailable {
		t.Errorf("reserved address %v", reserved)
	}
}

func TestSeedErrors(t *testing.T) {
	tests := map[string]ocisim.World{
		"unknown subnet":      {Instances: []ocisim.Instance{{Name: "n", VNIC: ocisim.VNIC{Subnet: "nowhere"}}}},
		"no VCN":              {Subnets: []ocisim.Subnet{{Name: "s", CIDR: "10.0.0.0/24"}}},
		"bad CIDR":            {VCNs: []ocisim.VCN{{}}, Subnets: []ocisim.Subnet{{Name: "s", CIDR: "10.0.0.0"}}},
		"unknown compartment": {VCNs: []ocisim.VCN{{Compartment: "c"}}},
		"identifier twice":    {Compartments: []ocisim.Compartment{{ID: "ocid1.compartment.oc1..a"}, {ID: "ocid1.compartment.oc1..a"}}},
		"bad ports":           {VCNs: []ocisim.VCN{{}}, SecurityLists: []ocisim.SecurityList{{Ingress: []ocisim.SecurityRule{{Protocol: "tcp", Ports: "80-70"}}}}},
		"ports without TCP":   {VCNs: []ocisim.VCN{{}}, SecurityLists: []ocisim.SecurityList{{Ingress: []ocisim.SecurityRule{{Ports: "80"}}}}},
		"shared identifier":   {Instances: []ocisim.Instance{{ID: "ocid1.instance.oc1.iad.a", Count: 2}}},
	}
	for name, world := range tests {
		if err := ocisim.New(ocisim.Options{}).Seed(world); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestForeign(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	uri := api + "/instances/" + f.instance
	etag := f.get(uri).header.Get("etag")
	foreign := f.region.Foreign()
	if err := foreign.Patch(f.instance, []byte(`{"freeformTags":{"by":"terraform"},"faultDomain":null,"lifecycleState":"MOVING"}`)); err != nil {
		t.Fatal(err)
	}
	r := f.get(uri).want(http.StatusOK)
	o := r.object()
	if o["freeformTags"].(object)["by"] != "terraform" || o["faultDomain"] != nil || str(o, "lifecycleState") != "MOVING" || r.header.Get("etag") == etag {
		t.Errorf("patched %v", o)
	}
	if source := o["sourceDetails"].(object); source["sourceType"] != "image" {
		t.Errorf("the patch lost %v", source)
	}
	if f.region.ETag(f.instance) != r.header.Get("etag") {
		t.Error("ETag is not what the API says")
	}
	if err := foreign.Patch(f.instance, []byte(`{"id":"other"}`)); err == nil {
		t.Error("a patch changed the identifier")
	}
	if err := foreign.Instance(f.instance, func(v *core.Instance) { v.DisplayName = common.String("renamed") }); err != nil {
		t.Fatal(err)
	}
	if n := len(f.all(api + "/instances?compartmentId=" + f.compartment + "&displayName=renamed")); n != 1 {
		t.Errorf("%d instances with the new name", n)
	}
	if err := foreign.Delete(f.instance); err != nil {
		t.Fatal(err)
	}
	f.get(uri).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
	if n := len(f.all(api + "/vnicAttachments?compartmentId=" + f.compartment)); n != 0 {
		t.Errorf("%d attachments outlive their instance", n)
	}
	if err := foreign.Delete(f.instance); err == nil {
		t.Error("deleted twice")
	}
}

func TestSnapshot(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	before := f.region.Snapshot()
	f.all(api + "/instances?compartmentId=" + f.compartment)
	if diff := cmp.Diff(string(before), string(f.region.Snapshot())); diff != "" {
		t.Errorf("reads changed the region:\n%s", diff)
	}
	var kinds map[string]map[string]struct {
		ETag  string
		Value object
	}
	if err := json.Unmarshal(before, &kinds); err != nil {
		t.Fatal(err)
	}
	if got := kinds["instance"][f.instance]; got.ETag != f.region.ETag(f.instance) || str(got.Value, "displayName") != "node-1" {
		t.Errorf("instance in the snapshot: %v", got)
	}
	if err := f.region.Foreign().StopInstance(f.instance); err != nil {
		t.Fatal(err)
	}
	if string(before) == string(f.region.Snapshot()) {
		t.Error("the snapshot does not show a change")
	}
}

// TestSeedingManyInstances has the size that the project is made for; BenchmarkSeed measures it.
func TestSeedingManyInstances(t *testing.T) {
	region := ocisim.New(ocisim.Options{PageSize: 1000})
	region.AddVCN(ocisim.VCN{Name: "net"})
	region.AddSubnet(ocisim.Subnet{Name: "nodes", CIDR: "10.0.0.0/16"})
	began := time.Now()
	region.AddInstance(ocisim.Instance{Name: "node-%d", Count: 5000, VNIC: ocisim.VNIC{Subnet: "nodes"}})
	t.Logf("5,000 instances in %s", time.Since(began))
	list := newClient(t, region).all(api + "/instances?compartmentId=" + region.Options().Tenancy)
	if n := len(slices.Compact(slices.Sorted(slices.Values(ids(list))))); n != 5000 {
		t.Errorf("%d instances", n)
	}
}
