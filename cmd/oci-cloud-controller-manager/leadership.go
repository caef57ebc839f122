// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// releaseAttempts bounds the tries to release the lease; each fails only if the lease was renewed in between.
const releaseAttempts = 5

// leadership gives up the lease at the end of the process, which the framework does not: its election runs until the
// process is gone, and the next leader would wait for the lease to expire.
type leadership struct {
	enabled         bool
	namespace, name string
	client          kubernetes.Interface

	mu       sync.Mutex
	identity string // as whom this process leads; empty while it does not
}

// began is called when this process has just become the leader. The framework makes the identity up and tells nobody, but
// at this moment it stands in the lease.
func (l *leadership) began(ctx context.Context) {
	if !l.enabled {
		return
	}
	lease, err := l.client.CoordinationV1().Leases(l.namespace).Get(ctx, l.name, metav1.GetOptions{})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Could not read the lease; it will not be released at the end")
		return
	}
	host, err := os.Hostname()
	if err != nil || lease.Spec.HolderIdentity == nil || !strings.HasPrefix(*lease.Spec.HolderIdentity, host+"_") {
		klog.FromContext(ctx).Info("The lease does not look like that of this process; it will not be released at the end")
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.identity = *lease.Spec.HolderIdentity
}

// release gives the lease up if this process holds it. The process must end right after it: the framework's election goes on
// and would take the lease back.
func (l *leadership) release(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.identity == "" {
		return
	}
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: l.namespace, Name: l.name},
		Client:     l.client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: l.identity},
	}
	for range releaseAttempts {
		record, _, err := lock.Get(ctx)
		if err == nil {
			if record.HolderIdentity != l.identity {
				return
			}
			now := metav1.NewTime(time.Now())
			err = lock.Update(ctx, resourcelock.LeaderElectionRecord{
				LeaseDurationSeconds: 1,
				AcquireTime:          now,
				RenewTime:            now,
				LeaderTransitions:    record.LeaderTransitions,
			})
		}
		if err == nil {
			klog.FromContext(ctx).Info("Released the lease")
			return
		}
		if !apierrors.IsConflict(err) {
			klog.FromContext(ctx).Error(err, "Could not release the lease")
			return
		}
	}
}
