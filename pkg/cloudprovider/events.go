// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	v1core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

const (
	// eventSource is the component of our events.
	eventSource = "oci-cloud-controller-manager"

	// A trouble that lasts is posted again with growing distance, so that its count and time say that it lasts without
	// loading the API server.
	firstRepeat = 10 * time.Second
	maxRepeat   = 10 * time.Minute

	// forgetTrouble is how long after its last occurrence a trouble counts as a new one: as long as events live.
	forgetTrouble = time.Hour

	// maxMessage is below the API server's limit for the message of an event, in bytes.
	maxMessage = 1000
)

// reporter posts events. Occurrences of the same trouble on the same object are one event whose count grows: they are
// posted with the words of the first one, although each has a request ID of its own.
type reporter struct {
	mu       sync.Mutex
	recorder record.EventRecorder // nil until start
	services record.EventRecorder // of events about Services; nil until startServices
	troubles map[trouble]*story
}

// trouble is one thing that is wrong with one object.
type trouble struct {
	object types.UID
	name   string // for objects without a UID
	reason string
	cause  string
}

type story struct {
	message string
	last    time.Time // when it happened last
	next    time.Time // before that it is not posted again
	delay   time.Duration
}

func newReporter() *reporter { return &reporter{troubles: map[trouble]*story{}} }

// start lets events be posted.
func (r *reporter) start(ctx context.Context, client kubernetes.Interface) {
	recorder := newRecorder(ctx, client)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorder = recorder
}

// startServices gives events about Services a client of their own: that of the service controller.
func (r *reporter) startServices(ctx context.Context, client kubernetes.Interface) {
	recorder := newRecorder(ctx, client)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.services = recorder
}

func newRecorder(ctx context.Context, client kubernetes.Interface) record.EventRecorder {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&v1core.EventSinkImpl{Interface: client.CoreV1().Events("")})
	context.AfterFunc(ctx, broadcaster.Shutdown)
	return broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: eventSource})
}

// post reports a trouble of an object. cause is what makes it the same trouble as another one, for the same reason.
func (r *reporter) post(object runtime.Object, eventType, reason, cause, message string) {
	key := troubleOf(object, reason, cause)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.recorder == nil {
		return
	}
	now := time.Now()
	s := r.troubles[key]
	switch {
	case s == nil || now.Sub(s.last) > forgetTrouble:
		r.sweep(now)
		s = &story{message: shorten(message), delay: firstRepeat}
		r.troubles[key] = s
	case now.Before(s.next):
		s.last = now
		return
	default:
		s.delay = min(2*s.delay, maxRepeat)
	}
	s.last, s.next = now, now.Add(s.delay)
	recorder := r.recorder
	if _, ok := object.(*v1.Service); ok && r.services != nil {
		recorder = r.services
	}
	recorder.Event(object, eventType, reason, s.message)
}

func (r *reporter) forget(object types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.troubles {
		if k.object == object {
			delete(r.troubles, k)
		}
	}
}

// sweep drops what has not happened for long. r.mu is held.
func (r *reporter) sweep(now time.Time) {
	for k, s := range r.troubles {
		if now.Sub(s.last) > forgetTrouble {
			delete(r.troubles, k)
		}
	}
}

func troubleOf(object runtime.Object, reason, cause string) trouble {
	t := trouble{reason: reason, cause: cause}
	if ref, ok := object.(*v1.ObjectReference); ok {
		t.object, t.name = ref.UID, ref.Kind+"/"+ref.Namespace+"/"+ref.Name
	} else if m, err := meta.Accessor(object); err == nil {
		t.object = m.GetUID()
		if t.object == "" {
			t.name = m.GetNamespace() + "/" + m.GetName()
		}
	}
	return t
}

func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

// causeOf says what kind of failure an error is, without what differs between two occurrences of it: request IDs, attempts.
func causeOf(err error) string {
	var presence *oci.PresenceError
	if errors.As(err, &presence) {
		return causeOf(presence.Read)
	}
	var work *oci.WorkRequestError
	if errors.As(err, &work) {
		return fmt.Sprintf("%s %s %v", work.Service, work.WorkRequest.Operation, work.WorkRequest.Errors)
	}
	var failure *oci.Error
	if errors.As(err, &failure) {
		if failure.Status == 0 {
			return fmt.Sprintf("%s %s: no answer", failure.Service, failure.Operation)
		}
		return fmt.Sprintf("%s %s: %d %s", failure.Service, failure.Operation, failure.Status, failure.Code)
	}
	return err.Error()
}
