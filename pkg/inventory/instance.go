// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// ErrHeldUp says that a single read got no answer in time. It says nothing about the object.
var ErrHeldUp = errors.New("no answer in time: OCI throttles, or is slow")

const (
	// patience bounds the wait for a single read of an instance, throttling included. Who waits longer holds a worker of
	// the framework's, and with it all other nodes of its round: a lifecycle round begins every 5 s.
	patience = 10 * time.Second

	// listsFirst is how long, after a single read was held up, lists are asked even about few instances.
	listsFirst = time.Minute
)

// heldUp remembers when a single read was held up last.
type heldUp struct {
	mu   sync.Mutex
	last time.Time
}

func (h *heldUp) note() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = time.Now()
}

func (h *heldUp) recently() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.last.IsZero() && time.Since(h.last) < listsFirst
}

// Instance returns the instance of that OCID. The OCID is enough: no compartment is needed.
//
// A crowd is answered from lists, and so is everybody for a while after a single read was held up. What the lists do not
// have is read by itself. That takes no longer than patience, and is ErrHeldUp then.
func (i *Inventory) Instance(ctx context.Context, id string, need Need) (*oci.Instance, error) {
	lists := need.crowded() || i.heldUp.recently()
	var denied []Fallback // the lists that answered 404
	if lists {
		var err error
		var instance *oci.Instance
		instance, denied, err = i.listed(ctx, id, need)
		if instance != nil || err != nil && need.crowded() {
			return instance, err
		}
	}
	instance, err := i.single(ctx, id, need, denied)
	if !errors.Is(err, ErrHeldUp) {
		return instance, err
	}
	i.heldUp.note()
	if lists {
		return nil, err
	}
	if instance, _, listErr := i.listed(ctx, id, need); listErr == nil && instance != nil {
		return instance, nil
	}
	return nil, err
}

// single reads one instance. In a pass over many whose lists a policy hides, it waits for its turn first.
func (i *Inventory) single(ctx context.Context, id string, need Need, denied []Fallback) (*oci.Instance, error) {
	if _, age, known := i.instances.lastWithAge(id); need.crowded() && len(denied) > 0 && (!known || age > need.MaxAge) {
		i.pace.set(denied[0].key(), need.Crowd)
		if err := i.pace.wait(ctx, need, "instance "+id); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrHeldUp)
	defer cancel()
	instance, err := i.instances.get(ctx, id, need.MaxAge, func(ctx context.Context) (*oci.Instance, error) {
		instance, err := i.compute.GetInstance(ctx, id)
		if err != nil {
			return nil, err
		}
		return i.trimmed(instance), nil
	})
	if err != nil {
		return nil, err
	}
	for _, f := range denied {
		// Others were hints, which may be wrong.
		if f.CompartmentID == instance.CompartmentID && need.crowded() {
			i.fallBack(f, 1)
		}
	}
	return instance, nil
}

// listed looks an instance up in the lists of the compartments that it may be in; nil if they do not have it. A list that
// a policy hides is passed over: a single read may be allowed.
func (i *Inventory) listed(ctx context.Context, id string, need Need) (instance *oci.Instance, denied []Fallback, err error) {
	if last, age, ok := i.instances.lastWithAge(id); ok && age <= need.MaxAge {
		return last, nil, nil
	}
	for _, compartment := range i.compartmentsOf(id, need.Compartments) {
		all, err := i.list(ctx, compartment, need.MaxAge)
		if errors.Is(err, oci.ErrNotFound) {
			denied = append(denied, Fallback{List: ListOfInstances, CompartmentID: compartment, Nodes: need.Crowd, Denied: err})
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if found := all[id]; found != nil {
			return found, nil, nil
		}
	}
	return nil, denied, nil
}
