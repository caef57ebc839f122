// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

const creating = "create the balancer"

// create makes a balancer after its absence was proven by lists that were begun at since, and waits until it is ACTIVE.
func (op *operation) create(ctx context.Context, settings Settings, problems Problems, since time.Time) (*oci.Balancer, *Model, error) {
	if len(problems.Fatal()) > 0 {
		op.warnings = append(op.warnings, problems.Warnings()...)
		op.refusedRules(ctx, nil)
		return nil, nil, op.refuseProblems(problems.Fatal())
	}
	facts, err := op.readFacts(ctx, settings)
	if err != nil {
		return nil, nil, err
	}
	model, err := op.desired(settings, problems, facts)
	if err != nil {
		op.refusedRules(ctx, nil)
		return nil, nil, err
	}
	if gate := op.specHash(); op.mem.gate == gate && time.Now().Before(op.mem.notBefore) {
		return nil, nil, op.delayed()
	}
	if err := op.openForCreation(ctx, settings, model); err != nil {
		return nil, nil, err
	}
	token := op.createToken(model)
	if at := op.settled(token, since); !at.IsZero() {
		return nil, nil, op.settling(at)
	}
	if err := op.claimRuleSets(ctx, model.RuleSets); err != nil {
		return nil, nil, err
	}
	work, id, err := op.sendCreate(ctx, model, token)
	if err != nil {
		return nil, nil, err
	}
	live, err := op.created(ctx, model.Kind, work, id)
	return live, model, firstError(err, op.rulesDone(ctx, err))
}

// createToken is the same in every process for the same wish. Once a balancer made under it is gone, or the service does
// not accept it any more, it has to be another one.
func (op *operation) createToken(model *Model) string {
	owner := string(op.svc.UID)
	before := op.mem.gone
	if before == "" {
		before = op.svc.Annotations[AnnotationOCID]
	}
	if before != "" {
		owner += " after " + before
	}
	if !op.mem.burnt.IsZero() {
		owner += " again " + op.mem.burnt.String()
	}
	if op.as.name != "" {
		owner += " as " + op.as.name // tokens are the principal's: another one may make a second balancer under the same
	}
	body := model.Balancer()
	body.Tags = oci.Tags{}
	return oci.RetryToken("create "+string(model.Kind), op.m.cfg.ClusterID, owner, body)
}

// settled says from when on a create under the given token cannot make a second balancer; zero means now. since is when
// the lists that show the absence were begun; zero stands for lists that prove nothing.
//
// The same token cannot make a second one. Otherwise, what an earlier create made, the answer of which may be lost, must
// have had the time to show up in the lists. A process that was started after the Service does not know what was sent
// before it.
func (op *operation) settled(token string, since time.Time) time.Time {
	var sent time.Time
	switch last := op.mem.create; {
	case last != nil && last.token == token, last != nil && last.known:
		return time.Time{}
	case last != nil:
		sent = last.at
	case op.mem.first, op.svc.CreationTimestamp.Time.After(op.m.started):
		return time.Time{}
	default:
		sent = op.m.started
	}
	if at := sent.Add(op.m.cfg.AbsenceSettle); since.Before(at) {
		return at
	}
	return time.Time{}
}

