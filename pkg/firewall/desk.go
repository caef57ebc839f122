// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

const (
	// serveTimeout bounds the work for requests that came together, which goes on when a caller has gone.
	serveTimeout = 2 * time.Minute
	// maxAttempts bounds the updates of a target that others keep changing.
	maxAttempts = 12
	// firstPause and lastPause bound the mean pauses between these attempts, which double.
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// request is what one owner asks of one target.
type request struct {
	owner  string // empty: nobody in particular
	want   ruleSet
	legacy ruleSet // of a dry request: besides those in the book
	remove bool    // what nobody needs goes
	dry    bool    // say what Open and Settle would do, with want as all that the owner needs

	done chan struct{} // closed when outcome is there
	outcome
}

// outcome is what came of a request.
type outcome struct {
	add, remove   []Rule
	kept, waiting []Rule
	edited        []string
	err           error
}

// finish hands the outcome over.
func (r *request) finish(err error) {
	if err != nil {
		r.outcome = outcome{err: err}
	}
	close(r.done)
}

// state is a target as it was read.
type state struct {
	at    time.Time // when the read began
	rules []held
	list  *oci.SecurityList // of a security list
}

// kind is how the two kinds of targets differ.
type kind interface {
	read(ctx context.Context, id string) (*state, error)
	// write applies a plan to what was read. It returns the state afterwards; nil if the target has to be read for that.
	write(ctx context.Context, id string, s *state, p *plan) (*state, error)
	// guarded says whether a write fails when the target has changed since it was read.
	guarded() bool
	// again says whether it makes sense to read, plan and write once more after an error of write.
	again(error) bool
	limits() limits
}

// desk is where requests for one target are served, one batch at a time.
type desk struct {
	m      *Manager
	target Target
	kind   kind

	mu      sync.Mutex
	queue   []*request
	busy    bool
	wasRead bool
	place   Place // where the target was seen

	state *state // of whoever is busy; nil if the target has to be read
}

// submit queues a request. It is served with those that arrive until the desk gets to it.
func (d *desk) submit(ctx context.Context, r *request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = append(d.queue, r)
	if !d.busy {
		d.busy = true
		go d.work(context.WithoutCancel(ctx))
	}
}

func (d *desk) work(ctx context.Context) {
	for {
		d.mu.Lock()
		batch := d.queue
		d.queue = nil
		d.busy = len(batch) > 0
		d.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		serveCtx, cancel := context.WithTimeout(ctx, serveTimeout)
		d.serve(serveCtx, batch)
		cancel()
	}
}

// serve finishes all requests of a batch.
func (d *desk) serve(ctx context.Context, batch []*request) {
	read := false
	for attempt := 1; ; {
		if d.state == nil || time.Since(d.state.at) > d.m.cfg.MaxAge {
			if err := d.read(ctx); err != nil {
				finishAll(batch, err)
				return
			}
			read = true
		}
		p := d.m.join(d, batch)
		batch = finishIdle(batch)
		if p.empty() {
			return
		}
		if !read && !d.kind.guarded() {
			d.state = nil // what others did since the last read would not be noticed
			continue
		}
		err := d.write(ctx, p)
		switch {
		case err == nil:
			finishAll(batch, nil)
			return
		case len(batch) > 1 && refused(err):
			for _, r := range batch {
				d.serve(ctx, []*request{r}) // so that the others do not fail with the one that is to blame
			}
			return
		case !d.kind.again(err):
			finishAll(batch, explain(d.target, err))
			return
		case attempt == maxAttempts:
			finishAll(batch, &ConflictError{Target: d.target, Attempts: attempt, err: err})
			return
		case pause(ctx, attempt) != nil:
			finishAll(batch, explain(d.target, err))
			return
		}
		attempt++
	}
}

func (d *desk) read(ctx context.Context) error {
	d.state = nil
	at := time.Now()
	s, err := d.kind.read(ctx, d.target.ID)
	if err != nil {
		return explain(d.target, err)
	}
	s.at = at
	d.state = s
	d.mu.Lock()
	d.wasRead = true
	d.mu.Unlock()
	if s.list != nil {
		d.seenIn(Place{CompartmentID: s.list.CompartmentID, VCNID: s.list.VCNID})
	}
	return nil
}

func (d *desk) write(ctx context.Context, p *plan) error {
	// Not the logger of the context: that is of the owner who came first.
	klog.Background().Info("Changing security rules", "targetKind", string(d.target.Kind), "target", d.target.ID,
		"adding", p.adding(), "removing", p.dropping(), "rules", len(p.have))
	s := d.state
	d.state = nil
	after, err := d.kind.write(ctx, d.target.ID, s, p)
	if err == nil {
		d.state = after
	}
	return err
}

func (d *desk) seenIn(p Place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.place = p
}

// whereSeen returns where the target was seen, if that is known, and whether its rules were ever read.
func (d *desk) whereSeen() (Place, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.place, d.wasRead
}

// finishIdle finishes the requests that are answered without a write, and returns the others.
func finishIdle(batch []*request) []*request {
	var rest []*request
	for _, r := range batch {
		if r.dry || len(r.add)+len(r.outcome.remove) == 0 {
			close(r.done)
			continue
		}
		rest = append(rest, r)
	}
	return rest
}

// finishAll finishes requests, some of which may have errors of their own.
func finishAll(batch []*request, err error) {
	for _, r := range batch {
		r.finish(err)
	}
}

// refused says whether the cloud found something wrong with what it was sent. Where a policy is missing it is 404, whatever
// is sent.
func refused(err error) bool {
	var cloud *oci.Error
	return errors.As(err, &cloud) && cloud.Status == http.StatusBadRequest
}

// pause waits before the next attempt, spread over ±50 % so that two programs do not stay in step.
func pause(ctx context.Context, attempt int) error {
	mean := min(firstPause<<(attempt-1), lastPause)
	timer := time.NewTimer(time.Duration(float64(mean) * (0.5 + rand.Float64()))) //nolint:gosec // no secret
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
