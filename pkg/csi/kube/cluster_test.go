// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
)

const (
	testDriver = "blockvolume.csi.oraclecloud.com"
	claimUID   = "6f1c2c1e-7c0c-4d0b-9f2f-2f6f0a6b9c11"
	otherUID   = "6f1c2c1e-7c0c-4d0b-9f2f-2f6f0a6b9c12"
	instanceID = "ocid1.instance.oc1.iad.a"
)

// reactTo lets the API server answer whether something is allowed.
func reactTo(client *fake.Clientset, allow func(verb, resource string) bool) {
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		a := review.Spec.ResourceAttributes
		review.Status.Allowed = allow(a.Verb, a.Resource)
		return true, review, nil
	})
}

func everything(string, string) bool { return true }

func claim(name, uid string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(uid), CreationTimestamp: metav1.Unix(1000, 0), Annotations: map[string]string{"a": "b"},
	}}
}

func count(client *fake.Clientset, verb, resource string) int {
	n := 0
	for _, a := range client.Actions() {
		if a.Matches(verb, resource) {
			n++
		}
	}
	return n
}

// TestClaim covers C111: the claim of a volume is known with and without --extra-create-metadata.
func TestClaim(t *testing.T) {
	client := fake.NewClientset(claim("data", claimUID))
	reactTo(client, everything)
	c := NewCluster(client, testDriver)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !c.Synced() {
		t.Error("not synced after the start")
	}
	for name, test := range map[string]struct {
		volume, namespace, claim string
		known                    bool
	}{
		"by name and UID":                   {"csi-" + claimUID, "shop", "data", true},
		"by UID":                            {"csi-" + claimUID, "", "", true},
		"by UID, another prefix":            {"pvc-" + claimUID, "", "", true},
		"by name, the UID is cut short":     {"csi-6f1c2c1e", "shop", "data", true},
		"another claim under the name":      {"csi-" + otherUID, "shop", "data", false},
		"another UID":                       {"csi-" + otherUID, "", "", false},
		"another namespace, the same UID":   {"csi-" + claimUID, "", "data", true},
		"a name that says nothing":          {"sanity", "", "", false},
		"a claim that does not exist":       {"csi-6f1c2c1e", "shop", "dta", false},
		"a UID in the middle of the name":   {"csi-" + claimUID + "-x", "", "", false},
		"a claim that does not exist (UID)": {"csi-" + otherUID, "shop", "dta", false},
	} {
		got := c.Claim(t.Context(), test.volume, test.namespace, test.claim)
		if (got != nil) != test.known {
			t.Errorf("%s: %+v", name, got)
		} else if got != nil && (got.Name != "data" || got.Namespace != "shop" || got.UID != claimUID || got.Created.Unix() != 1000) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestOldRoles covers C113's side of the roles: what is not allowed is off, and no start waits for it.
func TestOldRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewClientset(claim("data", claimUID))
		reactTo(client, func(verb, _ string) bool { return verb == "list" })
		c := NewCluster(client, testDriver)
		if err := c.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if !c.Synced() {
			t.Error("waits for what is not allowed")
		}
		if got := c.Claim(ctx, "csi-"+claimUID, "", ""); got != nil {
			t.Errorf("claim %+v, without a cache", got)
		}
		if got := c.Claim(ctx, "csi-"+claimUID, "shop", "data"); got == nil {
			t.Error("a claim whose name is known can be read, and was not")
		}
		synctest.Wait()
		events, err := client.CoreV1().Events("").List(ctx, metav1.ListOptions{})
		if err != nil || len(events.Items) != 1 || events.Items[0].Reason != "PermissionMissing" || events.Items[0].InvolvedObject.Kind != "CSIDriver" ||
			!strings.Contains(events.Items[0].Message, "watch persistentvolumeclaims") {
			t.Errorf("events %+v (%v)", events.Items, err)
		}
		cancel()
		synctest.Wait()
	})
}

