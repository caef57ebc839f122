// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
)

// draftsName is the ConfigMap in namespace kube-system that has the names of drafts as its keys.
const draftsName = "oci-csi-drafts"

// draftTimeout bounds a write, whose callers may have gone.
const draftTimeout = 10 * time.Second

// drafts implements block.Drafts with a ConfigMap. Requests that come while one is being written are written together.
type drafts struct {
	cluster *Cluster

	writing sync.Mutex // one at a time
	mu      sync.Mutex
	next    *change // of those who wait
}

// change is what becomes of the ConfigMap: names to values, nil for those that go.
type change struct {
	data map[string]*string
	done chan struct{}
	err  error // once done is closed
}

// Drafts returns the memory for drafts; nil if the roles do not allow it, which is told. It is called after Start.
func (c *Cluster) Drafts(ctx context.Context) (block.Drafts, error) {
	var missing []string
	for _, verb := range []string{"get", "patch"} {
		allowed, err := allowedOne(ctx, c.client, verb, "configmaps", draftsName)
		if err != nil {
			return nil, err
		}
		if !allowed {
			missing = append(missing, verb+" configmaps "+draftsName+" in namespace "+metav1.NamespaceSystem)
		}
	}
	if len(missing) == 0 && c.claims.informer == nil {
		return nil, nil // which Start has told
	}
	if len(missing) > 0 {
		c.NoteMissing(ctx, missing, "finding volumes whose claim was deleted while they were made and the provisioner was restarted")
		return nil, nil
	}
	return &drafts{cluster: c}, nil
}

// Keep implements block.Drafts. A name that does not end with the UID of a claim is nobody's to judge, and is not kept.
func (d *drafts) Keep(ctx context.Context, name string) error {
	if uidSuffix.FindString(name) == "" {
		return nil
	}
	now := time.Now().UTC().Format(time.RFC3339)
	return d.write(ctx, map[string]*string{name: &now})
}

// Drop implements block.Drafts.
func (d *drafts) Drop(ctx context.Context, names ...string) error {
	gone := map[string]*string{}
	for _, name := range names {
		gone[name] = nil
	}
	return d.write(ctx, gone)
}

// List implements block.Drafts.
func (d *drafts) List(ctx context.Context) ([]block.Draft, error) {
	kept, err := d.cluster.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, draftsName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && len(kept.Data) == 0:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read ConfigMap %s: %w", draftsName, err)
	}
	// Claims before volumes: what has neither, in this order, never gets one, since a claim that is gone does not come back.
	claims, err := d.claimsOf(ctx, kept.Data)
	if err != nil {
		return nil, err
	}
	volumes, err := d.names(ctx, "persistentvolumes", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return d.cluster.client.CoreV1().PersistentVolumes().List(ctx, o)
	}, metav1.Object.GetName)
	if err != nil {
		return nil, err
	}
	out := make([]block.Draft, 0, len(kept.Data))
	for name := range kept.Data {
		out = append(out, block.Draft{Name: name, HasClaim: claims[uidSuffix.FindString(name)], HasVolume: volumes[name]})
	}
	return out, nil
}

// claimsOf says which of the UIDs at the end of names are those of claims. The cache may be old, so that the API is asked when it lacks one.
func (d *drafts) claimsOf(ctx context.Context, names map[string]string) (map[string]bool, error) {
	there := map[string]bool{}
	for name := range names {
		uid := uidSuffix.FindString(name)
		there[uid] = d.cluster.claims.cached(uid, "", "") != nil
		if !there[uid] {
			return d.names(ctx, "persistentvolumeclaims", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return d.cluster.client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, o)
			}, func(m metav1.Object) string { return string(m.GetUID()) })
		}
	}
	return there, nil
}

// names lists objects, and returns what name makes of each.
func (d *drafts) names(ctx context.Context, resource string, list pager.ListPageFunc, name func(metav1.Object) string) (map[string]bool, error) {
	found := map[string]bool{}
	err := d.cluster.each(ctx, list, func(o runtime.Object) {
		if m, err := meta.Accessor(o); err == nil {
			found[name(m)] = true
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource, err)
	}
	return found, nil
}

// write joins the changes to those that wait, and returns when they are written.
func (d *drafts) write(ctx context.Context, data map[string]*string) error {
	d.mu.Lock()
	batch := d.next
	if batch == nil {
		batch = &change{data: map[string]*string{}, done: make(chan struct{})}
		d.next = batch
		go d.flush(context.WithoutCancel(ctx), batch) // which others wait for, too
	}
	for name, value := range data {
		batch.data[name] = value
	}
	d.mu.Unlock()
	select {
	case <-batch.done:
		return batch.err
	case <-ctx.Done():
		return fmt.Errorf("write ConfigMap %s: %w", draftsName, context.Cause(ctx))
	}
}

func (d *drafts) flush(ctx context.Context, batch *change) {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.mu.Lock()
	d.next = nil // those who come now are in the next
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, draftTimeout)
	defer cancel()
	batch.err = d.patch(ctx, batch.data)
	close(batch.done)
}

func (d *drafts) patch(ctx context.Context, data map[string]*string) error {
	raw, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	maps := d.cluster.client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	for range 2 {
		_, err = maps.Patch(ctx, draftsName, types.MergePatchType, raw, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			break
		}
		_, err = maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: draftsName}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", draftsName, err)
	}
	return nil
}
