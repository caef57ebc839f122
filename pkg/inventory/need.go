// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import "time"

// Need is what a caller asks of an answer.
type Need struct {
	// MaxAge is how old the answer may be.
	MaxAge time.Duration
	// Crowd is how many objects are asked for at about the same time, this one included. A few are read one by one; a
	// crowd is answered from lists, whose cost is that of pages.
	Crowd int
	// Patient says that the answer is part of a pass over all nodes. Where lists cannot answer, the single reads are
	// spread over paceOver, and the caller waits.
	Patient bool
	// Compartments are those that the instance may be in, besides the one where it was seen last and the cluster's own.
	// A wrong one costs a list, and nothing else.
	Compartments []string
}

// Within asks for one object that is at most so old.
func Within(maxAge time.Duration) Need { return Need{MaxAge: maxAge} }

// fewEnough is the number of objects up to which single reads are not dearer than lists: an instance, its attachments
// and its VNIC are three calls, and the lists of a small cluster are four to ten.
const fewEnough = 3

func (n Need) crowded() bool { return n.Crowd > fewEnough }
