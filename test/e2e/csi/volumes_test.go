// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// slowUpload is long enough for a snapshot to be seen before it is ready.
const slowUpload = 4 * time.Second

// TestVolumes: what users do with volumes, with the shipped manifests, all beside each other.
func TestVolumes(t *testing.T) {
	durations := testbed.StorageDurations()
	durations["volumebackup.upload"] = ocisim.Range{Min: slowUpload, Max: slowUpload}
	l := newLab(t, setting{region: ocisim.Options{Durations: durations}})
	l.class("at-once", nil)
	l.class("on-node-1", nil, testbed.Zone(0))
	l.snapshotClass("incremental", map[string]any{"backupType": "incremental"})
	l.parallel(map[string]func(*lab){
		"life":        life,
		"sizes":       sizes,
		"block":       block,
		"shared":      shared,
		"snapshot":    snapshot,
		"clone":       clone,
		"attributes":  attributes,
		"group":       group,
		"tags":        tags,
		"parameters":  parameters,
		"deleted":     deleted,
		"attachments": attachments,
	})
	l.nothingForbidden()
}

// life: a pod has a volume of the shipped default class; it is made where the pod can run, attached to its node, expanded although
// the answer of the cloud is lost, detached when the pod is gone, and deleted with its claim. C081, C082.
func life(l *lab) {
	l.claim("life", shipped, "60Gi", nil)
	l.never("a volume that waits for its first consumer is made", func() (bool, string) {
		c := l.getClaim("life")
		return c.Spec.VolumeName != "", c.Spec.VolumeName
	})
	l.pod("life", "life")
	node := l.scheduled("life")
	volume := l.bound("life")
	cloud := l.cloudVolume(volume)
	zone := l.zoneOf(node)
	if !strings.HasSuffix(*cloud.AvailabilityDomain, zone) || *cloud.SizeInGBs != 60 || *cloud.DisplayName != testbed.VolumeName(l.getClaim("life")) {
		l.t.Errorf("volume %s of %d GB in %s; the node is in %s", *cloud.DisplayName, *cloud.SizeInGBs, *cloud.AvailabilityDomain, zone)
	}
	wantZones(l, volume, zone)
	want := map[string]string{"attachment-type": "", "needResize": "false", "newSize": "", "vpusPerGB": "10"}
	got := map[string]string{}
	for key := range want {
		value, there := volume.Spec.CSI.VolumeAttributes[key]
		if got[key] = value; !there {
			got[key] = "missing"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		l.t.Errorf("attributes of the volume (-want +got):\n%s", diff)
	}
	attachment := l.attachmentOf(volume.Name, node)
	for _, key := range []string{"attachment-type", "iscci_iqn", "iscsi_ip", "iscsi_port", "device"} {
		if attachment.Status.AttachmentMetadata[key] == "" {
			l.t.Errorf("no %s in the publish context %v", key, attachment.Status.AttachmentMetadata)
		}
	}
	l.expand("life", volume, "70Gi")
	l.podGone("life")
	l.until("the volume is detached", func() (bool, string) {
		list := l.attachmentsOf(*cloud.Id)
		return len(list) == 0, fmt.Sprint(len(list))
	})
	l.release("life")
	if v := l.cloudVolume(volume); v.LifecycleState != core.VolumeLifecycleStateTerminated && v.LifecycleState != core.VolumeLifecycleStateTerminating {
		l.t.Errorf("the volume of a deleted claim is %s", v.LifecycleState)
	}
}

// expand lets a claim grow, and the answer of the cloud get lost. C081: the volume has exactly the new size, never 70 bytes, and
// kubelet is asked to grow the file system.
func (l *lab) expand(claim string, volume *v1.PersistentVolume, size string) {
	l.t.Helper()
	id := volume.Spec.CSI.VolumeHandle
	defer l.Region.Fault(ocisim.Fault{Operation: "UpdateVolume", Resource: id, Nth: 1, Drop: ocisim.AfterApply})()
	l.grow(claim, size)
	l.until("the volume has grown", func() (bool, string) {
		got := l.capacity(volume.Name)
		return got == size, got + "; " + l.Events(l.ctx, v1.NamespaceDefault, claim)
	})
	l.until("kubelet is asked to grow the file system", func() (bool, string) {
		status := l.getClaim(claim).Status
		for _, c := range status.Conditions {
			if c.Type == v1.PersistentVolumeClaimFileSystemResizePending && c.Status == v1.ConditionTrue {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%+v", status)
	})
	if got := fmt.Sprintf("%dGi", *l.cloudVolume(volume).SizeInGBs); got != size {
		l.t.Errorf("the cloud's volume has %s, want %s", got, size)
	}
}

func (l *lab) zoneOf(node string) string {
	for i := range l.World.Instances {
		if testbed.NodeName(i) == node {
			return testbed.Zone(i)
		}
	}
	return "unknown"
}

// wantZones checks that a volume can be used in its availability domain, under either key.
func wantZones(l *lab, volume *v1.PersistentVolume, zone string) {
	l.t.Helper()
	keys := map[string]bool{}
	if volume.Spec.NodeAffinity == nil {
		l.t.Fatal("the volume may be used anywhere")
	}
	for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			keys[e.Key] = len(e.Values) == 1 && e.Values[0] == zone
		}
	}
	want := map[string]bool{v1.LabelTopologyZone: true, v1.LabelFailureDomainBetaZone: true}
	if diff := cmp.Diff(want, keys); diff != "" {
		l.t.Errorf("keys of the volume's topology (-want +got):\n%s", diff)
	}
}

// sizes: small and odd claims get a volume, and the API says how large it is. C083.
func sizes(l *lab) {
	for name, c := range map[string]struct{ asked, want string }{
		"one": {"1Gi", "50Gi"}, "decimal": {"60G", "56Gi"}, "odd": {"51300Mi", "51Gi"},
	} {
		name = "size-" + name
		l.claim(name, "at-once", c.asked, nil)
		volume := l.bound(name)
		if got := l.capacity(volume.Name); got != c.want || fmt.Sprintf("%dGi", *l.cloudVolume(volume).SizeInGBs) != c.want {
			l.t.Errorf("%s: a volume of %s, in the cloud %d GB; want %s", c.asked, got, *l.cloudVolume(volume).SizeInGBs, c.want)
		}
		l.release(name)
	}
	l.claim("size-huge", "at-once", "33Ti", nil)
	l.event("size-huge", "ProvisioningFailed", "OutOfRange")
	if list := l.named(testbed.VolumeName(l.getClaim("size-huge"))); len(list) > 0 {
		l.t.Errorf("a volume was made: %s", *list[0].DisplayName)
	}
	l.deleteClaim("size-huge")
}

// block: a raw block volume needs nothing of kubelet to be larger. C081.
func block(l *lab) {
	l.claim("block", "at-once", "50Gi", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = ptr.To(v1.PersistentVolumeBlock) })
	volume := l.bound("block")
	l.grow("block", "55Gi")
	l.until("the claim has its new size", func() (bool, string) {
		size := l.getClaim("block").Status.Capacity[v1.ResourceStorage]
		return size.String() == "55Gi", size.String() + "; " + l.Events(l.ctx, v1.NamespaceDefault, "block")
	})
	if got := l.capacity(volume.Name); got != "55Gi" {
		l.t.Errorf("the volume has %s", got)
	}
	l.release("block")
}

