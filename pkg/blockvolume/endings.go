// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"sync"
	"time"
)

// endingMemory is how long a deletion is remembered: longer than any takes.
const endingMemory = 10 * time.Minute

// endings remember the volumes that this process has asked the cloud to delete.
type endings struct {
	mu sync.Mutex
	at map[string]time.Time // by ID
}

func newEndings() *endings { return &endings{at: map[string]time.Time{}} }

func (e *endings) add(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for other, at := range e.at {
		if now.Sub(at) > endingMemory {
			delete(e.at, other)
		}
	}
	e.at[id] = now
}

func (e *endings) has(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, there := e.at[id]
	return there && time.Since(at) < endingMemory
}
