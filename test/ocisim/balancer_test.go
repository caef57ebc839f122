// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// shore is a small world for balancers: a public and a private subnet, two instances.
type shore struct {
	*client

	region               *ocisim.Region
	compartment          string
	public, private, vcn string
	instance             string
}

func newShore(t *testing.T, options ocisim.Options) *shore {
	t.Helper()
	region := ocisim.New(options)
	s := &shore{client: newClient(t, region), region: region}
	s.compartment = region.AddCompartment(ocisim.Compartment{Name: "cluster"})
	s.vcn = region.AddVCN(ocisim.VCN{Name: "vcn", Compartment: s.compartment, CIDRs: []string{"10.0.0.0/16"}})
	s.public = region.AddSubnet(ocisim.Subnet{Name: "lb", VCN: s.vcn, CIDR: "10.0.1.0/24"})
	s.private = region.AddSubnet(ocisim.Subnet{Name: "nodes", VCN: s.vcn, CIDR: "10.0.2.0/24", Private: true})
	s.instance = region.AddInstance(ocisim.Instance{Name: "w-0", VNIC: ocisim.VNIC{Subnet: s.private}})
	return s
}

func (s *shore) lbBody(change object) object {
	body := object{
		"compartmentId": s.compartment, "displayName": "web", "shapeName": "flexible", "subnetIds": []string{s.public},
		"shapeDetails": object{"minimumBandwidthInMbps": 10, "maximumBandwidthInMbps": 100},
		"backendSets":  object{"TCP-80": lbSet("10.0.2.2:30080")},
		"listeners":    object{"TCP-80": object{"defaultBackendSetName": "TCP-80", "port": 80, "protocol": "TCP"}},
	}
	maps.Copy(body, change)
	return body
}

func lbSet(backends ...string) object {
	list := []object{}
	for _, b := range backends {
		ip, port, _ := strings.Cut(b, ":")
		var n int
		_, _ = fmt.Sscanf(port, "%d", &n)
		list = append(list, object{"ipAddress": ip, "port": n})
	}
	return object{
		"policy": "ROUND_ROBIN", "backends": list,
		"healthChecker": object{"protocol": "HTTP", "urlPath": "/healthz", "port": 10256},
	}
}

func (s *shore) nlbBody(change object) object {
	body := object{
		"compartmentId": s.compartment, "displayName": "ns/web/uid", "subnetId": s.public, "isPrivate": false,
		"backendSets": object{"TCP-80": nlbSet()},
		"listeners": object{"TCP-80": object{
			"name": "TCP-80", "defaultBackendSetName": "TCP-80", "port": 80, "protocol": "TCP",
		}},
	}
	maps.Copy(body, change)
	return body
}

func nlbSet() object {
	return object{
		"policy":        "FIVE_TUPLE",
		"backends":      []object{{"ipAddress": "10.0.2.2", "port": 30080}},
		"healthChecker": object{"protocol": "HTTP", "urlPath": "/healthz", "port": 10256},
	}
}

// items returns a list in an answer; an absent one is empty.
func items(o object, field string) []any {
	list, _ := o[field].([]any)
	return list
}

const (
	lbPath  = "/20170115/loadBalancers"
	nlbPath = "/20200501/networkLoadBalancers"
)

// newLB creates a load balancer and waits until it is ACTIVE.
func (s *shore) newLB(change object) string {
	s.t.Helper()
	r := s.post(lbPath, s.lbBody(change)).want(http.StatusNoContent)
	if len(r.body) != 0 {
		s.t.Fatalf("body %q of a create that answers 204", r.body)
	}
	id := str(s.lbWork(r), "loadBalancerId")
	s.region.Advance(time.Minute * 2)
	return id
}

func (s *shore) newNLB(change object) string {
	s.t.Helper()
	created := s.post(nlbPath, s.nlbBody(change)).want(http.StatusAccepted).object()
	s.region.Advance(time.Minute * 2)
	return str(created, "id")
}

