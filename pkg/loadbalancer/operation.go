// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// operation is one call about one Service, made under the Service's lock.
type operation struct {
	m     *Manager
	as    *principal // who calls
	svc   *v1.Service
	nodes []*v1.Node
	mem   *serviceMemory
	log   klog.Logger

	// holdUntil is when the caller is to be released.
	holdUntil time.Time
	// only, if it is set, is where the balancer has to be; except is the OCID of one that is passed over.
	only   *place
	except string
	// quietly means that nobody is told anything.
	quietly bool
	// deletion means that the Service is to go.
	deletion bool
	// warnings are collected on the way and published at the end; complete says that there are no others.
	warnings Problems
	complete bool
	// rules is what is to be done about security rules; nil if nothing is.
	rules *ruleWork
	// late are the problems that the sync ends with.
	late Problems
}

// errHeld means that the time to hold the caller is over.
var errHeld = errors.New("the caller was held long enough")

// warn notes something that the user should know, and that does not stop the sync.
func (op *operation) warn(reason, message string) { op.warnings.warn(reason, message) }

// publish makes events of the warnings that were not told before. One that has gone may be told again when it comes back.
func (op *operation) publish() {
	told := op.mem.told
	if op.complete {
		op.mem.told = map[string]bool{}
	}
	for _, p := range op.warnings {
		if !told[p.Message] && !op.mem.told[p.Message] {
			op.event(p.Reason, p.Message)
		}
		op.mem.told[p.Message] = true
	}
}

// maxEvent is how long the message of an event can be (validation of events.k8s.io/v1).
const maxEvent = 1024

func (op *operation) event(reason, message string) {
	message = shortened(message, maxEvent-4)
	if op.m.deps.Events != nil && !op.quietly {
		op.m.deps.Events(op.svc, Event{Type: v1.EventTypeWarning, Reason: reason, Message: message})
	}
}

// refuse publishes an error of the cloud and returns it as a Refusal. Errors that are none, or were published already,
// pass through.
func (op *operation) refuse(doing string, kind oci.BalancerKind, err error) error {
	var refusal *Refusal
	var pending *Pending
	if errors.As(err, &refusal) || errors.As(err, &pending) || errors.Is(err, ErrServiceGone) || errors.Is(err, context.Canceled) {
		return err
	}
	e := explain(doing, kind, err)
	text := op.tell(e)
	return &Refusal{Reason: e.reason, RetryAfter: op.mem.backoff(), text: text, cause: err}
}

// maxRefusals bounds the memory of a Service that fails in ever new ways.
const maxRefusals = 20

// tell publishes an explanation. The same cause is always told in the words of the first time, with the request ID of
// then, so that events aggregate.
func (op *operation) tell(e explanation) string {
	text := firstWords(op.mem.refusals, e)
	op.event(e.reason, text)
	return text
}

// words are those in which something was explained first that does not stop the sync.
func (op *operation) words(e explanation) string {
	if op.mem.wordings == nil {
		op.mem.wordings = map[string]string{}
	}
	return firstWords(op.mem.wordings, e)
}

// firstWords are those in which something was explained first.
func firstWords(known map[string]string, e explanation) string {
	text, ok := known[e.key]
	if !ok {
		if len(known) >= maxRefusals {
			clear(known)
		}
		text = e.text
		known[e.key] = text
	}
	return text
}

// refuseProblems publishes fatal problems, one event each.
func (op *operation) refuseProblems(problems Problems) error {
	for _, p := range problems {
		op.event(p.Reason, p.Message)
	}
	return &Refusal{Reason: problems[0].Reason, RetryAfter: op.mem.backoff(), text: problems.String()}
}

// wait waits for a work request, at most until the caller is to be released (errHeld).
func (op *operation) wait(ctx context.Context, cloud Cloud, workRequestID string) (oci.WorkRequest, error) {
	waitCtx, cancel := context.WithDeadlineCause(ctx, op.holdUntil, errHeld)
	defer cancel()
	done, err := cloud.Wait(waitCtx, workRequestID)
	var failed *oci.WorkRequestError
	if err != nil && !errors.As(err, &failed) && waitCtx.Err() != nil {
		return done, context.Cause(waitCtx)
	}
	return done, err
}

// call returns a context for one write: a service that is busy must not hold the caller for minutes.
func (op *operation) call(ctx context.Context) (context.Context, context.CancelFunc) {
	const least = 10 * time.Second
	return context.WithTimeout(ctx, max(time.Until(op.holdUntil), least))
}

// pause waits a moment, at most until the caller is to be released (errHeld).
func (op *operation) pause(ctx context.Context, d time.Duration) error {
	waitCtx, cancel := context.WithDeadlineCause(ctx, op.holdUntil, errHeld)
	defer cancel()
	return sleep(waitCtx, d)
}

