// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
)

func TestOrphanWithDeadOwner(t *testing.T) {
	l := newLab(t)
	id := l.newLB(deadOwner, nil)
	f := l.finds(nil, oracle.Orphan, id, "its owner "+deadOwner+" does not exist", "load balancer web [ACTIVE]", l.lastCall().RequestID)
	madeBy(t, f, "CreateLoadBalancer")

	l.clean(func(q *oracle.Question) { q.Us.Owners = append(q.Us.Owners, deadOwner) })
	l.clean(func(q *oracle.Question) { q.Us.Owners = append(q.Us.Owners, id) })
	// Of another cluster, it is not ours, whoever made it.
	if n := len(l.ask(func(q *oracle.Question) { q.Us.Cluster = "cluster-2" }).Of(oracle.Orphan)); n != 0 {
		t.Errorf("%d orphans of another cluster", n)
	}
	// Without a name of the cluster every mark is ours.
	l.finds(func(q *oracle.Question) { q.Us.Cluster = "" }, oracle.Orphan, id)

	l.call(me, http.MethodDelete, balancers+"/"+id, nil)
	l.clean(nil) // it is on its way
	l.finds(func(q *oracle.Question) { q.Settled = true }, oracle.Orphan, id, "not come to rest", "[DELETING]")
	l.region.Advance(time.Minute)
	l.clean(nil) // its VNIC lingers
	l.region.Advance(time.Hour)
	l.clean(func(q *oracle.Question) { q.Settled = true })
}

func TestOrphanWithoutMark(t *testing.T) {
	l := newLab(t)
	id := l.newLB("", object{"displayName": "nameless"})
	l.finds(nil, oracle.Orphan, id, "no mark of an owner")
	l.clean(func(q *oracle.Question) { q.Us.Principals = []string{"ocid1.user.oc1..somebody"} }) // then it is somebody else's

	l.region.ResetCalls() // then nobody knows who made it, and only its type makes it ours
	before := l.region.Snapshot()
	l.clean(func(q *oracle.Question) { q.Before = before })
	l.finds(func(q *oracle.Question) { q.Before, q.Us.Types = before, []string{"load balancer"} }, oracle.Orphan, id, "no mark of an owner")

	half := l.newLB("", object{"displayName": "half", "freeformTags": object{oracle.TagCluster: cluster}})
	report := l.ask(func(q *oracle.Question) { q.Us.Owners = append(q.Us.Owners, id) })
	if list := report.Of(oracle.Orphan); len(list) != 1 || list[0].Resource != half {
		t.Errorf("want the balancer with half of a mark:\n%s", report)
	}
}

