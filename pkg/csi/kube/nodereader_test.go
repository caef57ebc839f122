// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/kube"
)

const (
	driverName = "blockvolume.csi.oraclecloud.com"
	unique     = "kubernetes.io/csi/" + driverName + "^"
)

// attachment is a VolumeAttachment; its name is that which kube-controller-manager gives it.
func attachment(name string, attached bool, device string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     storagev1.VolumeAttachmentStatus{Attached: attached, AttachmentMetadata: map[string]string{"device": device}},
	}
}

// TestAttachmentsOfANode: C094. They are read by name, and only those of this driver.
func TestAttachmentsOfANode(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: v1.NodeStatus{
		VolumesAttached: []v1.AttachedVolume{{Name: unique + "ocid1.volume.oc1..a"}, {Name: "kubernetes.io/csi/fss.csi.oraclecloud.com^x"}},
		VolumesInUse:    []v1.UniqueVolumeName{unique + "ocid1.volume.oc1..a", unique + "ocid1.volume.oc1..b", unique + "ocid1.volume.oc1..gone"},
	}}
	client := fake.NewClientset(node,
		// printf 'ocid1.volume.oc1..ablockvolume.csi.oraclecloud.comnode-1' | sha256sum
		attachment("csi-9e9ff7639372fde5efc8ca57f88fd953fd136d90779507d274adbc1661179571", true, "/dev/oracleoci/oraclevdb"),
		attachment("csi-51ebf2eaf142622abca7d789f8c366956bd0808796f1321ff3f2f917d1b81eff", false, "/dev/oracleoci/oraclevdc"),
		attachment("csi-others", true, "/dev/oracleoci/oraclevdd"))
	got, err := kube.NewNodeReader(client, driverName, "node-1").Attachments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b map[string]string) int { return strings.Compare(a["device"], b["device"]) })
	want := []map[string]string{nil, {"device": "/dev/oracleoci/oraclevdb"}}
	if !slices.EqualFunc(got, want, maps.Equal) {
		t.Errorf("attachments %v, want %v", got, want)
	}
	for _, a := range client.Actions() {
		if a.GetVerb() != "get" {
			t.Errorf("%s %s: reads that grow with the cluster", a.GetVerb(), a.GetResource().Resource)
		}
	}
}

// TestLabelsOfANode: and a ClusterRole that does not allow to read them.
func TestLabelsOfANode(t *testing.T) {
	client := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"a": "b"}}})
	got, err := kube.NewNodeReader(client, driverName, "node-1").Labels(t.Context())
	if err != nil || got["a"] != "b" {
		t.Errorf("labels %v: %v", got, err)
	}
	if _, err := kube.NewNodeReader(client, driverName, "node-2").Labels(t.Context()); err == nil || errors.Is(err, kube.ErrForbidden) {
		t.Errorf("a node that does not exist: %v", err)
	}
	client.PrependReactor("get", "*", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "node-1", nil)
	})
	reader := kube.NewNodeReader(client, driverName, "node-1")
	if _, err := reader.Labels(t.Context()); !errors.Is(err, kube.ErrForbidden) || !strings.Contains(err.Error(), "get nodes") {
		t.Errorf("error %v", err)
	}
	if _, err := reader.Tuning(t.Context()); !errors.Is(err, kube.ErrForbidden) {
		t.Errorf("error %v", err)
	}
}