// lbWork reads the work request of an answer.
func (s *shore) lbWork(r response) object {
	s.t.Helper()
	return s.get("/20170115/loadBalancerWorkRequests/" + r.header.Get("Opc-Work-Request-Id")).want(http.StatusOK).object()
}

func TestLoadBalancerLife(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 1})
	created := s.post(lbPath, s.lbBody(nil)).want(http.StatusNoContent)
	work := s.lbWork(created)
	if str(work, "lifecycleState") != "ACCEPTED" || str(work, "type") != "CreateLoadBalancer" {
		t.Errorf("work request %v", work)
	}
	id := str(work, "loadBalancerId")
	lb := s.get(lbPath + "/" + id).want(http.StatusOK).object()
	if str(lb, "lifecycleState") != "CREATING" || len(items(lb, "ipAddresses")) != 0 {
		t.Errorf("new load balancer is %v with addresses %v", lb["lifecycleState"], lb["ipAddresses"])
	}
	s.post(lbPath+"/"+id+"/backendSets", withName("x", lbSet())).wantError(http.StatusConflict, "IncorrectState")
	s.delete(lbPath+"/"+id).wantError(http.StatusConflict, "IncorrectState")

	s.region.Advance(2 * time.Minute)
	if work := s.lbWork(created); str(work, "lifecycleState") != "SUCCEEDED" {
		t.Errorf("work request is %v", work["lifecycleState"])
	}
	lb = s.get(lbPath + "/" + id).want(http.StatusOK).object()
	addresses := items(lb, "ipAddresses")
	if str(lb, "lifecycleState") != "ACTIVE" || len(addresses) != 1 || addresses[0].(object)["isPublic"] != true {
		t.Errorf("load balancer is %v with addresses %v", lb["lifecycleState"], addresses)
	}
	set := lb["backendSets"].(object)["TCP-80"].(object)
	checker := set["healthChecker"].(object)
	if checker["retries"] != 3.0 || checker["intervalInMillis"] != 10000.0 || checker["timeoutInMillis"] != 3000.0 {
		t.Errorf("defaults of the health checker: %v", checker)
	}
	if name := str(items(set, "backends")[0].(object), "name"); name != "10.0.2.2:30080" {
		t.Errorf("backend name %q", name)
	}

	s.delete(lbPath + "/" + id).want(http.StatusNoContent)
	if lb := s.get(lbPath + "/" + id).want(http.StatusOK).object(); str(lb, "lifecycleState") != "DELETING" {
		t.Errorf("state %v after delete", lb["lifecycleState"])
	}
	s.region.Advance(2 * time.Minute)
	s.get(lbPath+"/"+id).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
	s.delete(lbPath+"/"+id).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
}

func withName(name string, o object) object {
	o["name"] = name
	return o
}

func TestLoadBalancerChangesQueueAndStayActive(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 2})
	id := s.newLB(nil)
	before := s.region.ETag(id)
	var accepted []response
	for i := range 3 {
		accepted = append(accepted, s.post(lbPath+"/"+id+"/backendSets", withName(fmt.Sprint("set-", i), lbSet())).want(http.StatusNoContent))
	}
	s.region.Advance(2 * time.Second)
	states := make([]string, 0, 3)
	for _, a := range accepted {
		states = append(states, str(s.lbWork(a), "lifecycleState"))
	}
	if got := strings.Join(states, " "); got != "IN_PROGRESS ACCEPTED ACCEPTED" {
		t.Errorf("states of three changes in a row: %s", got)
	}
	if lb := s.get(lbPath + "/" + id).object(); str(lb, "lifecycleState") != "ACTIVE" || s.region.ETag(id) != before {
		t.Errorf("while changes wait the load balancer is %v and its etag has changed: %v", lb["lifecycleState"], s.region.ETag(id) != before)
	}
	s.region.Advance(5 * time.Minute)
	lb := s.get(lbPath + "/" + id).object()
	if n := len(lb["backendSets"].(object)); n != 4 || s.region.ETag(id) == before {
		t.Errorf("%d backend sets, etag changed: %v", n, s.region.ETag(id) != before)
	}
	if list := s.all(lbPath + "/" + id + "/workRequests?limit=2"); len(list) != 4 {
		t.Errorf("%d work requests of the load balancer, want 4", len(list))
	}
}

