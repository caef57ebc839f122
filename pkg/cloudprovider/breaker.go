// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// breakerWindow, breakerNodes and breakerShare are when deletions are stopped: when within that time the absence of
	// that many nodes, and of more than that share of all nodes, was "proven". It is then likelier that the proof is wrong.
	breakerWindow = 10 * time.Minute
	breakerNodes  = 3
	breakerShare  = 0.5

	// confirmAfter is how long an absence must have been proven before a Node is deleted for it. It gives the absences
	// that have one cause the time to be seen together, before the first deletion.
	confirmAfter = 10 * time.Second
)

// verdict is what may be done about a node whose instance was proven absent.
type verdict int

const (
	unconfirmed verdict = iota // prove it once more, later
	paused                     // too many at once
	confirmed                  // delete it
)

// breaker guards the deletion of Nodes for an absence that rests on a 404 and a list. What the API returns as terminated
// does not concern it.
type breaker struct {
	mu      sync.Mutex
	absent  map[types.UID]absence
	tripped bool
}

type absence struct{ first, last time.Time }

func newBreaker() *breaker { return &breaker{absent: map[types.UID]absence{}} }

// judge takes note of one more proof of a node's absence, and says what may be done. all are the nodes of the cluster.
func (b *breaker) judge(node types.UID, all map[types.UID]bool) verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	a, ok := b.absent[node]
	if !ok || now.Sub(a.last) > breakerWindow {
		a.first = now
	}
	a.last = now
	b.absent[node] = a
	b.evaluate(now, all)
	switch {
	case now.Sub(a.first) < confirmAfter:
		return unconfirmed
	case b.tripped:
		return paused
	default:
		return confirmed
	}
}

// present takes note that a node's instance exists after all.
func (b *breaker) present(node types.UID, all func() map[types.UID]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.absent[node]; !ok {
		return
	}
	delete(b.absent, node)
	b.evaluate(time.Now(), all())
}

// evaluate counts. Nodes deleted within the window are still counted, as absent and as part of the cluster.
func (b *breaker) evaluate(now time.Time, all map[types.UID]bool) {
	total := len(all)
	for node, a := range b.absent {
		if now.Sub(a.last) > breakerWindow {
			delete(b.absent, node)
		} else if !all[node] {
			total++
		}
	}
	b.tripped = len(b.absent) >= breakerNodes && float64(len(b.absent)) > breakerShare*float64(total)
	if b.tripped {
		deletionsPaused.Set(1)
	} else {
		deletionsPaused.Set(0)
	}
}
