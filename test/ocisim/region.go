// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Region is a simulated OCI region. All its methods are safe for concurrent use.
type Region struct {
	options Options // those that never change
	routes  *router
	needs   map[string][]permission // by operation, see grantedNeeds
	keys    keyring
	offset  atomic.Int64 // nanoseconds that Advance added to the time package's clock

	mu     sync.Mutex
	cloud  *cloud
	closed bool

	bodies bodyErrors

	observers observers
}

// New returns an empty region: one tenancy, its availability domains, nothing else. Options that cannot be are a
// mistake of the test, so it panics; Options.Validate returns the error.
func New(options Options) *Region {
	options = options.withDefaults()
	if err := options.Validate(); err != nil {
		panic("ocisim: " + err.Error())
	}
	r := &Region{options: options, routes: newRouter(), needs: grantedNeeds()}
	for _, s := range services() {
		r.routes.add(s.operations)
	}
	r.cloud = newCloud(options, r.Now())
	r.cloud.region = r
	close(r.cloud.block.ready)
	if options.Balancers != nil {
		options.Balancers.Attach(r)
	}
	return r
}

// Reset empties the region: resources, work requests, retry tokens, faults, policies and the call log. Registered
// keys, observers, options and the behaviour table stay as they are. Devices of attachments are gone when it returns.
func (r *Region) Reset() {
	r.mu.Lock()
	options := r.cloud.options
	options.Behaviour = r.cloud.behaviour
	last, next := r.cloud, newCloud(options, r.Now())
	next.region = r
	r.cloud = next
	r.mu.Unlock()
	_ = r.endBodies(last) // BodyErrors has the error
	close(next.block.ready)
}

// Now is the time of the region: that of the time package plus what Advance added.
func (r *Region) Now() time.Time {
	return time.Now().Add(time.Duration(r.offset.Load()))
}

// Advance moves the region's clock forward and runs what became due.
func (r *Region) Advance(d time.Duration) {
	r.offset.Add(int64(d))
	r.lock()
	defer r.mu.Unlock()
}

// lock takes the region's lock and brings the cloud up to the present. The caller unlocks r.mu.
func (r *Region) lock() *cloud {
	r.mu.Lock()
	r.cloud.settle(r.Now())
	return r.cloud
}

// cloud is everything behind the region's lock. Its methods, and all functions that take a *cloud or a *call, run
// with the lock held.
type cloud struct {
	region    *Region // only to come back to it from work that runs without its lock
	options   Options
	behaviour *Behaviour
	durations map[string]Range
	rates     map[string]Rate // by "service.read" and "service.write"

	now    time.Time // of the current call, or of the event that is running
	random *rand.Rand

	store    store
	schedule schedule
	encoder  encoder
	tokens   map[tokenKey]*tokenRecord
	queues   map[string][]*task
	denials  []*denial
	grants   []*grant
	faults   []*armedFault
	buckets  map[bucketName]*bucketState
	log      callLog
	secret   [16]byte // binds page tokens to this region

	tagNamespaces map[string]bool
	pools         map[string]*addressPool // by subnet and family
	publicPool    *addressPool
	removers      map[*kindInfo]func(*cloud, string)
	metrics       []Metric
	provisioning  map[*kindInfo]string // file storage: what is being created or moved
	vnicOwners    map[string]string    // VNIC to the instance or balancer that it belongs to
	ownedVNICs    map[string][]string  // and back
	block         blockState
	balancers     balancerState

	// watch, if set, sees every resource right after it was stored, replaced or removed, with what the engine knew of
	// it before: nothing for a new one. Property tests hang on it.
	watch func(res *resource, before facets)
}

func newCloud(options Options, now time.Time) *cloud {
	cl := &cloud{
		behaviour:     options.Behaviour,
		now:           now,
		random:        rand.New(rand.NewPCG(options.Seed, 0x0c151)),
		store:         newStore(),
		encoder:       newEncoder(),
		tokens:        map[tokenKey]*tokenRecord{},
		queues:        map[string][]*task{},
		buckets:       map[bucketName]*bucketState{},
		log:           newCallLog(options.LogSize),
		tagNamespaces: map[string]bool{"Oracle-Tags": true},
		pools:         map[string]*addressPool{},
		publicPool:    newAddressPool(publicRange),
		removers:      map[*kindInfo]func(*cloud, string){},
		provisioning:  map[*kindInfo]string{},
		vnicOwners:    map[string]string{},
		ownedVNICs:    map[string][]string{},
		block:         newBlockState(),
		balancers:     balancerState{},
	}
	if cl.behaviour == nil {
		cl.behaviour = DefaultBehaviour()
	}
	cl.use(options)
	for _, s := range services() {
		maps.Copy(cl.removers, s.removers)
	}
	for i := range cl.secret {
		cl.secret[i] = byte(cl.random.Uint32())
	}
	cl.addRootCompartment()
	return cl
}

// settle runs the events that are due, each at its own time, and sets the clock to now. Time never runs backwards.
func (cl *cloud) settle(now time.Time) {
	for e := cl.schedule.next(now); e != nil; e = cl.schedule.next(now) {
		if e.at.After(cl.now) {
			cl.now = e.at
		}
		e.run()
	}
	if now.After(cl.now) {
		cl.now = now
	}
}

// after schedules a change in d from now.
func (cl *cloud) after(d time.Duration, run func()) *event {
	return cl.schedule.add(cl.now.Add(d), run)
}

// duration draws the length of a named state change. A name without an entry takes no time.
func (cl *cloud) duration(name string) time.Duration { return cl.draw(cl.durations[name]) }

func (cl *cloud) draw(r Range) time.Duration {
	if r.Max <= r.Min {
		return r.Min
	}
	return r.Min + time.Duration(cl.random.Int64N(int64(r.Max-r.Min)+1))
}

// chance is true with probability p.
func (cl *cloud) chance(p float64) bool { return p > 0 && cl.random.Float64() < p }

// service is what a service contributes to the engine.
type service struct {
	operations []Operation
	durations  map[string]Range // defaults of its state changes
	// removers delete a resource of a kind as the service does at the end, with all that hangs on it, for writes from
	// outside. Kinds without an entry just go.
	removers map[*kindInfo]func(*cloud, string)
}

// services lists all services. A new service is one more line here.
func services() []service {
	return []service{
		identityService(),
		computeService(),
		instanceService(),
		virtualNetworkService(),
		loadBalancerService(),
		networkLoadBalancerService(),
		fileStorageService(),
		blockStorageService(),
		coreWorkService(),
		lustreService(),
		monitoringService(),
		limitsService(),
		certificatesManagementService(),
		certificatesService(),
	}
}
