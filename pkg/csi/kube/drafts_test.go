// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
)

// TestDraftsInAConfigMap: what is kept is there for the next process, with what has become of it.
func TestDraftsInAConfigMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(claim("data", claimUID), &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "csi-" + otherUID}})
		reactTo(client, everything)
		c := NewCluster(client, testDriver)
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		d, err := c.Drafts(t.Context())
		if err != nil || d == nil {
			t.Fatal(d, err)
		}
		if got, err := d.List(t.Context()); err != nil || len(got) != 0 {
			t.Errorf("before anything is kept: %v, %v", got, err)
		}
		gone := "csi-" + strings.Replace(claimUID, "6f", "7f", 1)
		for _, name := range []string{"csi-" + claimUID, "csi-" + otherUID, gone, "by-hand"} {
			if err := d.Keep(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		if d, err = draftsOfNextProcess(t, client); err != nil {
			t.Fatal(err)
		}
		got, err := d.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, func(a, b block.Draft) int { return strings.Compare(a.Name, b.Name) })
		if diff := cmp.Diff([]block.Draft{{Name: "csi-" + claimUID, HasClaim: true}, {Name: "csi-" + otherUID, HasVolume: true}, {Name: gone}}, got); diff != "" {
			t.Error(diff)
		}
		if err := d.Drop(t.Context(), gone, "csi-"+otherUID); err != nil {
			t.Fatal(err)
		}
		if got, err = d.List(t.Context()); err != nil || len(got) != 1 {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// TestDraftsTrustNoOldCache: a watch that hangs behind must not make a claim look gone: its volume would be deleted.
func TestDraftsTrustNoOldCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		reactTo(client, everything)
		client.PrependWatchReactor("persistentvolumeclaims", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, watch.NewFake(), nil // which never tells anything
		})
		d, err := draftsOfNextProcess(t, client)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().PersistentVolumeClaims("shop").Create(t.Context(), claim("data", claimUID), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := d.Keep(t.Context(), "csi-"+claimUID); err != nil {
			t.Fatal(err)
		}
		if got, err := d.List(t.Context()); err != nil || len(got) != 1 || !got[0].HasClaim {
			t.Errorf("%v, %v", got, err)
		}
		client.PrependReactor("list", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("no answer")
		})
		if got, err := d.List(t.Context()); err == nil {
			t.Errorf("%v without a look at the claims", got)
		}
	})
}

// draftsOfNextProcess is what a process that starts later sees.
func draftsOfNextProcess(t *testing.T, client *fake.Clientset) (block.Drafts, error) {
	t.Helper()
	c := NewCluster(client, testDriver)
	if err := c.Start(t.Context()); err != nil {
		return nil, err
	}
	return c.Drafts(t.Context())
}

// TestDraftsAreWrittenTogether: a crowd of claims costs few writes.
func TestDraftsAreWrittenTogether(t *testing.T) {
	client := fake.NewClientset()
	reactTo(client, everything)
	gate := make(chan struct{})
	client.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-gate
		return false, nil, nil
	})
	c := NewCluster(client, testDriver)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	d, err := c.Drafts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 100 {
		name := "csi-" + claimUID[:len(claimUID)-2] + string("0123456789"[i/10]) + string("0123456789"[i%10])
		all.Go(func() {
			if err := d.Keep(t.Context(), name); err != nil {
				t.Error(err)
			}
		})
	}
	close(gate)
	all.Wait()
	kept, err := d.List(t.Context())
	if err != nil || len(kept) != 100 {
		t.Errorf("%d kept, %v", len(kept), err)
	}
	if n := count(client, "patch", "configmaps"); n > 60 {
		t.Errorf("%d writes for 100 names", n)
	}
}

// TestNoDraftsUnderOldRoles: without the permission there is no memory, and the operator is told.
func TestNoDraftsUnderOldRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		reactTo(client, func(_, resource string) bool { return resource != "configmaps" })
		d, err := draftsOfNextProcess(t, client)
		if err != nil || d != nil {
			t.Errorf("%v, %v", d, err)
		}
	})
}
