// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// world is an API server with an empty cluster, inside a synctest bubble.
type world struct {
	*fake.Clientset
	t *testing.T
}

func newWorld(t *testing.T) *world {
	client := fake.NewClientset()
	// The tracker gives out no UIDs.
	client.PrependReactor("create", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		node := action.(clienttesting.CreateAction).GetObject().(*v1.Node)
		node.UID = types.UID("uid-" + node.Name)
		return false, nil, nil
	})
	return &world{client, t}
}

func (w *world) start(options Options) *Fleet {
	w.t.Helper()
	f, err := Start(w.t.Context(), w, options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(f.Stop)
	return f
}

func (w *world) node(name string) *v1.Node {
	w.t.Helper()
	node, err := w.CoreV1().Nodes().Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return node
}

func (w *world) ready(name string) v1.NodeCondition {
	w.t.Helper()
	for _, condition := range w.node(name).Status.Conditions {
		if condition.Type == v1.NodeReady {
			return condition
		}
	}
	w.t.Fatalf("%s has no Ready condition", name)
	return v1.NodeCondition{}
}

func (w *world) renewed(name string) time.Time {
	w.t.Helper()
	lease, err := w.CoordinationV1().Leases(v1.NamespaceNodeLease).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return lease.Spec.RenewTime.Time
}

// writes counts the writes since the last call, by verb and resource.
func (w *world) writes() map[string]int {
	counts := map[string]int{}
	for _, action := range w.Actions() {
		if action.GetVerb() != "get" {
			counts[action.GetVerb()+" "+action.GetResource().Resource]++
		}
	}
	w.ClearActions()
	return counts
}

// check stops at the first error, for calls that must work.
func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f := w.start(Options{
			Count: 2,
			Name:  func(i int) string { return fmt.Sprintf("worker-%d", i) },
			NodeIP: func(i int) string {
				return []string{"10.0.0.7,fd00::7", ""}[i]
			},
			ProviderID: func(i int) string { return []string{"oci://ocid1.instance.oc1..a", ""}[i] },
			Labels:     func(i int) map[string]string { return map[string]string{"index": fmt.Sprint(i)} },
			Images:     50,
		})
		if diff := cmp.Diff([]string{"worker-0", "worker-1"}, f.Names()); diff != "" {
			t.Errorf("Names (-want +got):\n%s", diff)
		}

		first, second := w.node("worker-0"), w.node("worker-1")
		wantAddresses := []v1.NodeAddress{
			{Type: v1.NodeInternalIP, Address: "10.0.0.7"},
			{Type: v1.NodeInternalIP, Address: "fd00::7"},
			{Type: v1.NodeHostName, Address: "worker-0"},
		}
		if diff := cmp.Diff(wantAddresses, first.Status.Addresses); diff != "" {
			t.Errorf("addresses with a node IP (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]v1.NodeAddress{{Type: v1.NodeHostName, Address: "worker-1"}}, second.Status.Addresses); diff != "" {
			t.Errorf("addresses without a node IP (-want +got):\n%s", diff)
		}
		const annotation = "alpha.kubernetes.io/provided-node-ip"
		if got := first.Annotations[annotation]; got != "10.0.0.7,fd00::7" {
			t.Errorf("annotation %s = %q", annotation, got)
		}
		if got, ok := second.Annotations[annotation]; ok {
			t.Errorf("annotation %s = %q without a node IP", annotation, got)
		}
		if first.Spec.ProviderID != "oci://ocid1.instance.oc1..a" || second.Spec.ProviderID != "" {
			t.Errorf("provider IDs = %q, %q", first.Spec.ProviderID, second.Spec.ProviderID)
		}
		if first.Labels["index"] != "0" || first.Labels[v1.LabelHostname] != "worker-0" {
			t.Errorf("labels = %v", first.Labels)
		}
		if names := first.Status.Images[49].Names; len(first.Status.Images) != 50 || len(names) != 2 {
			t.Errorf("%d images, the last one %v", len(first.Status.Images), names)
		}
		wantTaints := []v1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: v1.TaintEffectNoSchedule}}
		if diff := cmp.Diff(wantTaints, first.Spec.Taints); diff != "" {
			t.Errorf("taints (-want +got):\n%s", diff)
		}
		if ready := w.ready("worker-0"); ready.Status != v1.ConditionTrue {
			t.Errorf("Ready = %+v", ready)
		}

		lease, err := w.CoordinationV1().Leases(v1.NamespaceNodeLease).Get(t.Context(), "worker-0", metav1.GetOptions{})
		w.check(err)
		wantOwner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "worker-0", UID: "uid-worker-0"}}
		if diff := cmp.Diff(wantOwner, lease.OwnerReferences); diff != "" {
			t.Errorf("owner of the lease (-want +got):\n%s", diff)
		}
	})
}

