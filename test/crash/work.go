// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// worker is a bed on which scenarios of a kind run, one after the other.
type worker[S any] interface {
	start(ctx context.Context) error
	stop()
	// take makes a scenario the current one, and returns its name.
	take(s S) string
	// killAt runs the current scenario once, and kills after its n-th call; errCompleted if it has fewer.
	killAt(ctx context.Context, n int) (problem, error)
	callLog(n int) string
}

// work runs scenarios on one bed until none is left.
func work[S any](ctx context.Context, w worker[S], queue <-chan S, stride int, sum *total) error {
	defer w.stop()
	if err := w.start(ctx); err != nil {
		return err
	}
	for s := range queue {
		began := time.Now()
		name := w.take(s)
		got, err := points(ctx, w, name, stride)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		sum.report(name, got, began)
	}
	return nil
}

// points takes one kill point of the current scenario after the other, until it ends before its point comes.
func points[S any](ctx context.Context, w worker[S], name string, stride int) (tally, error) {
	var t tally
	for point := 1; ; point += stride {
		found, err := w.killAt(ctx, point)
		if errors.Is(err, errCompleted) {
			return t, nil
		}
		if err != nil {
			return t, fmt.Errorf("kill point %d: %w", point, err)
		}
		t.count(found.kind)
		if found.kind != fine {
			fmt.Fprintf(os.Stderr, "%s killed after call %d (%s): %s\n%s\n", name, point, found.call, found.text, w.callLog(60))
			w.stop() // what is left must not spoil the next kill point
			if err := w.start(ctx); err != nil {
				return t, err
			}
		}
	}
}
