// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
)

// balancerState is what the workload knows of a balancer of either kind.
type balancerState struct {
	id, etag, state string
	tags            map[string]string
	sets            map[string][]string // name to addresses of its backends, sorted
	listeners       map[string]int      // name to port
}

// balancerSpec is what a new balancer is made of.
type balancerSpec struct {
	name      string
	tags      map[string]string
	ports     []int
	addresses []string // of the backends of every port
}

// balancerAPI is the API of one kind of balancer. A method is one call; those that return work have only begun it.
type balancerAPI interface {
	list(ctx context.Context, name string) ([]balancerState, error) // all pages
	get(ctx context.Context, id string) (balancerState, error)
	create(ctx context.Context, token string, spec balancerSpec) (id, work string, err error)
	remove(ctx context.Context, id string) (work string, err error)
	setTags(ctx context.Context, b balancerState, tags map[string]string) (work string, err error)
	// putSet creates a backend set, or replaces the backends of one.
	putSet(ctx context.Context, b balancerState, name string, port int, addresses []string) (work string, err error)
	removeSet(ctx context.Context, b balancerState, name string) (work string, err error)
	addListener(ctx context.Context, b balancerState, name string, port int) (work string, err error)
	removeListener(ctx context.Context, b balancerState, name string) (work string, err error)
	// progress returns the state of work, and for creates the balancer.
	progress(ctx context.Context, work string) (state, id string, err error)
}

// balancer is one balancer of the workload, as its owner wants it.
type balancer struct {
	api     balancerAPI
	cluster string
	owner   string
	nodes   *nodes
	ports   []int // listeners; none: no balancer

	id         string
	generation int // of the retry token of creates
}

// String implements fmt.Stringer.
func (b *balancer) String() string { return fmt.Sprintf("balancer of %s (%s)", b.owner, b.id) }

func (b *balancer) forget() { b.id = "" }

func (b *balancer) marks() map[string]string {
	return map[string]string{oracle.TagCluster: b.cluster, oracle.TagOwner: b.owner}
}

// misses is how often in a row something must be missing from complete lists before it counts as absent, with pauses.
// The region hides new resources from the first reads.
const misses = eventualReads + 1

// find returns the balancer, or nil when it is certainly not there. A 404 alone proves nothing: the policy may be missing.
func (b *balancer) find(ctx context.Context) (*balancerState, error) {
	for n := range misses {
		if n > 0 {
			if err := sleep(ctx, 10*time.Second); err != nil {
				return nil, err
			}
		}
		found, err := b.look(ctx)
		if found != nil || err != nil {
			return found, err
		}
	}
	b.id = ""
	return nil, nil
}

// look reads the balancer once; nil and no error is a miss.
func (b *balancer) look(ctx context.Context) (*balancerState, error) {
	var refused error
	if b.id != "" {
		got, err := attempt(ctx, func(ctx context.Context) (balancerState, error) { return b.api.get(ctx, b.id) })
		switch {
		case err == nil && got.state != "DELETED":
			return &got, nil
		case err != nil && !absent(err):
			return nil, err
		}
		refused = err
	}
	list, err := b.api.list(ctx, b.owner)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if l := &list[i]; l.state != "DELETED" && b.owns(l) {
			if b.id == l.id && refused != nil {
				return nil, refused // it is there, and may not be read
			}
			b.id = l.id
			return l, nil
		}
	}
	return nil, nil
}

// owns says whether a balancer with the right name is this one. Answers may lack the tags; the names are unique.
func (b *balancer) owns(l *balancerState) bool {
	return l.tags == nil || l.tags[oracle.TagOwner] == b.owner && l.tags[oracle.TagCluster] == b.cluster
}

// step implements thing.
func (b *balancer) step(ctx context.Context) (bool, error) {
	got, err := b.find(ctx)
	switch {
	case err != nil:
		return false, err
	case got == nil && len(b.ports) == 0:
		return true, nil
	case got == nil:
		return false, b.create(ctx)
	case got.state == "CREATING", got.state == "UPDATING", got.state == "DELETING":
		return false, sleep(ctx, 5*time.Second)
	case len(b.ports) == 0, got.state == "FAILED":
		return false, b.change(ctx, func(ctx context.Context) (string, error) { return b.api.remove(ctx, got.id) })
	}
	next := b.next(*got)
	if next == nil {
		return true, nil
	}
	return false, b.change(ctx, next)
}

func (b *balancer) create(ctx context.Context) error {
	token := b.cluster + "-" + b.owner + "-" + strconv.Itoa(b.generation)
	spec := balancerSpec{name: b.owner, tags: b.marks(), ports: slices.Clone(b.ports), addresses: b.nodes.addresses()}
	type created struct{ id, work string }
	got, err := attempt(ctx, func(ctx context.Context) (created, error) {
		id, work, err := b.api.create(ctx, token, spec)
		return created{id, work}, err
	})
	if tokenSpent(err) {
		b.generation++
	}
	if err != nil {
		return err
	}
	b.id = got.id
	return b.wait(ctx, got.work)
}

var errWork = errors.New("the work request failed")

// change starts work and waits for its end.
func (b *balancer) change(ctx context.Context, begin func(context.Context) (string, error)) error {
	work, err := attempt(ctx, begin)
	if err != nil {
		return err
	}
	return b.wait(ctx, work)
}

// wait polls a work request until its end.
func (b *balancer) wait(ctx context.Context, work string) error {
	type progress struct{ state, id string }
	for {
		if err := sleep(ctx, 10*time.Second); err != nil {
			return err
		}
		got, err := attempt(ctx, func(ctx context.Context) (progress, error) {
			state, id, err := b.api.progress(ctx, work)
			return progress{state, id}, err
		})
		if err != nil {
			return err
		}
		if b.id == "" {
			b.id = got.id
		}
		switch got.state {
		case "SUCCEEDED":
			return nil
		case "FAILED":
			return errWork
		}
	}
}

func partName(port int) string { return "TCP-" + strconv.Itoa(port) }

// next returns the next change that is needed, or nil.
func (b *balancer) next(got balancerState) func(context.Context) (string, error) {
	for key, v := range b.marks() {
		if got.tags != nil && got.tags[key] != v {
			return func(ctx context.Context) (string, error) { return b.api.setTags(ctx, got, b.marks()) }
		}
	}
	addresses := b.nodes.addresses()
	wanted := map[string]bool{}
	for _, port := range b.ports {
		name := partName(port)
		wanted[name] = true
		if set, ok := got.sets[name]; !ok || !slices.Equal(set, addresses) {
			return func(ctx context.Context) (string, error) { return b.api.putSet(ctx, got, name, port, addresses) }
		}
		if got.listeners[name] != port {
			return func(ctx context.Context) (string, error) { return b.api.addListener(ctx, got, name, port) }
		}
	}
	for name := range got.listeners {
		if !wanted[name] {
			return func(ctx context.Context) (string, error) { return b.api.removeListener(ctx, got, name) }
		}
	}
	for name := range got.sets {
		if !wanted[name] {
			return func(ctx context.Context) (string, error) { return b.api.removeSet(ctx, got, name) }
		}
	}
	return nil
}
