// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"maps"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cloudproviderapi "k8s.io/cloud-provider/api"
	"k8s.io/utils/ptr"
)

// leaseSeconds is kubelet's default lease duration.
const leaseSeconds = 40

// uninitialized is the taint with which a kubelet asks for a cloud provider.
func uninitialized() []v1.Taint {
	return []v1.Taint{{
		Key:    cloudproviderapi.TaintExternalCloudProvider,
		Value:  "true",
		Effect: v1.TaintEffectNoSchedule,
	}}
}

// newObject is the Node that a kubelet with --cloud-provider=external registers
// (k8s.io/kubernetes pkg/kubelet: initialNode, nodestatus.NodeAddress): with a node
// IP, that address and an annotation for the cloud provider; without, the hostname
// alone.
func newObject(name, nodeIP string, conditions []v1.NodeCondition) *v1.Node {
	labels := map[string]string{
		v1.LabelHostname:          name,
		v1.LabelOSStable:          "linux",
		v1.LabelArchStable:        "amd64",
		"beta.kubernetes.io/os":   "linux",
		"beta.kubernetes.io/arch": "amd64",
	}
	annotations := map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
	var addresses []v1.NodeAddress
	if nodeIP != "" {
		annotations[cloudproviderapi.AnnotationAlphaProvidedIPAddr] = nodeIP
		for address := range strings.SplitSeq(nodeIP, ",") {
			addresses = append(addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: address})
		}
	}
	addresses = append(addresses, v1.NodeAddress{Type: v1.NodeHostName, Address: name})

	capacity := v1.ResourceList{
		v1.ResourceCPU:              resource.MustParse("4"),
		v1.ResourceMemory:           resource.MustParse("16Gi"),
		v1.ResourceEphemeralStorage: resource.MustParse("40Gi"),
		v1.ResourcePods:             resource.MustParse("110"),
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations},
		Status: v1.NodeStatus{
			Capacity:    capacity,
			Allocatable: maps.Clone(capacity),
			Conditions:  conditions,
			Addresses:   addresses,
			NodeInfo: v1.NodeSystemInfo{
				OperatingSystem:         "linux",
				Architecture:            "amd64",
				OSImage:                 "simulated",
				ContainerRuntimeVersion: "simulated://0",
			},
		},
	}
}

// images are container images as kubelet reports them: each with a tag and a digest.
func images(count int) []v1.ContainerImage {
	var list []v1.ContainerImage
	for i := range count {
		repository := fmt.Sprintf("registry.example/some-team/some-application-%d", i)
		list = append(list, v1.ContainerImage{
			Names:     []string{fmt.Sprintf("%s@sha256:%064x", repository, i), repository + ":v1.2.3"},
			SizeBytes: 100 << 20,
		})
	}
	return list
}

// conditions are those that a kubelet reports: healthy, except that Ready is since
// the given time as told.
func conditions(ready bool, since, now time.Time) []v1.NodeCondition {
	heartbeat, transition := metav1.NewTime(now), metav1.NewTime(since)
	condition := func(kind v1.NodeConditionType, status v1.ConditionStatus, reason, message string) v1.NodeCondition {
		return v1.NodeCondition{
			Type: kind, Status: status, Reason: reason, Message: message,
			LastHeartbeatTime: heartbeat, LastTransitionTime: transition,
		}
	}
	all := []v1.NodeCondition{
		condition(v1.NodeMemoryPressure, v1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		condition(v1.NodeDiskPressure, v1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		condition(v1.NodePIDPressure, v1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
	}
	if ready {
		return append(all, condition(v1.NodeReady, v1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"))
	}
	return append(all, condition(v1.NodeReady, v1.ConditionFalse, "KubeletNotReady", "simulated: not ready on demand"))
}

// newLease is the lease of a node's kubelet, which goes when the Node goes.
func newLease(name string, uid types.UID, now time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:      name,
			Namespace: v1.NamespaceNodeLease,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: name, UID: uid,
			}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       ptr.To(name),
			LeaseDurationSeconds: ptr.To[int32](leaseSeconds),
			RenewTime:            &metav1.MicroTime{Time: now},
		},
	}
}