func TestLoadBalancerRefusesWhileBusyOnRequest(t *testing.T) {
	behaviour := ocisim.DefaultBehaviour()
	busy := behaviour.Rulings[ocisim.LoadBalancerBusy]
	busy.Allow = false
	behaviour.Rulings[ocisim.LoadBalancerBusy] = busy
	s := newShore(t, ocisim.Options{Seed: 2, Behaviour: behaviour})
	id := s.newLB(nil)
	s.post(lbPath+"/"+id+"/backendSets", withName("a", lbSet())).want(http.StatusNoContent)
	s.post(lbPath+"/"+id+"/backendSets", withName("b", lbSet())).wantError(http.StatusConflict, "IncorrectState")
	s.delete(lbPath+"/"+id).wantError(http.StatusConflict, "IncorrectState")
}

func TestLoadBalancerRefusals(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 3})
	flex := func(low, high int) object {
		return object{"shapeDetails": object{"minimumBandwidthInMbps": low, "maximumBandwidthInMbps": high}}
	}
	listener := func(protocol, set string, port int) object {
		return object{"defaultBackendSetName": set, "port": port, "protocol": protocol}
	}
	for name, change := range map[string]struct {
		body object
		code string
	}{
		"public in a private subnet": {object{"subnetIds": []string{s.private}}, "InvalidParameter"},
		"two regional subnets":       {object{"subnetIds": []string{s.public, s.private}, "isPrivate": true}, "InvalidParameter"},
		"unknown subnet":             {object{"subnetIds": []string{"ocid1.subnet.oc1.iad.none"}}, "RelatedResourceNotAuthorizedOrNotFound"},
		"bandwidth too small":        {flex(9, 100), "InvalidParameter"},
		"minimum above maximum":      {flex(200, 100), "InvalidParameter"},
		"flexible without details":   {object{"shapeDetails": nil}, "MissingParameter"},
		"unknown shape":              {object{"shapeName": "100mbps"}, "InvalidParameter"},
		"listener without its set":   {object{"backendSets": object{}}, "InvalidParameter"},
		"two listeners on one port": {object{"listeners": object{"a": listener("TCP", "TCP-80", 80), "b": listener("HTTP", "TCP-80", 80)}},
			"InvalidParameter"},
		"GRPC without TLS":        {object{"listeners": object{"a": listener("GRPC", "TCP-80", 80)}}, "InvalidParameter"},
		"unknown protocol":        {object{"listeners": object{"a": listener("UDP", "TCP-80", 80)}}, "InvalidParameter"},
		"name of 33 characters":   {object{"backendSets": object{strings.Repeat("x", 33): lbSet()}, "listeners": object{}}, "InvalidParameter"},
		"name with a blank":       {object{"backendSets": object{"a b": lbSet()}, "listeners": object{}}, "InvalidParameter"},
		"check without a path":    {object{"backendSets": object{"TCP-80": object{"policy": "ROUND_ROBIN", "healthChecker": object{"protocol": "HTTP"}}}}, "InvalidParameter"},
		"unknown policy":          {object{"backendSets": object{"TCP-80": object{"policy": "FIVE_TUPLE", "healthChecker": object{"protocol": "TCP"}}}}, "InvalidParameter"},
		"backend without address": {object{"backendSets": object{"TCP-80": lbSet("none:1")}}, "InvalidParameter"},
		"backend port 0":          {object{"backendSets": object{"TCP-80": lbSet("10.0.2.2:0")}}, "InvalidParameter"},
		"same backend twice":      {object{"backendSets": object{"TCP-80": lbSet("10.0.2.2:1", "10.0.2.2:1")}}, "InvalidParameter"},
		"six security groups":     {object{"networkSecurityGroupIds": []string{"1", "2", "3", "4", "5", "6"}}, "InvalidParameter"},
		"unknown security group":  {object{"networkSecurityGroupIds": []string{"ocid1.networksecuritygroup.oc1.iad.none"}}, "RelatedResourceNotAuthorizedOrNotFound"},
		"eleven tags":             {object{"freeformTags": tags(11)}, "InvalidParameter"},
		"unknown tag namespace":   {object{"definedTags": object{"none": object{"a": "b"}}}, "RelatedResourceNotAuthorizedOrNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			s.post(lbPath, s.lbBody(change.body)).wantError(http.StatusBadRequest, change.code)
		})
	}
	s.post(lbPath, s.lbBody(object{"compartmentId": "ocid1.compartment.oc1..none"})).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
	if n := len(s.region.LoadBalancers()); n != 0 {
		t.Errorf("%d load balancers after nothing but refusals", n)
	}
}

