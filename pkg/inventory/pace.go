// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// paceOver is the time over which the single reads of a pass are spread. The framework's passes are 5 minutes apart.
const paceOver = 4 * time.Minute

// Fallback says that the VNICs of a subnet are read one by one, because its address lists do not serve.
type Fallback struct {
	SubnetID string
	VNICs    int // of instances
	// Denied is the lists' 404: most likely, a policy is missing. Otherwise the lists have Rows rows, too many for VNICs.
	Denied error
	Rows   int
}

// pace spreads single reads that nobody waits for urgently.
type pace struct {
	mu      sync.Mutex
	subnets map[string]int // VNICs to read, by subnet
	limiter *rate.Limiter
}

const minPace = 2 // reads per second

func newPace() *pace {
	return &pace{subnets: map[string]int{}, limiter: rate.NewLimiter(minPace, minPace)}
}

// set notes how many VNICs of a subnet have to be read one by one.
func (p *pace) set(subnetID string, vnics int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.subnets[subnetID] == vnics {
		return
	}
	p.subnets[subnetID] = vnics
	total := 0
	for _, n := range p.subnets {
		total += n
	}
	p.limiter.SetLimit(max(minPace, rate.Limit(float64(total)/paceOver.Seconds())))
}

// fallBack sets the pace for a subnet, and tells the owner of the inventory if its lists do not serve.
func (i *Inventory) fallBack(f Fallback) {
	i.pace.set(f.SubnetID, f.VNICs)
	if f.VNICs > 0 && i.config.Report != nil {
		i.config.Report(f)
	}
}
