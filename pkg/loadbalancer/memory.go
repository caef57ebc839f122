// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Back-off of failing Services, as the service controller of Kubernetes has it.
const (
	firstBackoff = 5 * time.Second
	lastBackoff  = 5 * time.Minute
)

// memory is what this process knows about Services beyond what the cloud and the Service say. All of it may be lost at any
// time.
type memory struct {
	mu       sync.Mutex
	services map[types.UID]*serviceMemory
}

// serviceMemory is guarded by the lock of the Service.
type serviceMemory struct {
	// used is when an operation last asked for it. It is guarded by the lock of the memory.
	used time.Time
	// id is the OCID of the balancer that this process made or found last.
	id string
	// gone is the OCID of a balancer that was proven to be gone.
	gone string
	// create is the last create that was sent; nil if this process sent none.
	create *createAttempt
	// first means that this process is the first one to look after the Service: nothing was sent for it before.
	first bool
	// burnt is when the service did not accept the retry token any more.
	burnt time.Time
	// open are work requests of this process whose end was not seen.
	open []openWork
	// sent is the plan, with the model, whose changes were still open when the last call ended.
	sent string
	// rules are the security rules as they were last in order; nil if this process has not seen that.
	rules *RulesApplied
	// asFound is Applied.AsFound, for where that cannot be recorded.
	asFound string
	// deletion is the last try to delete the balancer; nil if there was none that failed.
	deletion *delayedDeletion
	// successor is what is known about the balancer that is to replace this one.
	successor *serviceMemory
	// ruleSets are digests of the rule sets that this process has sent, by name.
	ruleSets map[string]string
	// quiet means that no work request of an earlier process is open.
	quiet bool

	// notBefore delays the next create, unless the Service becomes another one than gate stands for.
	notBefore            time.Time
	gate                 string
	gateText, gateReason string

	// refusals maps what is wrong to the text it was first told with.
	refusals map[string]string
	failures int
	// wordings is the same for what does not stop the sync.
	wordings map[string]string
	// told are the warnings that were published and still hold.
	told map[string]bool
}

// createAttempt is a create whose request was sent.
type createAttempt struct {
	token string
	at    time.Time
	// known means that it certainly made nothing, or that what it made was seen.
	known bool
}

// openWork is a work request on the balancer of a Service.
type openWork struct {
	kind   oci.BalancerKind
	id     string
	what   string
	create bool // of the balancer itself
}

func newServiceMemory() *serviceMemory {
	return &serviceMemory{refusals: map[string]string{}, told: map[string]bool{}}
}

func newMemory() *memory { return &memory{services: map[types.UID]*serviceMemory{}} }

func (m *memory) of(uid types.UID) *serviceMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.services[uid]
	if s == nil {
		s = newServiceMemory()
		m.services[uid] = s
	}
	s.used = time.Now()
	return s
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.services, uid)
}

// backoff counts a failure and returns the pause after it.
func (s *serviceMemory) backoff() time.Duration {
	pause := firstBackoff << min(s.failures, 10)
	s.failures++
	return min(pause, lastBackoff)
}

// succeeded forgets failures.
func (s *serviceMemory) succeeded() {
	s.failures = 0
	clear(s.refusals)
}
