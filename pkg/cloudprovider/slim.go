// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// slim makes an informer remember objects without what nobody in this process asks for. It must not have started; one that
// has goes on as it is, and costs more memory.
func slim(informer cache.SharedIndexInformer, transform cache.TransformFunc) {
	if err := informer.SetTransform(transform); err != nil {
		klog.Background().Error(err, "Objects are remembered whole")
	}
}

// slimNode takes out the names of up to 50 images, the volumes, and who manages which field: most of what a Node weighs.
// Nothing of it is lost when the framework writes the Node back: the API server keeps the status and, where none are sent,
// the managed fields (k8s.io/kubernetes pkg/registry/core/node, nodeStrategy.PrepareForUpdate; k8s.io/apimachinery
// pkg/util/managedfields, FieldManager.Update).
func slimNode(obj any) (any, error) {
	if node, ok := obj.(*v1.Node); ok {
		node.ManagedFields = nil
		node.Status.Images, node.Status.VolumesInUse, node.Status.VolumesAttached = nil, nil, nil
	}
	return obj, nil
}

// slimService takes out who manages which field.
func slimService(obj any) (any, error) {
	if service, ok := obj.(*v1.Service); ok {
		service.ManagedFields = nil
	}
	return obj, nil
}