func TestInitializedNodesHaveNoTaint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(Options{Count: 1, Initialized: true})
		if taints := w.node("node-0000").Spec.Taints; len(taints) != 0 {
			t.Errorf("taints = %v", taints)
		}
	})
}

func TestHeartbeatsAreSparseAndRegular(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count, minutes = 20, 60
		w := newWorld(t)
		f := w.start(Options{Count: count, RenewInterval: 2 * time.Minute, StatusInterval: 10 * time.Minute})
		w.writes()

		most := 0
		total := map[string]int{}
		for range minutes {
			time.Sleep(time.Minute)
			synctest.Wait()
			inMinute := 0
			for kind, n := range w.writes() {
				total[kind] += n
				inMinute += n
			}
			most = max(most, inMinute)
		}
		// One renewal every two minutes and one report every ten, give or take the
		// first interval, which is shortened to spread the fleet.
		want := map[string][2]int{
			"update leases": {count * (minutes/2 - 1), count * (minutes/2 + 1)},
			"patch nodes":   {count * (minutes/10 - 1), count * (minutes/10 + 1)},
		}
		for kind, n := range total {
			if bounds, known := want[kind]; !known || n < bounds[0] || n > bounds[1] {
				t.Errorf("%d × %s in an hour, want between %d and %d", n, kind, bounds[0], bounds[1])
			}
		}
		if len(total) != len(want) {
			t.Errorf("writes = %v, want %v", total, want)
		}
		if most >= count { // on average 12 a minute
			t.Errorf("%d writes in one minute: the fleet beats in step", most)
		}
		for _, name := range f.Names() {
			if age := time.Since(w.renewed(name)); age > 2*time.Minute {
				t.Errorf("lease of %s is %s old", name, age)
			}
		}
	})
}

func TestReadyOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f := w.start(Options{Count: 2})
		time.Sleep(time.Minute)

		w.check(f.SetReady(false, "node-0001"))
		synctest.Wait()
		ready := w.ready("node-0001")
		if ready.Status != v1.ConditionFalse || ready.Reason != "KubeletNotReady" || !ready.LastTransitionTime.Time.Equal(time.Now()) {
			t.Errorf("Ready = %+v, want False since now", ready)
		}
		if other := w.ready("node-0000"); other.Status != v1.ConditionTrue {
			t.Errorf("the other node: Ready = %+v", other)
		}
		renewed := w.renewed("node-0001")
		time.Sleep(time.Minute)
		if !w.renewed("node-0001").After(renewed) {
			t.Error("a node that is not ready no longer renews its lease")
		}

		w.check(f.SetReady(true, "node-0001"))
		synctest.Wait()
		if ready := w.ready("node-0001"); ready.Status != v1.ConditionTrue || !ready.LastTransitionTime.Time.Equal(time.Now()) {
			t.Errorf("Ready = %+v, want True since now", ready)
		}
		if err := f.SetReady(false, "node-0000", "nobody"); !errors.Is(err, ErrUnknownNode) {
			t.Errorf("SetReady of an unknown node: %v, want ErrUnknownNode", err)
		}
	})
}

func TestHaltAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f := w.start(Options{Count: 2})
		w.check(f.Halt("node-0000"))
		synctest.Wait()
		halted := time.Now()
		time.Sleep(10 * time.Minute)
		if renewed := w.renewed("node-0000"); renewed.After(halted) {
			t.Errorf("halted at %s, lease renewed at %s", halted, renewed)
		}
		if age := time.Since(w.renewed("node-0001")); age > 10*time.Second {
			t.Errorf("lease of the other node is %s old", age)
		}

		// What a node lifecycle controller does meanwhile is undone by the boot.
		_, err := w.CoreV1().Nodes().Patch(t.Context(), "node-0000", types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}`), metav1.PatchOptions{}, "status")
		w.check(err)
		w.check(f.Resume("node-0000"))
		synctest.Wait()
		if ready := w.ready("node-0000"); ready.Status != v1.ConditionTrue || !ready.LastTransitionTime.Time.Equal(time.Now()) {
			t.Errorf("after Resume: Ready = %+v, want True since now", ready)
		}
		if renewed := w.renewed("node-0000"); !renewed.Equal(time.Now()) {
			t.Errorf("after Resume the lease is from %s", renewed)
		}
	})
}

func TestDeletedNodeComesBackOnlyWithBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f := w.start(Options{Count: 1})
		const name = "node-0000"
		w.check(w.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}))
		w.check(w.CoordinationV1().Leases(v1.NamespaceNodeLease).Delete(t.Context(), name, metav1.DeleteOptions{}))
		time.Sleep(time.Hour)
		synctest.Wait()
		if _, err := w.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Fatalf("the deleted node: %v, want that it does not exist", err)
		}
		w.check(f.Resume(name))
		synctest.Wait()
		if ready := w.ready(name); ready.Status != v1.ConditionTrue {
			t.Errorf("Ready = %+v", ready)
		}
		if renewed := w.renewed(name); !renewed.Equal(time.Now()) {
			t.Errorf("the lease is from %s", renewed)
		}
	})
}

func TestLostLeaseIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(Options{Count: 1})
		w.check(w.CoordinationV1().Leases(v1.NamespaceNodeLease).Delete(t.Context(), "node-0000", metav1.DeleteOptions{}))
		time.Sleep(time.Minute)
		synctest.Wait()
		if age := time.Since(w.renewed("node-0000")); age > 10*time.Second {
			t.Errorf("the new lease is %s old", age)
		}
	})
}

func TestOutageIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		begin := time.Now()
		outage := func(clienttesting.Action) (bool, runtime.Object, error) {
			if time.Since(begin) < 5*time.Second {
				return true, nil, errors.New("connection refused")
			}
			return false, nil, nil
		}
		w.PrependReactor("*", "nodes", outage)
		w.PrependReactor("*", "leases", outage)
		f := w.start(Options{Count: 3}) // returns when all are registered
		if _, err := w.CoreV1().Nodes().Get(t.Context(), "node-0002", metav1.GetOptions{}); err != nil {
			t.Errorf("after the outage: %v", err)
		}
		if names := f.Names(); len(names) != 3 {
			t.Errorf("Names = %v", names)
		}
	})
}

func TestRegistrationFails(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	for name, test := range map[string]struct {
		reaction error
		want     func(error) bool
	}{
		"refused": {
			apierrors.NewForbidden(nodes, "node-0000", errors.New("not you")), apierrors.IsForbidden,
		},
		"not in time": {
			errors.New("connection refused"), func(err error) bool { return errors.Is(err, context.DeadlineExceeded) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.PrependReactor("create", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, test.reaction
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := Start(ctx, w, Options{Count: 1}); !test.want(err) {
					t.Errorf("Start = %v", err)
				}
			})
		})
	}
}

func TestAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f := w.start(Options{Count: 1, Name: func(i int) string { return fmt.Sprintf("n%d", i%3) }})
		w.check(f.Add(t.Context(), 2))
		if diff := cmp.Diff([]string{"n0", "n1", "n2"}, f.Names()); diff != "" {
			t.Errorf("Names (-want +got):\n%s", diff)
		}
		if ready := w.ready("n2"); ready.Status != v1.ConditionTrue {
			t.Errorf("Ready = %+v", ready)
		}
		if err := f.Add(t.Context(), 1); err == nil {
			t.Error("a second node of the same name was accepted")
		}
	})
}
