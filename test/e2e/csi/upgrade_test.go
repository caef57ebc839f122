// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// noGroups is what release 8.6 of the snapshotter, which the manifests of v1.35 name, has by default.
var noGroups = []string{"--feature-gates=CSIVolumeGroupSnapshot=false"}

// TestManifestsOfV135: under the flags, the environment and the role of v1.35 everything is done that was done there. What the
// role does not allow is not tried over and over, and does not hold up anything.
func TestManifestsOfV135(t *testing.T) {
	l := newLab(t, setting{storage: testbed.StorageOptions{
		Manifests: testbed.OldStorage,
		Flags:     map[string][]string{"csi-snapshotter": noGroups, "snapshot-controller": noGroups},
	}})
	l.class("at-once", nil)
	l.snapshotClass("full", map[string]any{"backupType": "full"})

	l.claim("old", shipped, "50Gi", nil)
	l.pod("old", "old")
	node := l.scheduled("old")
	volume := l.bound("old")
	l.attachmentOf(volume.Name, node)
	l.expand("old", volume, "60Gi")
	l.snapshot("old", "full", "old")
	l.ready(testbed.VolumeSnapshots, "old")
	l.claim("restored", "at-once", "60Gi", from("VolumeSnapshot", "old"))
	l.bound("restored")
	l.claim("clone", "at-once", "60Gi", from("PersistentVolumeClaim", "restored"))
	l.bound("clone")
	l.removed(testbed.VolumeSnapshots, "old")
	l.release("clone")
	l.release("restored")
	l.podGone("old")
	l.until("the volume is detached", func() (bool, string) {
		n := len(l.attachmentsOf(volume.Spec.CSI.VolumeHandle))
		return n == 0, fmt.Sprint(n)
	})
	l.release("old")

	// A key that is nearly one of ours: what cannot be told on the claim, since the role does not allow it or the provisioner does
	// not name the claim, is in the log.
	l.class("typo", map[string]string{"VpusPerGB": "20"})
	l.claim("typo", "typo", "50Gi", nil)
	l.bound("typo")
	l.until("the log tells of the key", func() (bool, string) {
		return strings.Contains(l.read(l.storage.Logs()[0]), "VpusPerGB"), "nothing of it"
	})
	l.release("typo")
	l.wantForbidden(3)
}

// wantForbidden checks that our controller was refused few requests at the API server: a try, not a loop.
func (l *lab) wantForbidden(most int) {
	l.t.Helper()
	events, err := l.Cluster.AuditLog().Select(cluster.AuditFilter{})
	l.must(err)
	var refused []string
	for _, e := range events {
		if strings.HasPrefix(e.UserAgent, "oci-csi-controller-driver/") && e.ResponseStatus != nil && e.ResponseStatus.Code == 403 {
			refused = append(refused, e.Verb+" "+e.RequestURI)
		}
	}
	if len(refused) > most {
		l.t.Errorf("%d requests were refused: %s", len(refused), strings.Join(refused, ", "))
	}
}

// nothingForbidden checks that nothing that our controller or a sidecar has asked for was refused.
func (l *lab) nothingForbidden() {
	l.t.Helper()
	events, err := l.Cluster.AuditLog().Select(cluster.AuditFilter{User: "system:serviceaccount:kube-system:" + l.storage.Account})
	l.must(err)
	if len(events) == 0 {
		l.t.Error("the audit log has no request of " + l.storage.Account)
	}
	seen := map[string]bool{}
	for _, e := range events {
		if e.ResponseStatus == nil || e.ResponseStatus.Code != 403 {
			continue
		}
		what := fmt.Sprintf("%s %s by %s", e.Verb, e.ObjectRef.Resource, strings.SplitN(e.UserAgent, "/", 2)[0])
		if !seen[what] {
			l.t.Errorf("refused: %s (%s)", what, e.RequestURI)
		}
		seen[what] = true
	}
}