func tags(n int) object {
	o := object{}
	for i := range n {
		o[fmt.Sprint("k", i)] = "v"
	}
	return o
}

func TestBackendSetInUse(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 4})
	id := s.newLB(nil)
	s.delete(lbPath+"/"+id+"/backendSets/TCP-80").wantError(http.StatusBadRequest, "InvalidParameter")
	// The listener goes first, and must be gone: a deletion that waits is not enough.
	s.delete(lbPath + "/" + id + "/listeners/TCP-80").want(http.StatusNoContent)
	s.delete(lbPath+"/"+id+"/backendSets/TCP-80").wantError(http.StatusBadRequest, "InvalidParameter")
	s.region.Advance(time.Minute)
	s.delete(lbPath + "/" + id + "/backendSets/TCP-80").want(http.StatusNoContent)
	s.post(lbPath+"/"+id+"/listeners", object{"name": "a", "defaultBackendSetName": "none", "port": 80, "protocol": "TCP"}).
		wantError(http.StatusBadRequest, "InvalidParameter")
}

func TestUpdateReplacesTheWholeBackendSet(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 5})
	set := lbSet("10.0.2.2:30080")
	set["sessionPersistenceConfiguration"] = object{"cookieName": "*"}
	id := s.newLB(object{"backendSets": object{"TCP-80": set}})
	s.put(lbPath+"/"+id+"/backendSets/TCP-80", lbSet("10.0.2.3:30080")).want(http.StatusNoContent)
	s.region.Advance(time.Minute)
	got := s.get(lbPath + "/" + id + "/backendSets/TCP-80").want(http.StatusOK).object()
	if got["sessionPersistenceConfiguration"] != nil {
		t.Error("an update that leaves a setting out must lose it: the API replaces the whole set")
	}
	s.put(lbPath+"/"+id+"/backendSets/none", lbSet()).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
}

func TestLoadBalancerIfMatchIsOfTheWhole(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 6})
	id := s.newLB(nil)
	part := s.get(lbPath + "/" + id + "/backendSets/TCP-80")
	etag := part.header.Get("Etag")
	if etag != s.region.ETag(id) {
		t.Fatalf("etag of a part %q, of the whole %q", etag, s.region.ETag(id))
	}
	s.put(lbPath+"/"+id+"/backendSets/TCP-80", lbSet(), "If-Match", "00000000").wantError(http.StatusPreconditionFailed, "NoEtagMatch")
	s.put(lbPath+"/"+id+"/backendSets/TCP-80", lbSet(), "If-Match", etag).want(http.StatusNoContent)
	s.region.Advance(time.Minute)
	s.put(lbPath+"/"+id+"/backendSets/TCP-80", lbSet(), "If-Match", etag).wantError(http.StatusPreconditionFailed, "NoEtagMatch")
}