// shared: a raw block volume of many writers is attached to two nodes at once; a file system of many writers is refused. C103.
func shared(l *lab) {
	l.claim("shared", "at-once", "50Gi", func(c *v1.PersistentVolumeClaim) {
		c.Spec.VolumeMode = ptr.To(v1.PersistentVolumeBlock)
		c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteMany}
	})
	volume := l.bound("shared")
	// Any node of its availability domain would do; the region lets a volume be attached only there.
	one := l.nodesIn(*l.cloudVolume(volume).AvailabilityDomain)
	if len(one) == 0 {
		l.t.Fatal("no node where the volume is")
	}
	a := l.attach(volume, one[0])
	l.attached(a)
	for _, x := range l.attachmentsOf(volume.Spec.CSI.VolumeHandle) {
		if x.GetIsShareable() == nil || !*x.GetIsShareable() {
			l.t.Errorf("the attachment %s cannot be shared", *x.GetId())
		}
	}
	l.detached(a)
	l.release("shared")

	l.claim("shared-files", "at-once", "50Gi", func(c *v1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteMany}
	})
	l.event("shared-files", "ProvisioningFailed", "InvalidArgument")
	l.deleteClaim("shared-files")
}

// nodesIn are the nodes of an availability domain.
func (l *lab) nodesIn(domain string) []string {
	var list []string
	for i := range l.World.Instances {
		if strings.HasSuffix(domain, testbed.Zone(i)) {
			list = append(list, testbed.NodeName(i))
		}
	}
	return list
}
