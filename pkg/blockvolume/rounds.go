// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"sync"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// rowsPerRead is how many rows of a list cost as much as a read by itself: pages have up to 1,000, and take longer.
const rowsPerRead = 100

// rounds list the attachments of volumes. At one time, one list of a compartment is under way; those who come meanwhile share the next one,
// which is of all volumes when they are many. Nobody gets a list that began before he asked.
type rounds struct {
	list func(ctx context.Context, compartment string, f oci.AttachmentFilter) ([]*oci.VolumeAttachment, error)

	mu   sync.Mutex
	last map[string]*round // the one that takes part, by compartment
	rows map[string]int    // of the last list of all volumes, by compartment
}

// round is one list and those who wait for it. Fields are under the mutex of rounds until done is closed.
type round struct {
	volumes map[string]bool
	waiting int
	begun   bool
	end     context.CancelFunc

	done   chan struct{}
	result map[string][]*oci.VolumeAttachment // by volume
	errs   map[string]error                   // by volume
}

func newRounds(list func(context.Context, string, oci.AttachmentFilter) ([]*oci.VolumeAttachment, error)) *rounds {
	return &rounds{list: list, last: map[string]*round{}, rows: map[string]int{}}
}

// of returns the attachments of a volume to instances in a compartment.
func (m *rounds) of(ctx context.Context, compartment, volumeID string) ([]*oci.VolumeAttachment, error) {
	r := m.join(ctx, compartment, volumeID)
	defer m.leave(r)
	select {
	case <-r.done:
		return r.result[volumeID], r.errs[volumeID]
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *rounds) join(ctx context.Context, compartment, volumeID string) *round {
	m.mu.Lock()
	defer m.mu.Unlock()
	former := m.last[compartment]
	if former != nil && !former.begun {
		former.volumes[volumeID] = true
		former.waiting++
		return former
	}
	// It outlives the one who starts it, as long as others wait.
	listCtx, end := context.WithCancel(context.WithoutCancel(ctx))
	r := &round{
		volumes: map[string]bool{volumeID: true}, waiting: 1, end: end, done: make(chan struct{}),
		result: map[string][]*oci.VolumeAttachment{}, errs: map[string]error{},
	}
	m.last[compartment] = r
	go m.run(listCtx, compartment, r, former)
	return r
}

// leave ends a round for which nobody waits any more.
func (m *rounds) leave(r *round) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.waiting--; r.waiting == 0 && r.begun {
		r.end()
	}
}

func (m *rounds) run(ctx context.Context, compartment string, r, former *round) {
	defer r.end()
	if former != nil {
		<-former.done
	}
	m.mu.Lock()
	r.begun = true
	if r.waiting == 0 {
		r.end()
	}
	alone := len(r.volumes) <= max(singleReads, m.rows[compartment]/rowsPerRead)
	m.mu.Unlock()
	if alone {
		for id := range r.volumes {
			r.result[id], r.errs[id] = m.list(ctx, compartment, oci.AttachmentFilter{VolumeID: id})
		}
	} else {
		m.listAll(ctx, compartment, r)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last[compartment] == r {
		delete(m.last, compartment)
	}
	close(r.done)
}

func (m *rounds) listAll(ctx context.Context, compartment string, r *round) {
	all, err := m.list(ctx, compartment, oci.AttachmentFilter{})
	for id := range r.volumes {
		r.errs[id] = err
	}
	if err != nil {
		return
	}
	for _, a := range all {
		if r.volumes[a.VolumeID] {
			r.result[a.VolumeID] = append(r.result[a.VolumeID], a)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows[compartment] = len(all)
}
