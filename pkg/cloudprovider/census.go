// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// censusAge is shorter than the time between two rounds of the framework's lifecycle controller.
const censusAge = time.Second

// counts are how many Nodes may be the cluster's own, and in which condition they are. They tell a question about one node
// from one of thousands.
type counts struct {
	uids          map[types.UID]bool // all
	uninitialized int
	notReady      int
	noPodCIDR     int
}

// census counts the Nodes at most once in censusAge: when many nodes are asked about at once, each answer must not cost a
// walk over all of them.
type census struct {
	mu    sync.Mutex
	taken time.Time
	last  counts
}

// counts returns the numbers as of at most censusAge ago. The set in it must not be changed.
func (c *census) counts(list func() []*v1.Node) counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.uids != nil && time.Since(c.taken) < censusAge {
		return c.last
	}
	c.last, c.taken = counts{uids: map[types.UID]bool{}}, time.Now()
	for _, node := range list() {
		if isForeign(node) {
			continue
		}
		c.last.uids[node.UID] = true
		if isUninitialized(node) {
			c.last.uninitialized++
		}
		if !isReady(node) {
			c.last.notReady++
		}
		if len(node.Spec.PodCIDRs) == 0 {
			c.last.noPodCIDR++
		}
	}
	return c.last
}
