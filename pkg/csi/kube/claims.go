// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"regexp"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
)

// byUID is the index of claims by their UID.
const byUID = "uid"

// uidSuffix is the UID of the PersistentVolumeClaim at the end of the name that external-provisioner gives a volume.
var uidSuffix = regexp.MustCompile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")

// claims finds PersistentVolumeClaims. Of each it keeps the name and a few words more.
type claims struct {
	client   kubernetes.Interface
	informer cache.SharedIndexInformer // nil if that is not allowed
}

func newClaims(client kubernetes.Interface) *claims { return &claims{client: client} }

// start fills the cache, and returns the rules that are missing for it.
func (c *claims) start(ctx context.Context) (missing []string, err error) {
	for _, verb := range []string{"list", "watch"} {
		allowed, err := allowed(ctx, c.client, verb, "persistentvolumeclaims")
		if err != nil {
			return nil, err
		}
		if !allowed {
			missing = append(missing, verb+" persistentvolumeclaims")
		}
	}
	if len(missing) > 0 {
		return missing, nil
	}
	factory := informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithTransform(slim))
	informer := factory.Core().V1().PersistentVolumeClaims().Informer()
	if err := informer.AddIndexers(cache.Indexers{byUID: uidOf}); err != nil {
		return nil, fmt.Errorf("watch persistentvolumeclaims: %w", err)
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("watch persistentvolumeclaims: %w", context.Cause(ctx))
	}
	c.informer = informer
	return nil, nil
}

func (c *claims) synced() bool { return c.informer == nil || c.informer.HasSynced() }

// slim keeps of a claim what is asked for.
func slim(object any) (any, error) {
	pvc, ok := object.(*v1.PersistentVolumeClaim)
	if !ok {
		return object, nil
	}
	return &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: pvc.Namespace, Name: pvc.Name, UID: pvc.UID, ResourceVersion: pvc.ResourceVersion, CreationTimestamp: pvc.CreationTimestamp,
	}}, nil
}

func uidOf(object any) ([]string, error) {
	pvc, ok := object.(*v1.PersistentVolumeClaim)
	if !ok {
		return nil, fmt.Errorf("a %T among persistentvolumeclaims", object)
	}
	return []string{string(pvc.UID)}, nil
}

// find returns the claim that a volume is made for, nil if it is not known. A claim of the right name and another UID than the
// volume's name ends with is another one.
func (c *claims) find(ctx context.Context, volume, namespace, name string) *block.Claim {
	uid := uidSuffix.FindString(volume)
	pvc := c.cached(uid, namespace, name)
	if pvc == nil && name != "" {
		var err error
		if pvc, err = c.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			klog.FromContext(ctx).V(4).Info("The claim of a volume is not known", "volume", volume, "claim", klog.KRef(namespace, name), "err", err)
			return nil
		}
	}
	if pvc == nil || uid != "" && string(pvc.UID) != uid {
		return nil
	}
	return &block.Claim{Namespace: pvc.Namespace, Name: pvc.Name, UID: string(pvc.UID), Created: pvc.CreationTimestamp.Time}
}

func (c *claims) cached(uid, namespace, name string) *v1.PersistentVolumeClaim {
	if c.informer == nil {
		return nil
	}
	if uid != "" {
		if found, err := c.informer.GetIndexer().ByIndex(byUID, uid); err == nil && len(found) == 1 {
			pvc, _ := found[0].(*v1.PersistentVolumeClaim)
			return pvc
		}
		return nil
	}
	if found, ok, err := c.informer.GetIndexer().GetByKey(namespace + "/" + name); err == nil && ok {
		pvc, _ := found.(*v1.PersistentVolumeClaim)
		return pvc
	}
	return nil
}
