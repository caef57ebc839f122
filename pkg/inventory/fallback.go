// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"sync"
	"time"
)

// List is a list of the API that many nodes are answered from.
type List string

// The lists.
const (
	ListOfInstances   List = "instances"
	ListOfAttachments List = "VNIC attachments"
	ListOfPrivateIPs  List = "private IP addresses"
	ListOfIPv6s       List = "IPv6 addresses"
	ListOfPublicIPs   List = "public IP addresses"
)

// Fallback says that single reads stand in for a list that does not serve.
type Fallback struct {
	List List
	// CompartmentID is where the list's objects are, as far as it is known.
	CompartmentID string
	// SubnetID is set for lists of a subnet.
	SubnetID string
	// Nodes is how many nodes have to be read one by one: in the subnet, or at most in all.
	Nodes int
	// Denied is the list's 404: most likely, a policy is missing. Otherwise the list has Rows rows, too many for Nodes.
	Denied error
	Rows   int
}

func (f Fallback) key() string { return string(f.List) + " in " + f.CompartmentID + f.SubnetID }

// announcements remembers what was told.
type announcements struct {
	mu   sync.Mutex
	told map[string]time.Time
}

// due says whether something may be told again.
func (a *announcements) due(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if last, ok := a.told[key]; ok && now.Sub(last) < deniedFor {
		return false
	}
	if a.told == nil {
		a.told = map[string]time.Time{}
	}
	a.told[key] = now
	return true
}

// fallBack sets the pace for the reads that stand in for a list, and tells the owner of the inventory: once, although each
// node may meet it, and again when it still is so after deniedFor.
func (i *Inventory) fallBack(f Fallback, readsPerNode int) {
	i.pace.set(f.key(), f.Nodes*readsPerNode)
	if i.config.Report != nil && i.announced.due(f.key()) {
		i.config.Report(f)
	}
}

// serves notes that a list serves.
func (i *Inventory) serves(f Fallback) { i.pace.set(f.key(), 0) }
