// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Pauses between two reads of a balancer that is busy: network load balancers need 10 to 30 s for a change.
const (
	firstPoll  = 500 * time.Millisecond
	pollGrowth = 1.6
	lastPoll   = 5 * time.Second
)

// poll reads a balancer until it is in none of the busy states. Nil means that it is gone.
func (op *operation) poll(ctx context.Context, cloud Cloud, b *oci.Balancer, pause func(time.Duration) error, busy ...string) (*oci.Balancer, error) {
	for wait := firstPoll; ; wait = min(time.Duration(float64(wait)*pollGrowth), lastPoll) {
		if b.State == stateDeleted {
			return nil, nil
		}
		if !slices.Contains(busy, b.State) {
			return b, nil
		}
		if err := pause(wait); err != nil {
			return nil, err
		}
		next, err := cloud.Get(ctx, b.ID)
		switch {
		case errors.Is(err, oci.ErrNotFound) && b.State == stateDeleting:
			if gone, err := op.gone(ctx, cloud, b); gone || err != nil {
				return nil, err
			}
			continue
		case err != nil:
			return nil, err
		}
		b = next
	}
}

// gone says whether a balancer is proven not to exist any more.
func (op *operation) gone(ctx context.Context, cloud Cloud, b *oci.Balancer) (bool, error) {
	presence, _, err := oci.Decide(ctx, oci.Evidence{
		Read: func(ctx context.Context) (string, error) {
			found, err := cloud.Get(ctx, b.ID)
			if err != nil {
				return "", err
			}
			return found.State, nil
		},
		Terminal:    []string{stateDeleted},
		Compartment: b.CompartmentID,
		List: func(ctx context.Context) (string, bool, error) {
			all, _, err := op.m.lists.get(ctx, op.place(b.Kind, b.CompartmentID), 0)
			for _, x := range all {
				if x.ID == b.ID {
					return x.State, true, err
				}
			}
			return "", false, err
		},
	})
	return presence == oci.Gone, err
}
