// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

const deleting = "delete the balancer"

// Delete removes every balancer of the Service, of either kind, and returns when they are gone. It is idempotent, waits for
// whatever the balancer is busy with, and looks at no annotation except for those that say where the balancer is.
//
// Errors: *Refusal if it failed and the user was told.
func (m *Manager) Delete(ctx context.Context, svc *v1.Service) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.DeleteTimeout)
	defer cancel()
	release, err := m.locks.Acquire(ctx, svc.UID)
	if err != nil {
		return fmt.Errorf("delete the balancer of Service %s: another operation on it did not end: %w", serviceKey(svc), err)
	}
	defer release()
	deadline, _ := ctx.Deadline()
	op := m.operation(ctx, m.latest(ctx, svc), nil, deadline)
	op.deletion = true
	if err := op.tooEarly(); err != nil {
		return err
	}
	err = op.identify(ctx)
	if err == nil {
		err = op.deleteAll(klog.NewContext(ctx, op.log))
	}
	op.delay(err)
	op.publish()
	var pending *Pending
	if errors.As(err, &pending) {
		// Not passed on as Pending: to the service controller that could look like success.
		err = fmt.Errorf("delete the balancer of Service %s: time is over, and %s", serviceKey(svc), pending.What)
	}
	if err != nil {
		op.condition(ctx, err)
		return err
	}
	m.memory.forget(svc.UID)
	return nil
}

// latest is the Service as it is now if it still exists: its annotations may say more than those of a cached one.
func (m *Manager) latest(ctx context.Context, svc *v1.Service) *v1.Service {
	if m.deps.Fresh == nil {
		return svc
	}
	live, err := m.deps.Fresh(ctx, svc)
	if err != nil || live.UID != svc.UID {
		return svc
	}
	return live
}

// delete removes what it finds until complete lists show nothing.
func (op *operation) delete(ctx context.Context) error {
	found := false
	op.waitForOpen(ctx)
	if next := op.mem.successor; next != nil {
		(&operation{m: op.m, as: op.as, svc: op.svc, mem: next, log: op.log, holdUntil: op.holdUntil}).waitForOpen(ctx)
	}
	b, err := op.byOCID(ctx)
	if err != nil {
		return err
	}
	if b != nil {
		found = true
		if err := op.removeOne(ctx, b); err != nil {
			return err
		}
	}
	for {
		rest, since, err := op.listed(ctx, 0)
		if err != nil {
			return err
		}
		for _, b := range rest {
			found = true
			if err := op.removeOne(ctx, b); err != nil {
				return err
			}
		}
		if len(rest) > 0 {
			continue
		}
		at := op.undoubted(since)
		if at.IsZero() || found && op.mem.create == nil && op.mem.successor == nil {
			return nil
		}
		// A create may still bring a balancer to light.
		if err := sleep(ctx, time.Until(earlier(at, time.Now().Add(lastPoll)))); err != nil {
			return fmt.Errorf("delete the balancer of Service %s: %w", serviceKey(op.svc), err)
		}
	}
}

// undoubted says from when on no create that was sent can bring a balancer to light any more; zero means now. since is when the
// lists that show none were begun.
func (op *operation) undoubted(since time.Time) time.Time {
	at := op.settled("", since)
	if op.mem.successor != nil {
		next := &operation{m: op.m, svc: op.svc, mem: op.mem.successor}
		if later := next.settled("", since); later.After(at) {
			return later
		}
	}
	return at
}

// waitForOpen lets the work requests of this process end, however they do: a create may be among them.
func (op *operation) waitForOpen(ctx context.Context) {
	for _, work := range op.mem.open {
		done, err := op.wait(ctx, op.cloud(work.kind), work.id)
		if err != nil {
			op.log.Info("Work request before a deletion did not succeed", "workRequest", work.id, "operation", work.what, "reason", err)
		}
		if work.create && done.ResourceID != "" {
			op.made(done.ResourceID)
		}
	}
	op.mem.open = nil
}

// removeOne deletes a balancer and waits until it is gone.
func (op *operation) removeOne(ctx context.Context, b *oci.Balancer) error {
	cloud := op.cloud(b.Kind)
	for {
		rested, err := op.atRest(ctx, b, stateCreating, stateDeleting)
		if err != nil {
			return err
		}
		if rested == nil {
			op.isGone(b)
			return nil
		}
		if rested.DeleteProtection {
			text := op.tell(explanation{
				reason: ReasonDeleteProtected,
				text:   fmt.Sprintf("balancer %s is protected from deletion, which is left to who protected it: lift the protection in OCI to let the Service go", b.ID),
				key:    b.ID,
			})
			return &Refusal{Reason: ReasonDeleteProtected, RetryAfter: op.mem.backoff(), text: text}
		}
		op.log.Info("Deleting balancer", "balancer", b.ID)
		work, err := cloud.Delete(ctx, b.ID)
		switch {
		case errors.Is(err, oci.ErrNotFound):
			err404 := err
			gone, err := op.gone(ctx, cloud, b)
			if err != nil {
				return op.refuse(deleting, b.Kind, err)
			}
			if !gone {
				return op.refuse(deleting, b.Kind, err404)
			}
			op.isGone(b)
			return nil
		case errors.Is(err, oci.ErrConflict):
			// Busy, or protected since it was read.
			if err := op.pause(ctx, lastPoll); err != nil {
				return op.stillThere(b, err)
			}
		case err != nil:
			return op.refuse(deleting, b.Kind, err)
		default:
			return op.deleted(ctx, cloud, b, work)
		}
		if b, err = cloud.Get(ctx, b.ID); err != nil && !errors.Is(err, oci.ErrNotFound) {
			return op.refuse(deleting, rested.Kind, err)
		}
		if b == nil {
			b = rested
		}
	}
}

// deleted waits for the end of a deletion.
func (op *operation) deleted(ctx context.Context, cloud Cloud, b *oci.Balancer, work string) error {
	_, err := op.wait(ctx, cloud, work)
	var failed *oci.WorkRequestError
	switch {
	case err == nil:
		op.isGone(b)
		return nil
	case errors.As(err, &failed):
		return op.refuse(deleting, b.Kind, err)
	case errors.Is(err, errHeld), ctx.Err() != nil:
		return op.stillThere(b, err)
	}
	// The work request cannot be read; the balancer has to show the end.
	op.log.Info("Work request of a deletion cannot be read", "balancer", b.ID, "workRequest", work, "reason", err)
	b.State = stateDeleting
	rested, err := op.atRest(ctx, b, stateDeleting)
	if err != nil {
		return err
	}
	if rested != nil {
		return op.refuse(deleting, b.Kind, fmt.Errorf("%s is %s after its deletion was accepted", rested.ID, rested.State))
	}
	op.isGone(b)
	return nil
}

// stillThere is the outcome when time is over.
func (op *operation) stillThere(b *oci.Balancer, cause error) error {
	if errors.Is(cause, errHeld) {
		return pendingUntil("the deletion of "+b.ID, time.Now().Add(lastPoll))
	}
	return fmt.Errorf("delete the balancer %s of Service %s: %w", b.ID, serviceKey(op.svc), cause)
}