// finishOpen waits for the work requests that earlier calls have left open. One that failed is told; what it was about is
// then found out from the balancer itself.
func (op *operation) finishOpen(ctx context.Context) error {
	for len(op.mem.open) > 0 {
		work := op.mem.open[0]
		done, err := op.wait(ctx, op.cloud(work.kind), work.id)
		var failed *oci.WorkRequestError
		switch {
		case errors.Is(err, errHeld):
			return op.pending()
		case errors.As(err, &failed):
			op.mem.open, op.mem.sent = op.mem.open[1:], ""
			if work.create {
				return op.creationFailed(ctx, work.kind, failed)
			}
			return op.refuse(work.what, work.kind, err)
		case errors.Is(err, oci.ErrNotFound):
			op.log.Info("Work request is not known any more", "workRequest", work.id, "reason", err)
		case err != nil:
			return op.refuse(work.what, work.kind, err)
		}
		op.mem.open = op.mem.open[1:]
		if work.create && done.ResourceID != "" {
			op.made(done.ResourceID)
		}
	}
	return nil
}

// made notes which balancer a create has made. It is there, but it may be a while until reads and lists show it.
func (op *operation) made(id string) {
	op.mem.id = id
	if op.mem.create != nil && !op.mem.create.known {
		op.mem.create.at = time.Now()
	}
}

// pending is the outcome while work requests are open.
func (op *operation) pending() *Pending {
	open := slices.Clone(op.mem.open)
	if len(open) == 0 {
		return pendingUntil("the balancer to come to rest", time.Now().Add(lastPoll))
	}
	var what []string
	for _, work := range open {
		what = append(what, work.what)
	}
	return &Pending{What: strings.Join(what, ", "), wait: func(ctx context.Context) error {
		for _, work := range open {
			// How it ended, the next call finds out and tells.
			if _, err := op.cloud(work.kind).Wait(ctx, work.id); err != nil && ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		return nil
	}}
}

// atRest waits until the balancer is in none of the given states, and returns how it is then; nil if it has gone.
func (op *operation) atRest(ctx context.Context, b *oci.Balancer, busy ...string) (*oci.Balancer, error) {
	cloud := op.cloud(b.Kind)
	what := fmt.Sprintf("%s is %s", b.ID, b.State)
	rested, err := op.poll(ctx, cloud, b, func(d time.Duration) error { return op.pause(ctx, d) }, busy...)
	if errors.Is(err, errHeld) {
		return nil, &Pending{What: what, wait: func(ctx context.Context) error {
			_, err := op.poll(ctx, cloud, b, func(d time.Duration) error { return sleep(ctx, d) }, busy...)
			return err
		}}
	}
	if err != nil {
		return nil, op.refuse("read the balancer", b.Kind, err)
	}
	return rested, nil
}

// save records the balancer and what was applied in the Service's annotations, if they say something else.
func (op *operation) save(ctx context.Context, id string, a Applied) {
	if err := op.record(ctx, id, a); err != nil {
		// The balancer is as it should be; the next sync records it.
		op.log.Error(err, "Could not record the balancer in the Service's annotations", "balancer", id)
	}
}

// record writes a record into the Service's annotations, if they say something else.
func (op *operation) record(ctx context.Context, id string, a Applied) error {
	r := Record{OCID: id, LastApplied: a.encode()}
	if op.m.deps.Records == nil || op.svc.Annotations[AnnotationOCID] == r.OCID && op.svc.Annotations[AnnotationLastApplied] == r.LastApplied {
		return nil
	}
	if err := op.m.deps.Records.Save(ctx, op.svc, r); err != nil {
		return fmt.Errorf("record the balancer of Service %s in its annotations: %w", serviceKey(op.svc), err)
	}
	// The next record is compared with this one.
	op.svc = op.svc.DeepCopy()
	if op.svc.Annotations == nil {
		op.svc.Annotations = map[string]string{}
	}
	op.svc.Annotations[AnnotationOCID], op.svc.Annotations[AnnotationLastApplied] = r.OCID, r.LastApplied
	return nil
}

// condition writes the outcome into the Service's status, if it says something else.
func (op *operation) condition(ctx context.Context, err error) {
	c := metav1.Condition{Type: ConditionType, Status: metav1.ConditionTrue, Reason: ReasonSynced, Message: op.warnings.String()}
	var pending *Pending
	var refusal *Refusal
	switch {
	case err == nil:
	case errors.As(err, &pending) && pending.Reason != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, pending.Reason, pending.What
	case errors.As(err, &pending):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, ReasonInProgress, "work goes on in the cloud"
	case errors.As(err, &refusal):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, refusal.Reason, refusal.text
	default:
		return
	}
	if op.m.deps.Conditions == nil {
		return
	}
	for _, have := range op.svc.Status.Conditions {
		if have.Type == c.Type && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message {
			return
		}
	}
	if err := op.m.deps.Conditions.SetCondition(ctx, op.svc, c); err != nil {
		op.log.Error(err, "Could not write the condition of the Service")
	}
}
