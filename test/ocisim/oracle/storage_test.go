// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
)

// create posts something as us, waits until it is made, and returns its identifier.
func (l *lab) create(uri string, body object) string {
	l.t.Helper()
	var made struct{ ID string }
	if err := json.Unmarshal(l.call(me, http.MethodPost, uri, body), &made); err != nil {
		l.t.Fatal(err)
	}
	l.region.Advance(2 * time.Minute)
	return made.ID
}

func owners(names ...string) func(*oracle.Question) {
	return func(q *oracle.Question) { q.Us.Owners, q.Settled = append(q.Us.Owners, names...), true }
}

func (l *lab) newVolume(tags object) string {
	l.t.Helper()
	return l.create("/20160918/volumes", object{
		"compartmentId": l.compartment, "availabilityDomain": l.region.Options().AvailabilityDomains[0], "displayName": "pvc-1",
		"sizeInGBs": 50, "freeformTags": tags,
	})
}

func (l *lab) attach(volume string) string {
	l.t.Helper()
	return l.create("/20160918/volumeAttachments", object{"type": "iscsi", "instanceId": l.instance, "volumeId": volume})
}

func TestVolumes(t *testing.T) {
	l := newLab(t)
	volume := l.newVolume(marks("pvc-1"))
	attachment := l.attach(volume)
	l.clean(owners("pvc-1"))
	report := l.ask(owners())
	if list := report.Of(oracle.Orphan); len(list) != 2 || list[0].Resource != volume || list[1].Resource != attachment {
		t.Errorf("want the volume and its attachment:\n%s", report)
	}
	l.call(me, http.MethodDelete, "/20160918/volumeAttachments/"+attachment, nil)
	l.region.Advance(time.Minute)
	l.finds(owners(), oracle.Orphan, volume)
	l.call(me, http.MethodDelete, "/20160918/volumes/"+volume, nil)
	l.region.Advance(time.Minute) // both are still listed
	l.clean(owners())

	restore := l.region.Fault(ocisim.Fault{Operation: "CreateVolume", FailWork: true})
	faulty := l.newVolume(marks("pvc-1"))
	restore()
	l.finds(owners("pvc-1"), oracle.Orphan, faulty, "[FAULTY]", "it failed")
}

// TestVolumeOfSomebodyElse: a volume that existed before may be attached while something names it, and must not be
// changed.
func TestVolumeOfSomebodyElse(t *testing.T) {
	l := newLab(t)
	volume := l.newVolume(nil)
	l.region.ResetCalls()
	l.before = l.region.Snapshot()
	attachment := l.attach(volume)
	l.finds(nil, oracle.Orphan, attachment, "on something that is not ours")
	l.clean(owners(volume))
	l.call(me, http.MethodPut, "/20160918/volumes/"+volume, object{"sizeInGBs": 100})
	l.region.Advance(time.Minute)
	f := l.finds(owners(volume), oracle.Foreign, volume, "sizeInGBs: 50 -> 100")
	madeBy(t, f, "UpdateVolume")
}

func TestFileSystems(t *testing.T) {
	l := newLab(t)
	domain := l.region.Options().AvailabilityDomains[0]
	system := l.create("/20171215/fileSystems", object{
		"compartmentId": l.compartment, "availabilityDomain": domain, "displayName": "pvc-1", "freeformTags": marks("pvc-1"),
	})
	target := l.create("/20171215/mountTargets", object{
		"compartmentId": l.compartment, "availabilityDomain": domain, "subnetId": l.subnet, "displayName": "pvc-1",
		"freeformTags": marks("pvc-1"),
	})
	set := ""
	for _, m := range l.region.MountTargets() {
		set = *m.ExportSetId
	}
	export := l.create("/20171215/exports", object{"exportSetId": set, "fileSystemId": system, "path": "/pvc-1"})
	l.clean(owners("pvc-1"))
	found := map[string]bool{}
	for _, f := range l.ask(owners()).Of(oracle.Orphan) {
		found[f.Resource] = true
	}
	// The export set came with the mount target and goes with it.
	if len(found) != 3 || !found[system] || !found[target] || !found[export] {
		t.Errorf("report:\n%s", l.ask(owners()))
	}
	l.call(me, http.MethodDelete, "/20171215/exports/"+export, nil)
	l.region.Advance(time.Minute)
	l.call(me, http.MethodDelete, "/20171215/mountTargets/"+target, nil)
	l.region.Advance(time.Minute)
	l.clean(owners("pvc-1"))
	l.finds(owners(), oracle.Orphan, system)
}

// TestGroupBackups: the backups that a group backup consists of carry its marks, and are no duplicates; they are orphans with it.
func TestGroupBackups(t *testing.T) {
	l := newLab(t)
	one, two := l.newVolume(marks("pvc-1")), l.newVolume(marks("pvc-2"))
	group := l.create("/20160918/volumeGroups", object{
		"compartmentId": l.compartment, "availabilityDomain": l.region.Options().AvailabilityDomains[0], "freeformTags": marks("group-1"),
		"sourceDetails": object{"type": "volumeIds", "volumeIds": []string{one, two}},
	})
	backup := l.create("/20160918/volumeGroupBackups", object{"volumeGroupId": group, "freeformTags": marks("group-1")})
	l.clean(owners("pvc-1", "pvc-2", "group-1"))
	found := map[string]bool{}
	for _, f := range l.ask(owners("pvc-1", "pvc-2")).Of(oracle.Orphan) {
		found[f.Type] = true
		if f.Type == "volume group backup" && f.Resource != backup {
			t.Errorf("an unknown group backup %s", f.Resource)
		}
	}
	if !found["volume group"] || !found["volume group backup"] || !found["volume backup"] {
		t.Errorf("orphans: %v", found)
	}
}
