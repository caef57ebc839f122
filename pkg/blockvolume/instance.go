// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"sync"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/internal/keylock"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// instanceAge is how old what is known of an instance may be: its compartment, its shape and its launch options, which
// hardly ever change. A refusal by the cloud makes it be read anew.
const instanceAge = 10 * time.Minute

// stateTerminated is the last state of an instance.
const stateTerminated = "TERMINATED"

// instanceFacts remember instances.
type instanceFacts struct {
	read func(ctx context.Context, id string) (*oci.Instance, error)
	turn *keylock.Locks[string] // of who asks the cloud, by instance

	mu   sync.Mutex
	byID map[string]instanceFact
}

type instanceFact struct {
	instance *oci.Instance
	at       time.Time
}

func newInstanceFacts(read func(context.Context, string) (*oci.Instance, error)) *instanceFacts {
	return &instanceFacts{read: read, turn: keylock.New[string](), byID: map[string]instanceFact{}}
}

// get returns an instance as it was at most instanceAge ago. Errors: ErrNotFound if it is proven to be gone.
func (f *instanceFacts) get(ctx context.Context, id string) (*oci.Instance, error) {
	if known := f.known(id); known != nil {
		return known, nil
	}
	release, err := lock(ctx, f.turn, id, "instance "+id)
	if err != nil {
		return nil, err
	}
	defer release()
	if known := f.known(id); known != nil { // somebody else has just asked
		return known, nil
	}
	return f.fresh(ctx, id)
}

func (f *instanceFacts) known(id string) *oci.Instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fact, ok := f.byID[id]; ok && time.Since(fact.at) < instanceAge {
		return fact.instance
	}
	return nil
}

// fresh reads an instance.
func (f *instanceFacts) fresh(ctx context.Context, id string) (*oci.Instance, error) {
	now := time.Now()
	instance, err := f.read(ctx, id)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		delete(f.byID, id)
		return nil, err
	}
	for other, fact := range f.byID {
		if now.Sub(fact.at) > instanceAge {
			delete(f.byID, other)
		}
	}
	f.byID[id] = instanceFact{instance, now}
	return instance, nil
}

// lookForInstance reads an instance. One that is TERMINATED, or absent from a complete list, is ErrNotFound.
func (s *Service) lookForInstance(ctx context.Context, id string) (*oci.Instance, error) {
	var instance *oci.Instance
	presence, proof, err := oci.Decide(ctx, oci.Evidence{
		Read: func(ctx context.Context) (string, error) {
			i, err := s.deps.Compute.GetInstance(ctx, id)
			if err != nil {
				return "", err
			}
			instance = i
			return i.State, nil
		},
		Terminal:    []string{stateTerminated},
		Compartment: s.cfg.CompartmentID,
		List: func(ctx context.Context) (string, bool, error) {
			for _, compartment := range s.compartments() {
				all, err := s.deps.Compute.ListInstances(ctx, compartment, "")
				if err != nil {
					return "", false, err
				}
				for _, i := range all {
					if i.ID == id {
						instance = i
						return i.State, true, nil
					}
				}
			}
			return "", false, nil
		},
	})
	switch presence {
	case oci.Present:
		return instance, nil
	case oci.Gone:
		return nil, problem(ErrNotFound, "instance %s does not exist any more (%s)", id, proof)
	default:
		return nil, failed(err, "read instance %s", id)
	}
}
