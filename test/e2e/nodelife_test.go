// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster/nodes"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

const (
	// confirmed is longer than any wait after which the CCM takes an absence for confirmed.
	confirmed = 25 * time.Second

	// askOften makes the lifecycle controller look at nodes that are not ready without delay.
	askOften = "--node-monitor-period=1s"
)

// noFleet leaves it to the test to register nodes.
func noFleet() nodes.Options {
	return nodes.Options{Count: 1, Name: func(int) string { return "bystander" }, Initialized: true, ProviderID: func(int) string { return "kind://bystander" }}
}

// neverFor is never for a given time.
func (l *lab) neverFor(d time.Duration, what string, happened func() (bool, string)) {
	l.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if yes, seen := happened(); yes {
			l.t.Fatalf("%s: %s", what, seen)
		}
	}
}

// wantNodes waits for exactly these Nodes.
func (l *lab) wantNodes(names ...string) {
	l.t.Helper()
	slices.Sort(names)
	l.until("nodes are "+strings.Join(names, " "), func() (bool, string) {
		got := l.nodeNames()
		return slices.Equal(got, names), strings.Join(got, " ")
	})
}

// missing says which of these Nodes are not there.
func (l *lab) missing(names ...string) func() (bool, string) {
	return func() (bool, string) {
		got := l.nodeNames()
		gone := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(got, n) })
		return len(gone) > 0, "gone: " + strings.Join(gone, " ")
	}
}

func (l *lab) setReady(ready bool, names ...string) {
	l.t.Helper()
	if err := l.Nodes.SetReady(ready, names...); err != nil {
		l.t.Fatal(err)
	}
}

// TestC001PolicyTakenAway: a bare 404 deletes nothing and names the policy; a proof deletes exactly one Node; too many
// proofs at once are not believed.
func TestC001PolicyTakenAway(t *testing.T) {
	const all = 7
	l := newLab(t, testbed.Options{World: testbed.WorldOf(all)}).ready(askOften, "--oci-new-node-grace-period=1s")
	names := l.Nodes.Names()

	restore := l.Region.Deny(ocisim.Policy{ResourceType: "instances"})
	before := l.calls(operation("GetInstance"))
	l.setReady(false, names...)
	l.neverFor(confirmed, "deleted without a proof", l.missing(names...))
	for _, name := range names {
		l.event("default", name, "InstanceUnreadable", "404", "NotAuthorizedOrNotFound", "read instance-family", testbed.Compartment)
	}
	if l.calls(operation("GetInstance")) == before {
		t.Error("nobody asked for the instances, so the nodes were in no danger")
	}
	// Readable one by one, but not listed; and the other way round.
	for _, half := range []string{"ListInstances", "GetInstance"} {
		restore()
		restore = l.Region.Deny(ocisim.Policy{Operation: half})
		l.never("deleted without a proof, "+half+" denied", l.missing(names...))
	}
	restore()
	l.never("deleted after the policy returned", l.missing(names...))
	l.setReady(true, names...)

	// One is really terminated, and one is forgotten by the API: exactly these Nodes go.
	if err := l.Region.Foreign().TerminateInstance(testbed.InstanceID(0)); err != nil {
		t.Fatal(err)
	}
	l.setReady(false, names[0])
	l.wantNodes(names[1:]...)
	if err := l.Region.Foreign().Delete(testbed.InstanceID(1)); err != nil {
		t.Fatal(err)
	}
	l.setReady(false, names[1])
	l.wantNodes(names[2:]...)

	// Most instances seem to be absent at once: it is likelier that the question is wrong.
	for i := 2; i < all-1; i++ {
		if err := l.Region.Foreign().Delete(testbed.InstanceID(i)); err != nil {
			t.Fatal(err)
		}
	}
	l.setReady(false, names[2:]...)
	l.neverFor(confirmed, "deleted although most instances seem to be absent", l.missing(names[2:]...))
	l.event("default", names[2], "NodeDeletionPaused", testbed.InstanceID(2))
	l.event("kube-system", "cloud-controller-manager", "NodeDeletionPaused", "more than half")
	l.nothingWritten()
	l.onlyTheServiceAccount()
}