func TestLoadBalancerCreateToken(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 7})
	first := s.post(lbPath, s.lbBody(nil), "Opc-Retry-Token", "t").want(http.StatusNoContent)
	again := s.post(lbPath, s.lbBody(nil), "Opc-Retry-Token", "t").want(http.StatusNoContent)
	if a, b := first.header.Get("Opc-Work-Request-Id"), again.header.Get("Opc-Work-Request-Id"); a != b {
		t.Errorf("the same token gave the work requests %s and %s", a, b)
	}
	s.post(lbPath, s.lbBody(object{"displayName": "other"}), "Opc-Retry-Token", "t").wantError(http.StatusConflict, "InvalidatedRetryToken")
	if n := len(s.region.LoadBalancers()); n != 1 {
		t.Errorf("%d load balancers", n)
	}
	s.post(lbPath, s.lbBody(nil)).want(http.StatusNoContent)
	if n := len(s.region.LoadBalancers()); n != 2 {
		t.Errorf("%d load balancers: without a token an equal create makes a second one of the same name", n)
	}
}

func TestLoadBalancerLimit(t *testing.T) {
	behaviour := ocisim.DefaultBehaviour()
	behaviour.ServiceLimits["lb-100mbps-count"] = 0
	s := newShore(t, ocisim.Options{Seed: 8, Behaviour: behaviour})
	message := s.post(lbPath, s.lbBody(object{"shapeName": "100Mbps"})).wantError(http.StatusBadRequest, "LimitExceeded")
	if !strings.Contains(message, "lb-100mbps-count") {
		t.Errorf("the message does not name the limit: %s", message)
	}
	s.newLB(nil)
}

func TestFailedCreateStays(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 9})
	remove := s.region.Fault(ocisim.Fault{Operation: "CreateLoadBalancer", FailWork: true, Code: "BAD_INPUT", Message: "no free addresses"})
	created := s.post(lbPath, s.lbBody(nil)).want(http.StatusNoContent)
	remove()
	s.region.Advance(2 * time.Minute)
	work := s.lbWork(created)
	details := items(work, "errorDetails")
	if str(work, "lifecycleState") != "FAILED" || len(details) != 1 || str(details[0].(object), "message") != "no free addresses" {
		t.Errorf("work request %v", work)
	}
	id := str(work, "loadBalancerId")
	if lb := s.get(lbPath + "/" + id).object(); str(lb, "lifecycleState") != "FAILED" {
		t.Errorf("state %v, want FAILED", lb["lifecycleState"])
	}
	s.put(lbPath+"/"+id+"/backendSets/TCP-80", lbSet()).wantError(http.StatusConflict, "IncorrectState")
	s.delete(lbPath + "/" + id).want(http.StatusNoContent)
}

func TestDeleteProtection(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 10})
	id := s.newLB(object{"isDeleteProtectionEnabled": true})
	s.delete(lbPath+"/"+id).wantError(http.StatusConflict, "Conflict")
	s.put(lbPath+"/"+id, object{"isDeleteProtectionEnabled": false}).want(http.StatusNoContent)
	s.region.Advance(time.Minute)
	s.delete(lbPath + "/" + id).want(http.StatusNoContent)
}

func TestReservedAddressOutlivesItsBalancer(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 11})
	ip := s.region.AddPublicIP(ocisim.PublicIP{Name: "reserved", Compartment: s.compartment})
	reserved := object{"reservedIps": []object{{"id": ip}}}
	id := s.newLB(reserved)
	s.post(lbPath, s.lbBody(reserved)).wantError(http.StatusConflict, "Conflict")
	s.post(nlbPath, s.nlbBody(reserved)).wantError(http.StatusConflict, "Conflict")
	s.delete(lbPath + "/" + id).want(http.StatusNoContent)
	s.region.Advance(10 * time.Minute)
	for _, p := range s.region.PublicIPs() {
		if *p.Id == ip && string(p.LifecycleState) == "AVAILABLE" {
			return
		}
	}
	t.Errorf("the reserved address is not available again: %v", s.region.PublicIPs())
}