func TestNode(t *testing.T) {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{"oci.oraclecloud.com/compartment-id": "ocid1.compartment.oc1..c"}},
		Spec:       v1.NodeSpec{ProviderID: "oci://" + instanceID},
	}
	old := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}, Spec: v1.NodeSpec{ProviderID: instanceID + "2"}}
	young := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3"}}
	foreign := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n4"}, Spec: v1.NodeSpec{ProviderID: "kwok://n4"}}
	c := NewCluster(fake.NewClientset(node, old, young, foreign), testDriver)
	for name, want := range map[string]block.Node{
		"n1": {Name: "n1", InstanceID: instanceID, CompartmentID: "ocid1.compartment.oc1..c"},
		"n2": {Name: "n2", InstanceID: instanceID + "2"},
		"n3": {Name: "n3"},
		"n4": {Name: "n4"},
	} {
		if got, err := c.Node(t.Context(), name); err != nil || *got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := c.Node(t.Context(), "n5"); !errors.Is(err, block.ErrNoNode) {
		t.Errorf("no such node: %v", err)
	}
	nodes, err := c.Nodes(t.Context())
	if err != nil || len(nodes) != 4 {
		t.Errorf("nodes %v, %v", nodes, err)
	}
	for _, n := range nodes {
		if one, err := c.Node(t.Context(), n.Name); err != nil || *one != *n {
			t.Errorf("%s is %+v among all, and %+v alone (%v)", n.Name, n, one, err)
		}
	}
}

// TestListsOfNodesAreShared: many attachments that are refused at once cost one list.
func TestListsOfNodesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		c := NewCluster(client, testDriver)
		for range 20 {
			if _, err := c.Nodes(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := count(client, "list", "nodes"); n != 1 {
			t.Errorf("%d lists of nodes for 20 questions", n)
		}
		time.Sleep(nodesAge)
		client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewInternalError(errors.New("broken"))
		})
		if nodes, err := c.Nodes(t.Context()); err == nil {
			t.Errorf("a list that failed became %v", nodes)
		}
	})
}

func TestVolumeHandles(t *testing.T) {
	volume := func(name, driver string) *v1.PersistentVolume {
		pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if driver != "" {
			pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "ocid1.volume." + name}
		}
		return pv
	}
	client := fake.NewClientset(volume("a", testDriver), volume("b", "fss.csi.oraclecloud.com"), volume("c", ""), volume("d", testDriver))
	c := NewCluster(client, testDriver)
	got, err := c.VolumeHandles(t.Context())
	if slices.Sort(got); err != nil || !slices.Equal(got, []string{"ocid1.volume.a", "ocid1.volume.d"}) {
		t.Errorf("handles %v, %v", got, err)
	}
	client.PrependReactor("list", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumes"}, "", nil)
	})
	if got, err := c.VolumeHandles(t.Context()); err == nil {
		t.Errorf("a list that failed became %v", got)
	}
}

// TestWarningsAreJoined: what a sidecar asks for again every few seconds is one event.
func TestWarningsAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewClientset()
		reactTo(client, everything)
		c := NewCluster(client, testDriver)
		if err := c.Start(ctx); err != nil {
			t.Fatal(err)
		}
		pvc := &block.Claim{Namespace: "shop", Name: "data", UID: claimUID}
		for range 360 { // an hour
			c.Warn(ctx, pvc, "UnknownParameter", "vpusPerGb: did you mean vpusPerGB?")
			time.Sleep(10 * time.Second)
		}
		c.Warn(ctx, pvc, "UnknownParameter", strings.Repeat("ä", maxMessage))
		c.Warn(ctx, nil, "UnknownParameter", "nobody's")
		synctest.Wait()
		events, err := client.CoreV1().Events("shop").List(ctx, metav1.ListOptions{})
		if err != nil || len(events.Items) != 2 {
			t.Fatalf("%d events (%v), want 2", len(events.Items), err)
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Kind != "PersistentVolumeClaim" || e.InvolvedObject.UID != claimUID || len(e.Message) > maxMessage {
				t.Errorf("event %+v", e)
			}
		}
		if writes := count(client, "create", "events") + count(client, "patch", "events"); writes > 20 {
			t.Errorf("%d writes of events in an hour", writes)
		}
		cancel()
		synctest.Wait()
	})
}