// TestC002OutageDeletesNothing: each kind of failure strikes one node's instance, whether many nodes are asked about, which
// costs lists, or a few.
func TestC002OutageDeletesNothing(t *testing.T) {
	const few = 3 // are asked for one by one
	faults := []ocisim.Fault{
		{Status: 500}, {Status: 503}, {Status: 401}, {Status: 404, Note: "and the list fails"}, {Drop: ocisim.BeforeApply}, {HalfBody: true},
		{Status: 429}, // the last, because it is waited for the longest
	}
	world := testbed.WorldOf(len(faults))
	l := newLab(t, testbed.Options{World: world}).ready(askOften, "--oci-new-node-grace-period=1s")
	names := l.Nodes.Names()
	remove := []func(){l.Region.Fault(ocisim.Fault{Operation: "ListInstances", Status: 503})}
	for i, f := range faults {
		f.Operation, f.Resource = "GetInstance", testbed.InstanceID(i)
		remove = append(remove, l.Region.Fault(f))
	}
	l.Region.ResetCalls()
	l.setReady(false, names...)
	l.neverFor(15*time.Second, "deleted because of a failed list", l.missing(names...))
	if lists := l.calls(func(c ocisim.Call) bool { return c.Operation == "ListInstances" && c.Fault != "" }); lists == 0 {
		t.Error("nobody asked for the list, so its failure proves nothing")
	}
	l.setReady(true, names...)
	for first := 0; first < len(names); first += few {
		group := names[first:min(first+few, len(names))]
		l.setReady(false, group...)
		// A round asks about all nodes before the next one begins, and the client tries for half a minute before it reports
		// most failures.
		for i := range group {
			l.until("question about "+group[i], func() (bool, string) {
				struck := l.calls(func(c ocisim.Call) bool { return c.Resource == testbed.InstanceID(first+i) && c.Fault != "" })
				return struck > 0, "nobody asked for it"
			})
		}
		l.neverFor(25*time.Second, "deleted because of a failure", l.missing(names...))
		l.setReady(true, group...)
	}
	l.setReady(false, names[0])
	for _, r := range remove {
		r()
	}
	if err := l.Region.Foreign().TerminateInstance(testbed.InstanceID(0)); err != nil {
		t.Fatal(err)
	}
	l.wantNodes(names[1:]...)
	l.onlyTheServiceAccount()
}

// TestC003InstanceStates: which state means gone, which means shut down; C004: a new node whose instance is not visible
// yet; and nodes of another cloud.
func TestC003InstanceStates(t *testing.T) {
	states := []struct {
		state          string
		gone, shutdown bool
	}{
		{state: "PROVISIONING"},
		{state: "STARTING"},
		{state: "RUNNING"},
		{state: "STOPPING", shutdown: true},
		{state: "STOPPED", shutdown: true},
		{state: "MOVING"},
		{state: "CREATING_IMAGE"},
		{state: "TERMINATING", gone: true},
		{state: "TERMINATED", gone: true},
		{state: "OF_THE_FUTURE"},
	}
	const stopped = 4
	l := newLab(t, testbed.Options{World: testbed.WorldOf(len(states))}).ready(askOften, "--node-status-update-frequency=2s")
	var want []string
	names := l.Nodes.Names()
	for i, s := range states {
		l.setState(i, s.state)
		if !s.gone {
			want = append(want, names[i])
		}
	}
	fresh := machine{name: "fresh", instance: onNodes("fresh", "10.0.10.240"), providerID: instanceID("fresh"), wantAddresses: []string{"InternalIP 10.0.10.240"}}
	for _, n := range []*v1.Node{fresh.kubelet(), machine{name: "aws", providerID: "aws:///us-east-1a/i-1"}.kubelet(), initialisedElsewhere("gce")} {
		n.Status.Conditions[0].Status = v1.ConditionFalse
		l.register(n)
		want = append(want, n.Name)
	}
	l.setReady(false, names...)
	l.wantNodes(want...)
	for i, s := range states {
		if s.shutdown {
			l.untilShutdown(names[i], true)
		}
	}
	l.neverFor(15*time.Second, "a node too many is gone", l.missing(want...))
	for i, s := range states {
		if !s.gone && !s.shutdown && hasTaint(l.getNode(names[i]), cloudproviderapi.TaintNodeShutdown) {
			t.Errorf("%s is marked as shut down in state %s", names[i], s.state)
		}
	}

	l.setState(stopped, "RUNNING")
	l.setReady(true, names[stopped])
	l.untilShutdown(names[stopped], false)
	l.setState(stopped, "TERMINATED")
	l.setReady(false, names[stopped])
	l.wantNodes(slices.DeleteFunc(want, func(n string) bool { return n == names[stopped] })...)

	l.Region.AddInstance(fresh.instance)
	l.wantNode(fresh)
	l.nothingWritten()
	l.onlyTheServiceAccount()
}

// initialisedElsewhere is a node of another cloud that its own controller has initialised.
func initialisedElsewhere(name string) *v1.Node {
	n := machine{name: name, providerID: "gce://project/zone/" + name}.kubelet()
	n.Spec.Taints = nil
	return n
}

func (l *lab) setState(i int, state string) {
	l.t.Helper()
	err := l.Region.Foreign().Instance(testbed.InstanceID(i), func(v *core.Instance) {
		v.LifecycleState = core.InstanceLifecycleStateEnum(state)
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) untilShutdown(name string, want bool) {
	l.t.Helper()
	l.until("shutdown taint of "+name, func() (bool, string) {
		got := hasTaint(l.getNode(name), cloudproviderapi.TaintNodeShutdown)
		return got == want, l.Events(l.ctx, "default", name)
	})
}
