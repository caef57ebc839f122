// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func TestPrivateAddresses(t *testing.T) {
	f := newFixture(t, ocisim.Options{PageSize: 2})
	vnic := f.vnicOf(f.instance)
	list := api + "/privateIps?vnicId=" + vnic
	primary := f.get(list).want(http.StatusOK).array()
	if len(primary) != 1 || primary[0]["isPrimary"] != true || str(primary[0], "ipAddress") != "10.0.10.2" {
		t.Fatalf("the first address of 10.0.10.0/24 behind network and router: %v", primary)
	}
	created := f.post(api+"/privateIps", object{"vnicId": vnic, "displayName": "second"}, "opc-retry-token", "t").want(http.StatusOK)
	f.post(api+"/privateIps", object{"vnicId": vnic, "displayName": "second"}, "opc-retry-token", "t").want(http.StatusOK)
	o := created.object()
	if o["isPrimary"] != false || str(o, "ipAddress") != "10.0.10.3" || str(o, "displayName") != "second" || str(o, "subnetId") != f.subnet {
		t.Errorf("secondary address %v", o)
	}
	f.post(api+"/privateIps", object{"vnicId": vnic, "ipAddress": "10.0.10.77"}).want(http.StatusOK)
	f.post(api+"/privateIps", object{"vnicId": vnic, "ipAddress": "10.0.10.77"}).wantError(http.StatusConflict, "Conflict")
	for _, outside := range []string{"10.0.11.1", "10.0.10.0", "10.0.10.1", "10.0.10.255", "fd00::1", "x"} {
		f.post(api+"/privateIps", object{"vnicId": vnic, "ipAddress": outside}).wantError(http.StatusBadRequest, "InvalidParameter")
	}
	f.post(api+"/privateIps", object{}).wantError(http.StatusBadRequest, "MissingParameter")
	f.post(api+"/privateIps", object{"vnicId": "ocid1.vnic.oc1.iad.x"}).wantError(http.StatusBadRequest, "RelatedResourceNotAuthorizedOrNotFound")
	if n := len(f.all(list)); n != 3 {
		t.Errorf("%d addresses", n)
	}
	if got := f.all(api + "/privateIps?subnetId=" + f.subnet + "&ipAddress=10.0.10.77"); len(got) != 1 {
		t.Errorf("by address: %v", got)
	}
	f.get(api+"/privateIps?").wantError(http.StatusBadRequest, "InvalidParameter")
	f.get(api+"/privateIps?vnicId=ocid1.vnic.oc1.iad.x").wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")

	f.delete(api+"/privateIps/"+str(primary[0], "id")).wantError(http.StatusBadRequest, "InvalidParameter")
	f.delete(api + "/privateIps/" + str(o, "id")).want(http.StatusNoContent)
	f.get(api+"/privateIps/"+str(o, "id")).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
	f.post(api+"/privateIps", object{"vnicId": vnic, "ipAddress": "10.0.10.3"}).want(http.StatusOK) // free again
}

func TestSubnetRunsFull(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	f.region.AddSubnet(ocisim.Subnet{Name: "tiny", CIDR: "10.0.99.0/29"}) // eight addresses, three kept by OCI
	id := f.region.AddInstance(ocisim.Instance{Name: "n", VNIC: ocisim.VNIC{Subnet: "tiny"}})
	body := object{"vnicId": f.vnicOf(id)}
	var last string
	for range 4 {
		last = str(f.post(api+"/privateIps", body).want(http.StatusOK).object(), "id")
	}
	f.post(api+"/privateIps", body).wantError(http.StatusBadRequest, "LimitExceeded")
	f.delete(api + "/privateIps/" + last).want(http.StatusNoContent)
	f.post(api+"/privateIps", body).want(http.StatusOK)
}

func TestIPv6Addresses(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	f.region.AddSubnet(ocisim.Subnet{Name: "dual", CIDR: "10.0.20.0/24", IPv6CIDR: "2001:db8:0:1::/64"})
	id := f.region.AddInstance(ocisim.Instance{Name: "n", VNIC: ocisim.VNIC{Subnet: "dual", IPv6: []string{ocisim.Auto, "2001:db8:0:1::abcd"}}})
	vnic := f.vnicOf(id)
	addresses := func() any { return f.get(api + "/vnics/" + vnic).want(http.StatusOK).object()["ipv6Addresses"] }
	if diff := cmp.Diff([]any{"2001:db8:0:1::2", "2001:db8:0:1::abcd"}, addresses()); diff != "" {
		t.Error(diff)
	}
	o := f.post(api+"/ipv6", object{"vnicId": vnic, "ipAddress": "2001:db8:0:1::1:0"}).want(http.StatusOK).object()
	f.post(api+"/ipv6", object{"vnicId": f.vnicOf(f.instance)}).wantError(http.StatusBadRequest, "LimitExceeded") // an IPv4 subnet has none to give
	if n := len(f.all(api + "/ipv6?vnicId=" + vnic)); n != 3 {
		t.Errorf("%d addresses", n)
	}
	f.delete(api + "/ipv6/" + str(o, "id")).want(http.StatusNoContent)
	if diff := cmp.Diff([]any{"2001:db8:0:1::2", "2001:db8:0:1::abcd"}, addresses()); diff != "" {
		t.Error(diff)
	}
}

func TestReservedPublicAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, ocisim.Options{})
		vnic := f.vnicOf(f.instance)
		private := str(f.get(api + "/privateIps?vnicId=" + vnic).want(http.StatusOK).array()[0], "id")
		o := f.post(api+"/publicIps", object{"compartmentId": f.compartment, "lifetime": "RESERVED"}).want(http.StatusOK).object()
		uri, address := api+"/publicIps/"+str(o, "id"), str(o, "ipAddress")
		if str(o, "lifecycleState") != "PROVISIONING" || str(o, "scope") != "REGION" {
			t.Errorf("new address %v", o)
		}
		time.Sleep(10 * time.Second)
		if got := f.state(uri); got != "AVAILABLE" {
			t.Errorf("state %s", got)
		}
		shown := func() any { return f.get(api + "/vnics/" + vnic).want(http.StatusOK).object()["publicIp"] }

		f.put(uri, object{"privateIpId": private}).want(http.StatusOK)
		if got := f.state(uri); got != "ASSIGNING" || shown() != nil {
			t.Errorf("state %s, on the VNIC %v", got, shown())
		}
		time.Sleep(10 * time.Second)
		o = f.get(uri).want(http.StatusOK).object()
		if str(o, "lifecycleState") != "ASSIGNED" || str(o, "assignedEntityId") != private || shown() != address {
			t.Errorf("assigned address %v, on the VNIC %v", o, shown())
		}
		byPrivate := f.post(api+"/publicIps/actions/getByPrivateIpId", object{"privateIpId": private}).want(http.StatusOK).object()
		byAddress := f.post(api+"/publicIps/actions/getByIpAddress", object{"ipAddress": address}).want(http.StatusOK).object()
		if diff := cmp.Diff(byPrivate, byAddress); diff != "" {
			t.Error(diff)
		}
		f.post(api+"/publicIps/actions/getByIpAddress", object{"ipAddress": "203.0.113.1"}).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
		f.post(api+"/publicIps/actions/getByIpAddress", object{}).wantError(http.StatusBadRequest, "MissingParameter")
		f.post(api+"/publicIps", object{"compartmentId": f.compartment, "lifetime": "RESERVED", "privateIpId": private}).
			wantError(http.StatusConflict, "Conflict")

		f.put(uri, object{"privateIpId": ""}).want(http.StatusOK)
		if got := f.state(uri); got != "UNASSIGNING" || shown() != nil {
			t.Errorf("state %s, on the VNIC %v", got, shown())
		}
		time.Sleep(10 * time.Second)
		if got := f.state(uri); got != "AVAILABLE" {
			t.Errorf("state %s: a reserved address outlives its assignment", got)
		}
		f.delete(uri).want(http.StatusNoContent)
		if got := f.state(uri); got != "TERMINATING" {
			t.Errorf("state %s", got)
		}
		time.Sleep(10 * time.Second)
		f.get(uri).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
	})
}

func TestEphemeralPublicAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, ocisim.Options{})
		private := str(f.get(api + "/privateIps?vnicId=" + f.vnicOf(f.instance)).want(http.StatusOK).array()[0], "id")
		f.post(api+"/publicIps", object{"compartmentId": f.compartment, "lifetime": "EPHEMERAL"}).wantError(http.StatusBadRequest, "InvalidParameter")
		f.post(api+"/publicIps", object{"compartmentId": f.compartment, "lifetime": "FOREVER"}).wantError(http.StatusBadRequest, "InvalidParameter")
		o := f.post(api+"/publicIps", object{"compartmentId": f.compartment, "lifetime": "EPHEMERAL", "privateIpId": private}).want(http.StatusOK).object()
		f.region.AddPublicIP(ocisim.PublicIP{Name: "reserved"})
		list := func(query string) int { return len(f.all(api + "/publicIps?compartmentId=" + f.compartment + query)) }
		domain := f.region.Options().AvailabilityDomains
		if a, b, c := list("&scope=REGION"), list("&scope=AVAILABILITY_DOMAIN&availabilityDomain="+domain[0]),
			list("&scope=AVAILABILITY_DOMAIN&availabilityDomain="+domain[1]); a != 1 || b != 1 || c != 0 {
			t.Errorf("%d regional, %d and %d addresses of domains", a, b, c)
		}
		f.get(api+"/publicIps?compartmentId="+f.compartment).wantError(http.StatusBadRequest, "MissingParameter")
		f.get(api+"/publicIps?compartmentId="+f.compartment+"&scope=AVAILABILITY_DOMAIN").wantError(http.StatusBadRequest, "MissingParameter")
		time.Sleep(10 * time.Second)
		uri := api + "/publicIps/" + str(o, "id")
		if got := f.state(uri); got != "ASSIGNED" {
			t.Errorf("state %s", got)
		}
		f.put(uri, object{"privateIpId": ""}).want(http.StatusOK)
		time.Sleep(10 * time.Second)
		f.get(uri).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound") // an ephemeral one ends with its assignment
	})
}
