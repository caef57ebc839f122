// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"sync"
	"time"
)

// recentCreates remembers for a while which resources this process created.
type recentCreates struct {
	window time.Duration

	mu sync.Mutex
	at map[string]time.Time // OCID to time of creation
}

func newRecentCreates(window time.Duration) *recentCreates {
	return &recentCreates{window: window, at: map[string]time.Time{}}
}

// add notes a creation. It also drops what is older than the window, so that the map stays as small as the number of
// creates per window.
func (r *recentCreates) add(ocid string) {
	if ocid == "" {
		return
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, at := range r.at {
		if now.Sub(at) >= r.window {
			delete(r.at, id)
		}
	}
	r.at[ocid] = now
}

// remove forgets a creation.
func (r *recentCreates) remove(ocid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.at, ocid)
}

// has says whether ocid was created within the window.
func (r *recentCreates) has(ocid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.at[ocid]
	return ok && time.Since(at) < r.window
}
