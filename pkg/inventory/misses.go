// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"errors"
	"sync"
	"time"
)

const (
	// firstMiss is shorter than a machine takes from its first appearance in a list to its kubelet's registration; with
	// the doubling, a name that nobody has causes 6 refreshes of the lists in its first ten minutes and 12 an hour later.
	firstMiss  = 15 * time.Second
	maxMiss    = 5 * time.Minute
	forgetMiss = time.Hour
)

// misses remembers the queries that complete lists could not answer.
type misses struct {
	mu sync.Mutex
	by map[string]*miss
}

type miss struct {
	err   error
	retry time.Time
	delay time.Duration
}

// unresolved says whether an error is the answer of complete lists, not a failure to read them.
func unresolved(err error) bool {
	var notFound *NotFoundError
	var ambiguous *AmbiguousError
	return errors.As(err, &notFound) || errors.As(err, &ambiguous)
}

// remembered returns the error that the query met last, until it is time to look again.
func (m *misses) remembered(key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.by[key]; e != nil && time.Now().Before(e.retry) {
		return e.err
	}
	return nil
}

// remember notes that the query met err, and returns it with the time of the next look.
func (m *misses) remember(key string, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.by == nil {
		m.by = map[string]*miss{}
	}
	for k, e := range m.by {
		if now.Sub(e.retry) > forgetMiss {
			delete(m.by, k)
		}
	}
	e := m.by[key]
	if e == nil {
		e = &miss{delay: firstMiss}
		m.by[key] = e
	} else if !now.Before(e.retry) {
		e.delay = min(2*e.delay, maxMiss)
	}
	e.err, e.retry = err, now.Add(e.delay)
	var notFound *NotFoundError
	if errors.As(err, &notFound) {
		notFound.Retry = e.retry
	}
	return err
}

func (m *misses) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, key)
}