func TestOrphanByName(t *testing.T) {
	l := newLab(t)
	living := l.newLB("", object{"displayName": "prefix-" + owner})
	l.region.ResetCalls() // nobody knows any more who made them
	before := l.region.Snapshot()
	old := func(q *oracle.Question) { q.Before = before }
	l.finds(old, oracle.Duplicate, living) // it has the owner of the balancer that is there already

	l.call(me, http.MethodDelete, balancers+"/"+l.balancer, nil)
	l.region.Advance(time.Hour)
	l.clean(old)
	gone := l.newLB("", object{"displayName": deadOwner})
	l.region.ResetCalls()
	before = l.region.Snapshot()
	l.clean(old) // without names it is not known as ours
	named := func(q *oracle.Question) {
		old(q)
		q.Us.Names = []*regexp.Regexp{regexp.MustCompile(`^(?:.*-)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)}
	}
	l.finds(named, oracle.Orphan, gone, "its owner "+deadOwner+", by its name")
	l.clean(func(q *oracle.Question) {
		named(q)
		q.Us.Owners = append(q.Us.Owners, deadOwner)
	})
}

func TestFailedAndHalfMade(t *testing.T) {
	l := newLab(t)
	restore := l.region.Fault(ocisim.Fault{Operation: "CreateLoadBalancer", FailWork: true})
	failed := l.newLB("second-living-owner", nil)
	restore()
	living := func(q *oracle.Question) { q.Us.Owners = append(q.Us.Owners, "second-living-owner") }
	l.finds(living, oracle.Orphan, failed, "it failed", "[FAILED]", "fault: work request fails")
	l.call(me, http.MethodDelete, balancers+"/"+failed, nil)
	l.region.Advance(time.Hour)
	l.clean(living)

	half := l.startLB(deadOwner, nil)
	l.finds(nil, oracle.Orphan, half, "half made", "[CREATING]")
	living = func(q *oracle.Question) { q.Us.Owners = append(q.Us.Owners, deadOwner) }
	l.clean(living)
	l.finds(func(q *oracle.Question) { living(q); q.Settled = true }, oracle.Orphan, half, "not come to rest")
}

// TestLeftBehind looks at what the simulator itself never leaves: a VNIC without its balancer, and an attachment without
// its instance.
func TestLeftBehind(t *testing.T) {
	l := newLab(t)
	id := l.newLB(deadOwner, nil)
	e, err := oracle.Gather(t.Context(), oracle.InProcess(l.region))
	if err != nil {
		t.Fatal(err)
	}
	var state map[string]map[string]any
	if err := json.Unmarshal(e.State, &state); err != nil {
		t.Fatal(err)
	}
	delete(state["load balancer"], id)
	state["volume"] = object{"ocid1.volume.oc1..v": object{"etag": "1", "value": object{
		"id": "ocid1.volume.oc1..v", "displayName": "pvc-1", "freeformTags": marks("pvc-1"), "lifecycleState": "AVAILABLE",
	}}}
	attachment := func(id, instance, state string) object {
		return object{"etag": "1", "value": object{
			"id": id, "volumeId": "ocid1.volume.oc1..v", "instanceId": instance, "lifecycleState": state,
		}}
	}
	state["volume attachment"] = object{
		"ocid1.volumeattachment.oc1..a": attachment("ocid1.volumeattachment.oc1..a", l.instance, "ATTACHED"),
		"ocid1.volumeattachment.oc1..b": attachment("ocid1.volumeattachment.oc1..b", "ocid1.instance.oc1..gone", "ATTACHED"),
		"ocid1.volumeattachment.oc1..c": attachment("ocid1.volumeattachment.oc1..c", "ocid1.instance.oc1..gone", "DETACHED"),
	}
	if e.State, err = json.Marshal(state); err != nil {
		t.Fatal(err)
	}
	q := l.question()
	q.Us.Owners = append(q.Us.Owners, "pvc-1")
	report, err := oracle.Judge(e, q)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, f := range report.Of(oracle.Orphan) {
		found[f.Type]++
	}
	// The private address of the VNIC is still on it.
	if len(report.Findings) != 2 || found["VNIC"] != 1 || found["volume attachment"] != 1 {
		t.Errorf("report:\n%s", report)
	}
	q.Us.Owners = []string{owner} // without its owner the volume is one too, and so is the attachment to a living instance
	if report, err = oracle.Judge(e, q); err != nil {
		t.Fatal(err)
	}
	if n := len(report.Of(oracle.Orphan)); n != 3 {
		t.Errorf("%d orphans:\n%s", n, report)
	}
}

func TestRuleWithoutOwner(t *testing.T) {
	l := newLab(t)
	add := func(who, description string) {
		l.call(who, http.MethodPost, "/20160918/networkSecurityGroups/"+l.group+"/actions/addSecurityRules", object{
			"securityRules": []object{{"direction": "INGRESS", "protocol": "6", "source": "0.0.0.0/0", "description": description}},
		})
	}
	add(terraform, "theirs")
	l.clean(nil)
	l.before = l.region.Snapshot()
	add(me, "for Service "+owner)
	l.clean(nil)
	add(me, "for whom?")
	report := l.ask(nil)
	if list := report.Of(oracle.Orphan); len(list) != 1 || list[0].Name != "for whom?" || list[0].Type != "security rule" {
		t.Errorf("report:\n%s", report)
	}
}

func TestDuplicates(t *testing.T) {
	l := newLab(t)
	second := l.newLB(owner, nil)
	f := l.finds(nil, oracle.Duplicate, second, "owner "+owner+" has 2", l.balancer, second)
	madeBy(t, f, "CreateLoadBalancer", "CreateLoadBalancer")
	l.call(me, http.MethodDelete, balancers+"/"+second, nil)
	l.clean(nil)

	other := l.newNLB(owner) // of the other kind, it is a second balancer of the Service all the same
	l.finds(nil, oracle.Duplicate, other)
}

// TestSecurityGroupOfAService knows the marks of the old implementation.
func TestSecurityGroupOfAService(t *testing.T) {
	l := newLab(t)
	id := l.create("/20160918/networkSecurityGroups", object{
		"compartmentId": l.compartment, "vcnId": l.vcn, "freeformTags": object{"CreatedBy": "CCM", "ServiceUid": deadOwner},
	})
	l.clean(owners(deadOwner))
	l.finds(nil, oracle.Orphan, id, "its owner "+deadOwner+" does not exist")
	by := func(q *oracle.Question) { q.Us.Principals = []string{"ocid1.user.oc1..somebody"} } // the mark alone is enough
	l.finds(by, oracle.Orphan, id)
}

// TestTwoClusters: another cluster may know an owner of the same name.
func TestTwoClusters(t *testing.T) {
	l := newLab(t)
	id := l.newLB(owner, object{"freeformTags": object{oracle.TagCluster: "cluster-2", oracle.TagOwner: owner}})
	l.clean(func(q *oracle.Question) { q.Us.Cluster = "" })
	f := l.finds(nil, oracle.Foreign, id, "it was not there before") // with our credentials
	madeBy(t, f, "CreateLoadBalancer")
	l.clean(func(q *oracle.Question) { q.Before = nil })
}
