// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Pauses between two looks at something that changes its state. Volumes are made in some 8 s, attachments in 10 to 20 s,
// and often in two or three (oci-api.md §5): a first look that early catches what fails at once, and looks at this distance
// see the end of an attachment 0.4 s late in the mean. What takes longer is looked at more seldom.
const (
	firstLook   = 500 * time.Millisecond
	shortPause  = 800 * time.Millisecond
	patience    = 10 // a pause is at least the time waited so far, divided by this
	longPause   = 5 * time.Second
	pausePerRow = time.Millisecond // of the last list: long lists take several pages
)

const (
	// singleReads is up to how many are read one by one; more of them are found in one list.
	singleReads = 2
	// missingGrace is how long something may be missing from lists before it is read by itself.
	missingGrace = 20 * time.Second
)

// errVanished means that what was waited for is not there any more.
var errVanished = errors.New("it is not there any more")

// watched is a kind of things that can be waited for.
type watched[T any] struct {
	id   func(*T) string
	get  func(ctx context.Context, id string) (*T, error)
	list func(ctx context.Context, compartment string) ([]*T, error)
}

// watcher waits for things of one kind. All who wait for things of one compartment share one lookout.
type watcher[T any] struct {
	watched[T]

	mu       sync.Mutex
	lookouts map[string]*lookout[T] // by compartment
}

// lookout looks, in a goroutine of its own, at what is waited for in one compartment. Fields are under the watcher's mu.
type lookout[T any] struct {
	compartment string
	waiting     map[*wait[T]]struct{}
	news        chan struct{} // holds one element when somebody has come
	notBefore   time.Time     // of the next list
	end         context.CancelFunc
}

// wait is one who waits.
type wait[T any] struct {
	id     string
	done   func(*T) bool
	since  time.Time
	next   time.Time // look
	listed bool      // it was in a list before

	ready  chan struct{} // closed when result and err are set
	result *T
	err    error
}

func newWatcher[T any](w watched[T]) *watcher[T] {
	return &watcher[T]{watched: w, lookouts: map[string]*lookout[T]{}}
}

// until returns the thing as soon as done is true for it. Errors: errVanished, those of reads, ErrPending when ctx ends.
func (w *watcher[T]) until(ctx context.Context, compartment, id string, done func(*T) bool) (*T, error) {
	l, me := w.join(ctx, compartment, id, done)
	defer w.leave(l, me)
	select {
	case <-me.ready:
		return me.result, me.err
	case <-ctx.Done():
		return nil, because(ErrPending, ctx.Err(), "waiting for %s", id)
	}
}

func (w *watcher[T]) join(ctx context.Context, compartment, id string, done func(*T) bool) (*lookout[T], *wait[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	me := &wait[T]{id: id, done: done, since: now, next: now.Add(firstLook), ready: make(chan struct{})}
	l := w.lookouts[compartment]
	if l == nil {
		// It outlives the context of the one who starts it, as long as others wait.
		lookCtx, end := context.WithCancel(context.WithoutCancel(ctx))
		l = &lookout[T]{compartment: compartment, waiting: map[*wait[T]]struct{}{}, news: make(chan struct{}, 1), end: end}
		w.lookouts[compartment] = l
		l.waiting[me] = struct{}{}
		go w.run(lookCtx, l)
		return l, me
	}
	l.waiting[me] = struct{}{}
	select {
	case l.news <- struct{}{}:
	default:
	}
	return l, me
}

func (w *watcher[T]) leave(l *lookout[T], me *wait[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(l.waiting, me)
	if len(l.waiting) > 0 {
		return
	}
	l.end()
	if w.lookouts[l.compartment] == l {
		delete(w.lookouts, l.compartment)
	}
}

func (w *watcher[T]) run(ctx context.Context, l *lookout[T]) {
	for {
		timer := time.NewTimer(time.Until(w.nextLook(l)))
		select {
		case <-timer.C:
			w.look(ctx, l)
		case <-l.news:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// nextLook is when the first of those who wait is due.
func (w *watcher[T]) nextLook(l *lookout[T]) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := time.Now().Add(longPause)
	for one := range l.waiting {
		if one.next.Before(next) {
			next = one.next
		}
	}
	if len(l.waiting) > singleReads && next.Before(l.notBefore) {
		return l.notBefore
	}
	return next
}

// look reads what is due, or lists everything.
func (w *watcher[T]) look(ctx context.Context, l *lookout[T]) {
	due, all := w.due(l)
	if all > singleReads {
		w.lookInList(ctx, l)
		return
	}
	for _, one := range due {
		w.read(ctx, l, one)
	}
}

func (w *watcher[T]) due(l *lookout[T]) (due []*wait[T], all int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for one := range l.waiting {
		if !one.next.After(now) {
			due = append(due, one)
		}
	}
	return due, len(l.waiting)
}

func (w *watcher[T]) read(ctx context.Context, l *lookout[T], one *wait[T]) {
	found, err := w.get(ctx, one.id)
	if errors.Is(err, oci.ErrNotFound) {
		err = because(ErrForbidden, errors.Join(errVanished, err), "%s", one.id)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell(l, one, found, err)
}

func (w *watcher[T]) lookInList(ctx context.Context, l *lookout[T]) {
	list, err := w.list(ctx, l.compartment)
	byID := make(map[string]*T, len(list))
	for _, one := range list {
		byID[w.id(one)] = one
	}
	var missing []*wait[T]
	w.mu.Lock()
	now := time.Now()
	l.notBefore = now.Add(shortPause + time.Duration(len(list))*pausePerRow)
	for one := range l.waiting {
		found := byID[one.id]
		switch {
		case err != nil, found != nil:
			one.listed = true
			w.tell(l, one, found, err)
		case one.listed, now.Sub(one.since) > missingGrace:
			missing = append(missing, one)
		default: // it has not shown up yet
			one.next = now.Add(shortPause)
		}
	}
	w.mu.Unlock()
	for _, one := range missing {
		w.read(ctx, l, one)
	}
}

// tell gives one who waits what was seen. The watcher's mu is held.
func (w *watcher[T]) tell(l *lookout[T], one *wait[T], found *T, err error) {
	if _, waits := l.waiting[one]; !waits {
		return
	}
	if err == nil && !one.done(found) {
		now := time.Now()
		one.next = now.Add(min(max(now.Sub(one.since)/patience, shortPause), longPause))
		return
	}
	one.result, one.err = found, err
	delete(l.waiting, one)
	close(one.ready)
}