func TestGroupIsBusyAsLongAsTheVNICLingers(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 12})
	group := s.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "g", VCN: s.vcn})
	id := s.newLB(object{"networkSecurityGroupIds": []string{group}})
	s.delete(lbPath + "/" + id).want(http.StatusNoContent)
	s.region.Advance(80 * time.Second) // deleted, but its VNIC lingers for a minute at least
	s.delete("/20160918/networkSecurityGroups/"+group).wantError(http.StatusPreconditionFailed, "PreconditionFailed")
	s.region.Advance(10 * time.Minute)
	s.delete("/20160918/networkSecurityGroups/" + group).want(http.StatusNoContent)
}

func TestNetworkLoadBalancerLife(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 20})
	created := s.post(nlbPath, s.nlbBody(nil)).want(http.StatusAccepted)
	nlb := created.object()
	id := str(nlb, "id")
	if str(nlb, "lifecycleState") != "CREATING" || created.header.Get("Etag") == "" {
		t.Errorf("answer of the create: state %v, etag %q", nlb["lifecycleState"], created.header.Get("Etag"))
	}
	workPath := "/20200501/workRequests/" + created.header.Get("Opc-Work-Request-Id")
	work := s.get(workPath).want(http.StatusOK)
	if work.header.Get("Retry-After") == "" {
		t.Error("the work request has no retry-after")
	}
	resource := items(work.object(), "resources")[0].(object)
	if str(resource, "entityType") != "NetworkLoadBalancer" || str(resource, "identifier") != id {
		t.Errorf("resource of the work request: %v", resource)
	}
	s.region.Advance(time.Minute)
	nlb = s.get(nlbPath + "/" + id).want(http.StatusOK).object()
	addresses := items(nlb, "ipAddresses")
	if str(nlb, "lifecycleState") != "ACTIVE" || len(addresses) != 2 {
		t.Fatalf("state %v, addresses %v: a public one shows its private address too", nlb["lifecycleState"], addresses)
	}
	if list := s.get(nlbPath + "?compartmentId=" + s.compartment).object()["items"].([]any); len(list) != 1 {
		t.Errorf("list %v", list)
	}
	s.delete(nlbPath + "/" + id).want(http.StatusAccepted)
	s.delete(nlbPath+"/"+id).wantError(http.StatusConflict, "Conflict")
	s.region.Advance(time.Minute)
	s.get(nlbPath+"/"+id).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
}

func TestNetworkLoadBalancerTakesOneChangeAtATime(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 21})
	id := s.newNLB(nil)
	s.put(nlbPath+"/"+id+"/backendSets/TCP-80", object{"backends": []object{}}).want(http.StatusAccepted)
	message := s.post(nlbPath+"/"+id+"/backendSets", withName("b", nlbSet())).wantError(http.StatusConflict, "Conflict")
	if message != "Invalid State Transition of NLB lifeCycle state from Updating to Updating" {
		t.Errorf("message %q", message)
	}
	s.delete(nlbPath+"/"+id).wantError(http.StatusConflict, "Conflict")
	s.region.Advance(time.Minute)
	set := s.get(nlbPath + "/" + id).object()["backendSets"].(object)["TCP-80"].(object)
	if set["healthChecker"] == nil || set["isPreserveSource"] != true {
		t.Errorf("an update of the backends lost the rest: %v", set)
	}
}

