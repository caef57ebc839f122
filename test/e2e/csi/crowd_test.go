// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// volumeNames are those of all PersistentVolumes.
func (l *lab) volumeNames() map[string]bool {
	l.t.Helper()
	list, err := l.Cluster.Client().CoreV1().PersistentVolumes().List(l.ctx, metav1.ListOptions{})
	l.must(err)
	names := map[string]bool{}
	for i := range list.Items {
		names[list.Items[i].Name] = true
	}
	return names
}

// TestCrowd: claims in a region whose answers are late or get lost, whose lists are short and miss what is new. The controller is
// killed while the volumes are made; half of the later ones are deleted meanwhile. In the end there are as many volumes as the API has, and no
// other ones: lab.end looks. C084.
//
// The provisioner keeps only in its memory that a claim which is gone may still get a volume, and it ends with the controller: such
// volumes are found by the controller's notes.
func TestCrowd(t *testing.T) {
	durations := testbed.StorageDurations()
	durations["volume.create"] = ocisim.Range{Min: 500 * time.Millisecond, Max: 8 * time.Second}
	l := newLab(t, setting{
		region:  ocisim.Options{Durations: durations, PageSize: 20, ShortPages: 0.2, EventualReads: 2},
		storage: testbed.StorageOptions{Flags: map[string][]string{"csi-provisioner": {"--timeout=5s"}}},
	})
	l.class("at-once", nil)
	late := l.Region.Fault(ocisim.Fault{Operation: "CreateVolume", Chance: 0.2, Applied: true, Delay: 7 * time.Second})
	lossy := l.Region.Fault(ocisim.Fault{Operation: "CreateVolume", Chance: 0.1, Drop: ocisim.AfterApply})

	const killed, deleted = 40, 60
	for i := range killed {
		l.claim(fmt.Sprintf("killed-%d", i), "at-once", "50Gi", nil)
	}
	for range 3 {
		time.Sleep(1500 * time.Millisecond)
		l.storage.Kill()
		l.must(l.storage.StartController(l.ctx))
	}
	l.until("every claim is bound", func() (bool, string) {
		n := len(l.volumeNames())
		return n == killed, fmt.Sprintf("%d volumes", n)
	})
	for i := range deleted {
		l.claim(fmt.Sprintf("deleted-%d", i), "at-once", "50Gi", nil)
	}
	for i := range deleted / 2 {
		l.deleteClaim(fmt.Sprintf("deleted-%d", 2*i))
		if i == deleted/6 || i == deleted/3 {
			l.storage.Kill()
			l.must(l.storage.StartController(l.ctx))
		}
		time.Sleep(time.Duration(i) * 5 * time.Millisecond)
	}
	late()
	lossy()
	l.until("every claim that is left is bound, and no volume is without", func() (bool, string) {
		claims, err := l.Cluster.Client().CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).List(l.ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		open := 0
		for i := range claims.Items {
			if claims.Items[i].Status.Phase != v1.ClaimBound {
				open++
			}
		}
		n := len(l.volumeNames())
		return open == 0 && n == len(claims.Items), fmt.Sprintf("%d claims, %d of them not bound; %d volumes", len(claims.Items), open, n)
	})
}

// TestThrottled: two hundred claims at once, with the budgets that third parties have observed. All are bound without a failed
// call of more than the budget, in a time and with a number of calls that grow with the number of claims; meanwhile another volume
// is attached and detached. C111.
func TestThrottled(t *testing.T) {
	l := newLab(t, setting{region: ocisim.Options{
		PageSize: 100, Read: ocisim.Rate{PerSecond: 20, Burst: 20}, Write: ocisim.Rate{PerSecond: 10, Burst: 10},
	}})
	l.class("at-once", nil)
	l.class("on-node-1", nil, testbed.Zone(0))
	volume, other := l.onNodeOf("noisy-neighbour", "on-node-1", 0)
	l.attached(other)
	before := len(l.Region.Calls())
	const many = 200
	name := func(i int) string { return fmt.Sprintf("throttled-%d", i) }
	for i := range many {
		l.claim(name(i), "at-once", "50Gi", nil)
	}
	began := time.Now()
	l.detached(other)
	if took := time.Since(began); took > 45*time.Second {
		l.t.Errorf("a volume was detached after %s while others were made", took)
	}
	if n := len(l.attachmentsOf(volume.Spec.CSI.VolumeHandle)); n > 0 {
		l.t.Errorf("%d attachments", n)
	}
	l.until("all are bound", func() (bool, string) {
		n := len(l.volumeNames())
		return n == many+1, fmt.Sprintf("%d volumes", n)
	})
	calls, refused := 0, 0
	for _, c := range l.Region.Calls()[before:] {
		calls++
		if c.Status == 429 {
			refused++
		}
	}
	t.Logf("%d claims: %d calls, %d of them refused for the budget, in %s", many, calls, refused, time.Since(began).Round(time.Second))
	if calls > 6*many {
		l.t.Errorf("%d calls for %d volumes", calls, many)
	}
}

// onNodeOf is onNode with another class.
func (l *lab) onNodeOf(claim, class string, node int) (volume *v1.PersistentVolume, attachment string) {
	l.t.Helper()
	l.claim(claim, class, "50Gi", nil)
	volume = l.bound(claim)
	return volume, l.attach(volume, testbed.NodeName(node))
}
