// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

const (
	// maxRounds bounds how often a plan is made anew because somebody else changes the balancer meanwhile.
	maxRounds = 4

	// maxParallel is how many changes of one LB may be open: the service takes them all and works them off. An LB has at
	// most 16 listeners and 16 backend sets (oci-api.md §3.5).
	maxParallel = 16
)

// errReplan means that the balancer is not any more what the plan was made for.
var errReplan = errors.New("the balancer has changed")

// converge applies plans until there is nothing to do, and returns the balancer as it is then.
func (op *operation) converge(ctx context.Context, live *oci.Balancer, model *Model, last Applied, diff func(*oci.Balancer) Plan) (*oci.Balancer, error) {
	done := op.mem.sent
	op.mem.sent = ""
	for range maxRounds {
		plan := diff(live)
		if len(plan) == 0 {
			return live, nil
		}
		text := plan.String()
		wish := text + model.String() // the same changes to the same values
		if wish == done {
			told := op.tell(explanation{
				reason: ReasonNotConverging,
				text:   fmt.Sprintf("the service accepts these changes of %s, but does not keep them: %s", live.ID, describe(plan)),
				key:    live.ID + text,
			})
			return nil, &Refusal{Reason: ReasonNotConverging, RetryAfter: op.mem.backoff(), text: told}
		}
		quiet, err := op.quiet(ctx, live)
		if err != nil {
			return nil, err
		}
		if quiet {
			if slices.ContainsFunc(plan, func(s Step) bool { return s.Action == CreateRuleSet }) {
				if err := op.claimRuleSets(ctx, model.RuleSets); err != nil {
					return nil, err
				}
			}
			op.log.Info("Changing balancer", "balancer", live.ID, "plan", describe(plan))
			replan, sent, err := op.apply(ctx, live, model, last, plan)
			var pending *Pending
			if sent && errors.As(err, &pending) {
				op.mem.sent = wish // whether the service keeps it, the next call sees
			}
			if err != nil {
				return nil, err
			}
			if done = wish; replan {
				done = ""
			}
		}
		if live, err = op.cloud(live.Kind).Get(ctx, live.ID); err != nil {
			return nil, op.refuse("read the balancer", model.Kind, err)
		}
	}
	return nil, &Pending{What: "others who are changing the balancer", wait: func(ctx context.Context) error { return sleep(ctx, lastPoll) }}
}

func describe(plan Plan) string {
	text := ""
	for i, step := range plan {
		if i > 0 {
			text += "; "
		}
		text += step.String()
	}
	return text
}

// quiet makes sure, before the first change that this process makes, that none of an earlier process is still going on:
// the balancer does not show that. The answer false means that there was one, which has ended now.
func (op *operation) quiet(ctx context.Context, live *oci.Balancer) (bool, error) {
	if op.mem.quiet || live.Kind == oci.KindNLB { // the state of an NLB shows it
		return true, nil
	}
	all, err := op.cloud(live.Kind).ListWorkRequests(ctx, live.ID, live.CompartmentID)
	if err != nil {
		return false, op.refuse("list the work requests of the balancer", live.Kind, err)
	}
	op.mem.quiet = true
	for _, w := range all {
		if !w.State.Done() {
			op.mem.open = append(op.mem.open, openWork{kind: live.Kind, id: w.ID, what: w.Operation})
		}
	}
	if len(op.mem.open) == 0 {
		return true, nil
	}
	return false, op.finishOpen(ctx)
}

// applier carries out one plan.
type applier struct {
	op    *operation
	cloud Cloud
	want  *Model
	last  Applied

	// turn holds an element while no request is being made: they go one after the other. Whoever has it may use current,
	// the balancer as it was read last, and reread, which means that each request needs a new ETag.
	turn    chan struct{}
	current *oci.Balancer
	reread  bool

	// mu guards the outcome, and the open work in the memory of the Service.
	mu       sync.Mutex
	accepted int // steps
	errs     []stepError
	replan   bool
	held     bool
}

type stepError struct {
	step Step
	err  error
}

// apply carries out a plan. A step that fails takes with it those that wait for it, and no others. replan means that the
// plan could not be carried out to its end because the balancer has changed; sent, that the service has accepted every
// step.
func (op *operation) apply(ctx context.Context, live *oci.Balancer, model *Model, last Applied, plan Plan) (replan, sent bool, err error) {
	a := &applier{op: op, cloud: op.cloud(live.Kind), want: model, last: last, turn: make(chan struct{}, 1), current: live}
	a.turn <- struct{}{}
	var group errgroup.Group
	group.SetLimit(1) // an NLB refuses a change while another one runs
	if live.Kind == oci.KindLB {
		group.SetLimit(maxParallel)
	}
	ended := make([]chan struct{}, len(plan))
	failed := make([]bool, len(plan))
	for i := range plan {
		ended[i] = make(chan struct{})
	}
	for i, step := range plan {
		// Steps wait for earlier ones only, which were started before them: a full group cannot come to a standstill.
		group.Go(func() error {
			defer close(ended[i])
			for _, before := range step.After {
				<-ended[before]
				failed[i] = failed[i] || failed[before]
			}
			if !failed[i] {
				failed[i] = !a.run(ctx, step)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return false, false, err
	}
	sent = a.accepted == len(plan)
	var refusal error
	for _, e := range a.errs {
		if told := op.refuse(string(e.step.Action)+before(" ", e.step.Name), live.Kind, e.err); refusal == nil {
			refusal = told
		}
	}
	switch {
	case refusal != nil:
		return false, sent, refusal
	case a.held:
		return false, sent, op.pending()
	}
	return a.replan, sent, nil
}

// run carries out one step and says whether it was.
func (a *applier) run(ctx context.Context, step Step) bool {
	if step.Action == OpenRules || step.Action == CloseRules {
		return a.runRules(ctx, step)
	}
	work, err := a.submit(ctx, step)
	if err == nil {
		a.mu.Lock()
		a.accepted++
		a.mu.Unlock()
	}
	if err == nil && work != "" {
		err = a.finish(ctx, step, work)
	}
	if err == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case errors.Is(err, errHeld):
		a.held = true
	case errors.Is(err, errReplan):
		a.replan = true
	case step.Action == UpdateTags:
		// Without marks the balancer is found by its OCID and name.
		a.op.log.Error(err, "Could not mark the balancer")
		a.op.warnings = append(a.op.warnings, noMarks("they could not be set"))
		return true
	default:
		a.errs = append(a.errs, stepError{step, err})
	}
	return false
}

// finish waits for the end of a change.
func (a *applier) finish(ctx context.Context, step Step, work string) error {
	open := openWork{kind: a.cloud.Kind(), id: work, what: step.String()}
	a.mu.Lock()
	a.op.mem.open = append(a.op.mem.open, open)
	a.mu.Unlock()
	_, err := a.op.wait(ctx, a.cloud, work)
	var failed *oci.WorkRequestError
	if err == nil || errors.As(err, &failed) {
		a.mu.Lock()
		a.op.mem.open = slices.DeleteFunc(a.op.mem.open, func(w openWork) bool { return w == open })
		a.mu.Unlock()
	}
	if err == nil && a.cloud.Kind() == oci.KindNLB {
		<-a.turn
		defer func() { a.turn <- struct{}{} }()
		return a.refresh(ctx)
	}
	return err
}

// isHeld says whether the caller is to be released.
func (a *applier) isHeld() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}

// refresh reads the balancer. It is the caller's turn.
func (a *applier) refresh(ctx context.Context) error {
	b, err := a.cloud.Get(ctx, a.current.ID)
	if err != nil {
		return err
	}
	a.current = b
	return nil
}