func TestNetworkLoadBalancerRefusals(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 22})
	listener := func(name, protocol string) object {
		return object{"name": name, "defaultBackendSetName": "TCP-80", "port": 53, "protocol": protocol}
	}
	backends := func(list ...object) object {
		set := nlbSet()
		set["backends"] = list
		return object{"backendSets": object{"TCP-80": set}}
	}
	for name, change := range map[string]struct {
		body   object
		status int
		code   string
	}{
		"public in a private subnet": {object{"subnetId": s.private}, 400, "InvalidParameter"},
		"IPv6 without a block":       {object{"nlbIpVersion": "IPV4_AND_IPV6"}, 400, "InvalidParameter"},
		"TCP and UDP on one port":    {object{"listeners": object{"a": listener("a", "TCP"), "b": listener("b", "UDP")}}, 400, "InvalidParameter"},
		"unknown protocol":           {object{"listeners": object{"a": listener("a", "SCTP")}}, 400, "InvalidParameter"},
		"duplicate backend": {backends(object{"ipAddress": "10.0.2.2", "port": 1}, object{"ipAddress": "10.0.2.2", "port": 1}),
			409, "NotAuthorizedOrResourceAlreadyExists"},
		"unknown target":   {backends(object{"targetId": "ocid1.instance.oc1.iad.none", "port": 1}), 400, "RelatedResourceNotAuthorizedOrNotFound"},
		"neither of both":  {backends(object{"port": 1}), 400, "InvalidParameter"},
		"interval of 9 s":  {object{"backendSets": object{"TCP-80": object{"healthChecker": object{"protocol": "TCP", "port": 1, "intervalInMillis": 9000}}}}, 400, "InvalidParameter"},
		"set does not fit": {object{"backendSets": object{"other": nlbSet()}}, 400, "InvalidParameter"},
	} {
		t.Run(name, func(t *testing.T) {
			s.post(nlbPath, s.nlbBody(change.body)).wantError(change.status, change.code)
		})
	}
	if n := len(s.region.NetworkLoadBalancers()); n != 0 {
		t.Errorf("%d network load balancers after nothing but refusals", n)
	}
}

func TestNetworkLoadBalancerIsPrivateByDefault(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 23})
	id := s.newNLB(object{"isPrivate": nil, "subnetId": s.private})
	nlb := s.get(nlbPath + "/" + id).object()
	addresses := items(nlb, "ipAddresses")
	if nlb["isPrivate"] != true || len(addresses) != 1 || addresses[0].(object)["isPublic"] != false {
		t.Errorf("isPrivate %v, addresses %v", nlb["isPrivate"], addresses)
	}
}

func TestNetworkLoadBalancerWorkFailure(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 24})
	id := s.newNLB(nil)
	s.region.Fault(ocisim.Fault{Operation: "networkloadbalancer.UpdateBackendSet", FailWork: true, Message: "broken"})
	r := s.put(nlbPath+"/"+id+"/backendSets/TCP-80", object{"backends": []object{}}).want(http.StatusAccepted)
	s.region.Advance(time.Minute)
	nlb := s.get(nlbPath + "/" + id).object()
	if str(nlb, "lifecycleState") != "ACTIVE" || len(nlb["backendSets"].(object)["TCP-80"].(object)["backends"].([]any)) != 1 {
		t.Errorf("after a failed change: state %v, sets %v", nlb["lifecycleState"], nlb["backendSets"])
	}
	problems := s.get("/20200501/workRequests/" + r.header.Get("Opc-Work-Request-Id") + "/errors?compartmentId=" + s.compartment).
		want(http.StatusOK).object()["items"].([]any)
	if len(problems) != 1 || str(problems[0].(object), "message") != "broken" {
		t.Errorf("problems %v", problems)
	}
}

func TestBalancersAreEventuallyConsistent(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 25, EventualReads: 2})
	id := str(s.post(nlbPath, s.nlbBody(nil)).want(http.StatusAccepted).object(), "id")
	s.get(nlbPath+"/"+id).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
	if list := s.get(nlbPath + "?compartmentId=" + s.compartment).object()["items"].([]any); len(list) != 0 {
		t.Errorf("the second read sees it: %v", list)
	}
	s.get(nlbPath + "/" + id).want(http.StatusOK)
}

func TestBalancersByPolicy(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 26})
	id := s.newLB(nil)
	gone := s.get(lbPath + "/ocid1.loadbalancer.oc1.iad.none")
	restore := s.region.Deny(ocisim.Policy{ResourceType: "load-balancers"})
	denied := s.get(lbPath + "/" + id)
	if gone.status != denied.status || string(gone.body) != string(denied.body) {
		t.Errorf("gone %d %s and denied %d %s can be told apart", gone.status, gone.body, denied.status, denied.body)
	}
	s.get(lbPath+"?compartmentId="+s.compartment).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
	s.post(lbPath, s.lbBody(nil)).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
	restore()
	s.get(lbPath + "/" + id).want(http.StatusOK)
}
