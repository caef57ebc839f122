// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"sync"
	"time"
)

// attachTries remembers the attachments that this process asked for, so that one which has not shown up in lists yet is not
// taken for none.
type attachTries struct {
	started time.Time
	settle  time.Duration

	mu       sync.Mutex
	byVolume map[string]map[string]attachTry // and by instance
}

type attachTry struct {
	compartment string
	id          string // of the attachment; empty if the answer was lost
	at          time.Time
}

// tryMemory is how long an attachment that was asked for is remembered.
const tryMemory = time.Hour

func newAttachTries(settle time.Duration) *attachTries {
	return &attachTries{started: time.Now(), settle: settle, byVolume: map[string]map[string]attachTry{}}
}

// sent notes that an attachment is asked for.
func (t *attachTries) sent(volume, instance, compartment string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for id, tries := range t.byVolume {
		for at, one := range tries {
			if now.Sub(one.at) > tryMemory {
				delete(tries, at)
			}
		}
		if len(tries) == 0 {
			delete(t.byVolume, id)
		}
	}
	if t.byVolume[volume] == nil {
		t.byVolume[volume] = map[string]attachTry{}
	}
	t.byVolume[volume][instance] = attachTry{compartment: compartment, at: now}
}

// made notes which attachment it became.
func (t *attachTries) made(volume, instance, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one, ok := t.byVolume[volume][instance]; ok {
		one.id = id
		t.byVolume[volume][instance] = one
	}
}

// forget notes that there is no attachment of a volume to an instance.
func (t *attachTries) forget(volume, instance string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byVolume[volume], instance)
	if len(t.byVolume[volume]) == 0 {
		delete(t.byVolume, volume)
	}
}

func (t *attachTries) forgetVolume(volume string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byVolume, volume)
}

// compartments are those in which attachments of a volume were asked for.
func (t *attachTries) compartments(volume string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for _, one := range t.byVolume[volume] {
		out = append(out, one.compartment)
	}
	return out
}

// ids are the attachments of a volume that were made.
func (t *attachTries) ids(volume string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for _, one := range t.byVolume[volume] {
		if one.id != "" {
			out = append(out, one.id)
		}
	}
	return out
}

// settled says from when on lists show what was asked for of a volume with answers lost, by this process or the one before
// it; zero if lists begun at the given time do.
func (t *attachTries) settled(volume string, begun time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.started
	for _, one := range t.byVolume[volume] {
		if one.id == "" && one.at.After(last) {
			last = one.at
		}
	}
	if at := last.Add(t.settle); begun.Before(at) {
		return at
	}
	return time.Time{}
}
