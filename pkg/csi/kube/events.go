// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	v1core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
)

const (
	// eventSource is the component of our events.
	eventSource = "oci-csi-controller-driver"

	// What lasts is posted again with growing distance, so that its count and time say that it lasts.
	firstRepeat = 10 * time.Second
	maxRepeat   = 10 * time.Minute
	// forgetAfter is how long events live.
	forgetAfter = time.Hour

	// maxMessage is below the API server's limit for the message of an event, in bytes.
	maxMessage = 1000
)

// reporter posts Warning events. The same words about the same object are one event, whose count grows.
type reporter struct {
	mu       sync.Mutex
	recorder record.EventRecorder // nil until start
	told     map[saying]*repeat
}

type saying struct{ object, reason, message string }

type repeat struct {
	last, next time.Time
	delay      time.Duration
}

func newReporter() *reporter { return &reporter{told: map[saying]*repeat{}} }

func (r *reporter) start(ctx context.Context, client kubernetes.Interface) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&v1core.EventSinkImpl{Interface: client.CoreV1().Events("")})
	context.AfterFunc(ctx, broadcaster.Shutdown)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorder = broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: eventSource})
}

func (r *reporter) warn(object *v1.ObjectReference, reason, message string) {
	message = shorten(message)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.recorder == nil || !r.due(saying{string(object.UID) + object.Name, reason, message}, time.Now()) {
		return
	}
	r.recorder.Event(object, v1.EventTypeWarning, reason, message)
}

// due says whether something has to be said again.
func (r *reporter) due(s saying, now time.Time) bool {
	t := r.told[s]
	switch {
	case t == nil || now.Sub(t.last) > forgetAfter:
		for old, u := range r.told {
			if now.Sub(u.last) > forgetAfter {
				delete(r.told, old)
			}
		}
		t = &repeat{delay: firstRepeat}
		r.told[s] = t
	case now.Before(t.next):
		t.last = now
		return false
	default:
		t.delay = min(2*t.delay, maxRepeat)
	}
	t.last, t.next = now, now.Add(t.delay)
	return true
}

// shorten cuts a message to what the API server takes.
func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	const end = "…"
	cut := maxMessage - len(end)
	for !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + end
}

// Warn implements block.Cluster.
func (c *Cluster) Warn(ctx context.Context, claim *block.Claim, reason, message string) {
	if claim == nil {
		return
	}
	klog.FromContext(ctx).V(2).Info("Event on a claim", "claim", klog.KRef(claim.Namespace, claim.Name), "reason", reason, "message", message)
	c.events.warn(&v1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: types.UID(claim.UID),
	}, reason, message)
}

// NoteMissing tells the operator that a feature is off since the ClusterRole lacks rules: in the log and as an event on the
// CSIDriver.
func (c *Cluster) NoteMissing(ctx context.Context, rules []string, feature string) {
	message := fmt.Sprintf("Off, since the ClusterRole does not allow: %s: %s", strings.Join(rules, ", "), feature)
	klog.FromContext(ctx).Info(message)
	c.events.warn(&v1.ObjectReference{APIVersion: "storage.k8s.io/v1", Kind: "CSIDriver", Name: c.driver}, "PermissionMissing", message)
}
