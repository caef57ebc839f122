// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// paceOver is the time over which the single reads of a pass are spread. The framework's passes are 5 minutes apart.
const paceOver = 4 * time.Minute

// pace spreads single reads that nobody waits for urgently.
type pace struct {
	mu      sync.Mutex
	reads   map[string]int // that a pass may need, by reason
	limiter *rate.Limiter
}

const minPace = 2 // reads per second

func newPace() *pace {
	return &pace{reads: map[string]int{}, limiter: rate.NewLimiter(minPace, minPace)}
}

// set notes how many single reads a pass may need for a reason.
func (p *pace) set(reason string, reads int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reads[reason] == reads {
		return
	}
	p.reads[reason] = reads
	if reads == 0 {
		delete(p.reads, reason)
	}
	total := 0
	for _, n := range p.reads {
		total += n
	}
	p.limiter.SetLimit(max(minPace, rate.Limit(float64(total)/paceOver.Seconds())))
}

// wait waits for the turn of a read, where the need is patient.
func (p *pace) wait(ctx context.Context, need Need, what string) error {
	if !need.Patient {
		return nil
	}
	if err := p.limiter.Wait(ctx); err != nil {
		return fmt.Errorf("wait for the turn of %s: %w", what, err)
	}
	return nil
}
