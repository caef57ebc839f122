// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// locks exclude operations of one volume from each other.
type locks struct {
	mu   sync.Mutex
	held map[string]*activity
}

// activity is an operation that is under way.
type activity struct {
	volume string
	since  time.Time

	mu    sync.Mutex
	doing string
}

// at says which step the operation is at.
func (a *activity) at(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.doing = fmt.Sprintf(format, args...)
}

func (a *activity) busy() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &BusyError{Volume: a.volume, Doing: a.doing, Since: a.since}
}

// take takes the lock of a volume, or says who has it.
func (l *locks) take(volume string) (*activity, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.held[volume]; a != nil {
		return nil, a.busy()
	}
	a := &activity{volume: volume, since: time.Now(), doing: "begins"}
	l.held[volume] = a
	return a, nil
}

func (l *locks) release(volume string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, volume)
}

// answerTime is how long before its caller's deadline an operation gives up what it waits for, so that the caller hears why.
const answerTime = time.Second

// operate runs an operation on a volume, alone. The caller hears of the end, or, when its context ends first, that the operation is
// still under way: the volume stays locked then until the operation has ended. So a program that hangs in the kernel holds up nobody but
// its own volume.
func (h *Host) operate(ctx context.Context, volume string, f func(context.Context, *activity) error) error {
	if volume == "" {
		return fmt.Errorf("%w: no volume", ErrInvalid)
	}
	a, err := h.locks.take(volume)
	if err != nil {
		return err
	}
	inner, cancel := ctx, context.CancelFunc(func() {})
	if deadline, has := ctx.Deadline(); has {
		inner, cancel = context.WithDeadline(ctx, deadline.Add(-min(answerTime, time.Until(deadline)/4)))
	}
	done := make(chan error, 1)
	go func() {
		err := f(inner, a)
		cancel()
		h.locks.release(volume) // before the caller hears of it, who may come again at once
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ctx.Err(), a.busy())
	}
}