// settling looks into the lists now and then until the given time: a balancer that shows up ends the wait.
func (op *operation) settling(at time.Time) *Pending {
	return pendingUntil("proof that an earlier create made no balancer", earlier(at, time.Now().Add(lastPoll)))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// sendCreate sends the create, with the marks unless the limit of tags does not allow them.
func (op *operation) sendCreate(ctx context.Context, model *Model, token string) (work, id string, err error) {
	cloud := op.cloud(model.Kind)
	body := model.Balancer()
	body.Freeform = withTags(body.Freeform, marksOf(op.svc, op.m.cfg.ClusterID))
	op.mem.create = &createAttempt{token: token, at: time.Now()}
	send := func() error {
		callCtx, cancel := op.call(ctx)
		defer cancel()
		work, id, err = cloud.Create(callCtx, body, token)
		return err
	}
	op.log.Info("Creating balancer", "kind", model.Kind, "displayName", model.DisplayName, "compartment", model.CompartmentID)
	err = send()
	var refused *oci.Error
	if errors.As(err, &refused) && refused.Status == http.StatusBadRequest && overTagLimit(body.Tags) {
		body.Freeform = maps.Clone(model.Tags.Freeform)
		if again := send(); again == nil {
			err = nil
			op.warnings = append(op.warnings, noMarks("its other tags leave no room"))
		}
	}
	op.m.lists.invalidate(op.place(model.Kind, model.CompartmentID))
	if err != nil {
		return "", "", op.createRefused(model.Kind, err)
	}
	op.mem.quiet = true
	op.mem.id = id
	op.mem.gate = ""
	return work, id, nil
}

// createRefused judges a create that did not succeed.
func (op *operation) createRefused(kind oci.BalancerKind, err error) error {
	var answer *oci.Error
	definite := errors.As(err, &answer) && answer.Status >= 400 && answer.Status < 500
	switch {
	case errors.Is(err, oci.ErrInvalidRetryToken):
		// A create under this token was carried out once: with other tags, or for a balancer that is gone. In the first
		// case there is one that has not shown up yet.
		op.mem.create.at = time.Now()
		op.mem.burnt = op.mem.create.at
		return op.settling(op.mem.create.at.Add(op.m.cfg.AbsenceSettle))
	case errors.Is(err, oci.ErrLimitExceeded):
		op.mem.create.known = true
		return op.slowly(op.tell(explain(creating, kind, err)), ReasonLimitExceeded)
	case definite:
		op.mem.create.known = true
	}
	return op.refuse(creating, kind, err)
}

// slowly delays the next create, unless the Service is changed before. The user was told why.
func (op *operation) slowly(text, reason string) error {
	op.mem.gate, op.mem.notBefore = op.specHash(), time.Now().Add(op.m.cfg.SlowRetry)
	op.mem.gateText, op.mem.gateReason = text, reason
	return op.delayed()
}

func (op *operation) delayed() error {
	p := pendingUntil(op.mem.gateText, op.mem.notBefore)
	p.Reason = op.mem.gateReason
	return p
}

// specHash tells whether the user changed the Service: the generation counts changes of the spec.
func (op *operation) specHash() string {
	annotations := maps.Clone(op.svc.Annotations)
	delete(annotations, AnnotationOCID)
	delete(annotations, AnnotationLastApplied)
	text, err := json.Marshal(annotations)
	if err != nil {
		panic("loadbalancer: annotations have no JSON form: " + err.Error()) // a map of strings always has one
	}
	sum := sha256.Sum256(append(text, strconv.FormatInt(op.svc.Generation, 10)...))
	return hex.EncodeToString(sum[:])
}

// created waits for the end of a create.
func (op *operation) created(ctx context.Context, kind oci.BalancerKind, work, id string) (*oci.Balancer, error) {
	cloud := op.cloud(kind)
	op.mem.open = append(op.mem.open, openWork{kind: kind, id: work, what: creating, create: true})
	if err := op.finishOpen(ctx); err != nil {
		return nil, err
	}
	if op.mem.id != "" {
		id = op.mem.id
	}
	if id == "" {
		return nil, pendingUntil("the OCID of the new balancer", time.Now().Add(lastPoll))
	}
	live, err := cloud.Get(ctx, id)
	if errors.Is(err, oci.ErrNotFound) {
		return nil, pendingUntil("the new balancer to show up", time.Now().Add(lastPoll))
	}
	if err != nil {
		return nil, op.refuse("read the new balancer", kind, err)
	}
	if live, err = op.atRest(ctx, live, stateCreating, stateUpdating); err != nil {
		return nil, err
	}
	if op.mem.create != nil {
		op.mem.create.known = true
	}
	if live == nil || live.State != stateActive {
		return nil, pendingUntil("the new balancer to become active", time.Now().Add(lastPoll))
	}
	return live, nil
}

// creationFailed tells why a create failed, removes what it left, and delays the next one.
func (op *operation) creationFailed(ctx context.Context, kind oci.BalancerKind, failed *oci.WorkRequestError) error {
	text := op.tell(explain(creating, kind, failed))
	id := failed.WorkRequest.ResourceID
	if id == "" {
		id = op.mem.id
	}
	delayed := op.slowly(text, ReasonWorkRequestFailed)
	if id == "" {
		return delayed
	}
	op.mem.id = id
	b, err := op.cloud(kind).Get(ctx, id)
	switch {
	case errors.Is(err, oci.ErrNotFound): // the next lookup finds out
		return delayed
	case err != nil:
		return op.refuse("read the balancer whose creation failed", kind, err)
	case b.State != stateFailed:
		return delayed
	}
	if err := op.removeOne(ctx, b); err != nil {
		return err
	}
	return delayed
}

// removeFailed removes a balancer whose creation failed, so that another one can be made.
func (op *operation) removeFailed(ctx context.Context, b *oci.Balancer) error {
	why := op.whyFailed(ctx, b)
	if op.wasActive(b) {
		text := fmt.Sprintf("balancer %s is FAILED%s; it has served the Service before, so it is not replaced: delete it, or repair it with the help of Oracle", b.ID, why.text)
		told := op.tell(explanation{reason: ReasonBalancerFailed, text: text, key: b.ID + why.key})
		return &Refusal{Reason: ReasonBalancerFailed, RetryAfter: op.mem.backoff(), text: told}
	}
	text := op.tell(explanation{reason: ReasonBalancerFailed, text: fmt.Sprintf("the creation of balancer %s failed%s; it is deleted and made anew", b.ID, why.text), key: b.ID + why.key})
	if err := op.removeOne(ctx, b); err != nil {
		return err
	}
	return op.slowly(text, ReasonBalancerFailed)
}

// whyFailed finds the work request that failed.
func (op *operation) whyFailed(ctx context.Context, b *oci.Balancer) explanation {
	cloud := op.cloud(b.Kind)
	all, err := cloud.ListWorkRequests(ctx, b.ID, b.CompartmentID)
	if err != nil {
		op.log.Error(err, "Could not find out why the balancer failed", "balancer", b.ID)
		return explanation{}
	}
	for _, w := range all {
		if w.State != oci.WorkRequestFailed {
			continue
		}
		if full, err := cloud.GetWorkRequest(ctx, w.ID); err == nil {
			w = full
		}
		e := explainWorkRequest("", &oci.WorkRequestError{WorkRequest: w})
		e.text = e.text[1:] // ": "
		return explanation{text: ":" + e.text, key: e.key}
	}
	return explanation{}
}
