// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"time"
)

// States of work requests.
const (
	workAccepted   = "ACCEPTED"
	workInProgress = "IN_PROGRESS"
	workSucceeded  = "SUCCEEDED"
	workFailed     = "FAILED"
)

// workProblem is one entry of the error list of a work request.
type workProblem struct {
	code    string // BAD_INPUT, INTERNAL_ERROR
	message string
	at      time.Time
}

// workRequest is the record of an asynchronous operation. Services render it in their own form.
type workRequest struct {
	id          string
	service     string
	operation   string // in the service's vocabulary: "CreateListener", "CREATE_LISTENER"
	compartment string
	target      string // OCID of the resource that it works on
	entity      string // entityType of the target: "NetworkLoadBalancer"
	state       string
	percent     float32
	accepted    time.Time
	started     time.Time // zero until then
	finished    time.Time
	problems    []workProblem
	related     []workRelation
}

// workRelation is a further resource that a work request has to do with.
type workRelation struct {
	entity, id string
}

// workRequests are listed by their target, by related resources and by workKey.
var workRequests = newKind(kindInfo{label: "work request"}, func(w *workRequest) facets {
	f := facets{
		id: w.id, compartment: w.compartment, state: w.state,
		keys: []string{w.target, workKey(w.service, w.compartment)},
	}
	for _, r := range w.related {
		f.keys = append(f.keys, r.id)
	}
	return f
})

// workKey is the key under which the work requests of a service in a compartment are listed.
func workKey(service, compartment string) string { return service + "/" + compartment }

// task is an asynchronous operation. Tasks with the same target run one after another, in the order of their
// acceptance; the others are in parallel.
type task struct {
	ocidType    string // of the work request: "loadbalancerworkrequest"
	operation   string
	compartment string
	target      string
	entity      string
	duration    string // name of the running time in the durations table
	related     []workRelation

	// start runs when the request becomes IN_PROGRESS; may be nil.
	start func()
	// finish applies the effect. Problems make the request FAILED; then finish must have changed nothing.
	finish func() []workProblem
	// run is there instead of finish where the effect takes its own time: it calls done, with the lock held.
	run func(done func([]workProblem))
	// failed runs after a failure, whether found by finish or injected; may be nil. None of these runs once the
	// target is gone.
	failed func([]workProblem)

	id       string
	resource *resource // the target, nil where it is not a resource of the region
	failure  *workFailure
}

// orphaned says whether somebody else removed the target meanwhile.
func (t *task) orphaned() bool { return t.resource != nil && t.resource.gone }

// submit accepts an asynchronous operation and returns its work request.
func (c *call) submit(t task) *workRequest {
	t.id = c.newOCID(t.ocidType)
	t.failure = c.failure
	t.resource = c.store.byID[t.target]
	work := &workRequest{
		id: t.id, service: c.operation.Service, operation: t.operation, compartment: t.compartment,
		target: t.target, entity: t.entity, state: workAccepted, accepted: c.now, related: t.related,
	}
	workRequests.insert(c.cloud, work)
	c.record.WorkRequest = t.id
	c.enqueue(&t)
	return work
}

func (cl *cloud) enqueue(t *task) {
	cl.queues[t.target] = append(cl.queues[t.target], t)
	if len(cl.queues[t.target]) == 1 {
		cl.startTask(t)
	}
}

// busy says whether a task of this target is accepted or running.
func (cl *cloud) busy(target string) bool { return len(cl.queues[target]) > 0 }

// startTask lets the first task of a queue run: a short time as ACCEPTED, then IN_PROGRESS, then its end.
func (cl *cloud) startTask(t *task) {
	cl.after(cl.duration("work.accept"), func() {
		workRequests.update(cl, t.id, func(w *workRequest) {
			w.state, w.started, w.percent = workInProgress, cl.now, 10
		})
		if t.start != nil && !t.orphaned() {
			t.start()
		}
		cl.after(cl.duration(t.duration), func() { cl.finishTask(t) })
	})
}

func (cl *cloud) finishTask(t *task) {
	switch {
	case t.orphaned():
		cl.endTask(t, badInput(messageNotFound))
	case t.failure != nil:
		cl.endTask(t, []workProblem{{code: t.failure.code, message: t.failure.message}})
	case t.run != nil:
		t.run(func(problems []workProblem) { cl.endTask(t, problems) })
	default:
		cl.endTask(t, t.finish())
	}
}

func (cl *cloud) endTask(t *task, problems []workProblem) {
	for i := range problems {
		problems[i].at = cl.now
	}
	workRequests.update(cl, t.id, func(w *workRequest) {
		w.state, w.percent, w.finished = workSucceeded, 100, cl.now
		if len(problems) > 0 {
			w.state, w.problems = workFailed, problems
		}
	})
	if len(problems) > 0 && t.failed != nil && !t.orphaned() {
		t.failed(problems)
	}
	cl.after(cl.behaviour.WorkRequestLife, func() { workRequests.remove(cl, t.id) })
	cl.dequeue(t)
}

func (cl *cloud) dequeue(t *task) {
	rest := cl.queues[t.target][1:]
	if len(rest) == 0 {
		delete(cl.queues, t.target)
		return
	}
	cl.queues[t.target] = rest
	cl.startTask(rest[0])
}

// badInput is the problem list of a request that the service could not carry out.
func badInput(message string) []workProblem {
	return []workProblem{{code: "BAD_INPUT", message: message}}
}
