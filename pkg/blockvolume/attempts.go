// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"sync"
	"time"
)

// attempts remembers the creates of this process, so that none is sent under a new retry token while an earlier one, the
// answer of which was lost, may still come to light.
type attempts struct {
	started time.Time
	settle  time.Duration

	mu     sync.Mutex
	byName map[string]attempt
}

// attempt is the last create of something.
type attempt struct {
	token string
	at    time.Time
	known bool   // its outcome is
	salt  string // of tokens from now on, since the service does not accept the old one any more
}

// attemptMemory is how long attempts are remembered: long enough for retry tokens to be forgotten by the service.
const attemptMemory = 25 * time.Hour

func newAttempts(settle time.Duration) *attempts {
	return &attempts{started: time.Now(), settle: settle, byName: map[string]attempt{}}
}

// settled says from when on a create under the given token cannot make a second one; zero means now. begun is when the
// lists that show the absence were begun, and asked when the user asked for it first; zero means that nobody knows.
//
// The same token cannot make a second one. Otherwise, what an earlier create made must have had the time to show up in the
// lists. A process that was started after the user asked does not know what was sent before it.
func (a *attempts) settled(name, token string, begun, asked time.Time) time.Time {
	a.mu.Lock()
	last, made := a.byName[name]
	a.mu.Unlock()
	sent := a.started
	switch {
	case made && (last.token == token || last.known), !made && asked.After(a.started):
		return time.Time{}
	case made:
		sent = last.at
	}
	if at := sent.Add(a.settle); begun.Before(at) {
		return at
	}
	return time.Time{}
}

// sent notes a create before it is sent.
func (a *attempts) sent(name, token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for other, one := range a.byName {
		if now.Sub(one.at) > attemptMemory {
			delete(a.byName, other)
		}
	}
	a.byName[name] = attempt{token: token, at: now, salt: a.byName[name].salt}
}

// known notes that the outcome of the last create is known.
func (a *attempts) known(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, made := a.byName[name]; made {
		last.known = true
		a.byName[name] = last
	}
}

// burn notes that the service does not accept the last token: it was used before, for something that is gone, or that has
// not shown up yet.
func (a *attempts) burn(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, made := a.byName[name]; made {
		last.at = time.Now()
		last.salt = last.at.UTC().Format(time.RFC3339Nano)
		a.byName[name] = last
	}
}

// owner is the owner that goes into retry tokens: the name, and what makes a new token of it once the old one is spent.
func (a *attempts) owner(name, after string) string {
	a.mu.Lock()
	salt := a.byName[name].salt
	a.mu.Unlock()
	owner := name
	if after != "" {
		owner += " after " + after
	}
	if salt != "" {
		owner += " again " + salt
	}
	return owner
}
