// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"context"
	"time"
)

// Pauses between looks at something that takes time: the first ones are short, since a disk appears within some tens of
// milliseconds after a login; the last ones cost nothing to speak of.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

type pace struct{ next time.Duration }

func newPace() *pace { return &pace{next: firstPause} }

// wait pauses, longer each time, and says whether the context still holds.
func (p *pace) wait(ctx context.Context) bool {
	t := time.NewTimer(p.next)
	defer t.Stop()
	p.next = min(p.next*3/2, lastPause)
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
