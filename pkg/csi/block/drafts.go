// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// Drafts remembers, beyond the life of the process, the names of volumes that were asked for and have no PersistentVolume yet. Only
// external-provisioner knows of them otherwise, and only in its memory: when its process ends, and the claim is deleted before it
// comes back, nobody would ever ask for the volume again, nor delete it.
type Drafts interface {
	// Keep notes a name. It is kept when Keep has returned nil.
	Keep(ctx context.Context, name string) error
	// Drop forgets names.
	Drop(ctx context.Context, names ...string) error
	// List are the names that are kept, and which of them have a PersistentVolume, or a claim that still wants one.
	List(ctx context.Context) ([]Draft, error)
}

// Draft is a volume that was asked for.
type Draft struct {
	Name      string
	HasVolume bool // there is a PersistentVolume of the name
	HasClaim  bool // the claim that it was asked for is there: it will be asked for again
}

const (
	// draftPause is the time between two looks at the drafts.
	draftPause = 20 * time.Second
	// draftRest is how long after the last request for a volume, or the start of the process, it is left alone: longer than what was made may be
	// missing from lists.
	draftRest = time.Minute
)

// requests knows when volumes were asked for last, in this process.
type requests struct {
	mu    sync.Mutex
	now   map[string]int       // under way
	ended map[string]time.Time // of those that are kept as drafts
	start time.Time
}

func newRequests() *requests {
	return &requests{now: map[string]int{}, ended: map[string]time.Time{}, start: time.Now()}
}

// begin notes a request, and says whether the name is kept already.
func (r *requests) begin(name string) (kept bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now[name]++
	_, kept = r.ended[name]
	return kept
}

// end notes the end of a request whose name is kept.
func (r *requests) end(name string, kept bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now[name]--; r.now[name] == 0 {
		delete(r.now, name)
	}
	if kept {
		r.ended[name] = time.Now()
	}
}

// rests says whether nobody has asked for a volume for a while.
func (r *requests) rests(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.ended[name]
	if last.IsZero() {
		last = r.start
	}
	return r.now[name] == 0 && time.Since(last) >= draftRest
}

func (r *requests) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ended, name)
}

// draft keeps the name of a volume before anything of it is made.
func (c *Controller) draft(ctx context.Context, name string) (end func(), err error) {
	if c.options.Drafts == nil {
		return func() {}, nil
	}
	if !c.requests.begin(name) {
		if err := c.options.Drafts.Keep(ctx, name); err != nil {
			c.requests.end(name, false)
			return nil, fmt.Errorf("note that volume %s is being made, so that it is not lost: %w", name, err)
		}
	}
	return func() { c.requests.end(name, true) }, nil
}

// CollectDrafts looks at the drafts from time to time, until ctx ends: those that have become PersistentVolumes are forgotten, and those that
// nobody wants any more are deleted.
func (c *Controller) CollectDrafts(ctx context.Context) {
	if c.options.Drafts == nil {
		return
	}
	tick := time.NewTicker(draftPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := c.collectOnce(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Volumes that nobody wants any more are looked for again later")
		}
	}
}

func (c *Controller) collectOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, draftRest)
	defer cancel()
	drafts, err := c.options.Drafts.List(ctx)
	if err != nil {
		return err
	}
	var done []string
	for _, d := range drafts {
		switch {
		case !c.requests.rests(d.Name), d.HasClaim && !d.HasVolume:
			continue
		case !d.HasVolume:
			if err := c.options.Volumes.Discard(ctx, d.Name); err != nil {
				klog.FromContext(ctx).Info("Nobody wants a volume any more; it is deleted", "volume", d.Name, "state", err.Error())
				continue
			}
		}
		c.requests.forget(d.Name)
		done = append(done, d.Name)
	}
	if len(done) == 0 {
		return nil
	}
	return c.options.Drafts.Drop(ctx, done...)
}
