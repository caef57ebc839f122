// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Options describe a body. The zero value is right for tests.
type Options struct {
	// PortOffset is added to the ports of listeners. Ports below 1024 need root, or an offset.
	PortOffset int
	// Loopback is the first of the addresses that balancers get, one after the other. By default it is chosen at random, so
	// that processes on one machine do not meet.
	Loopback netip.Addr
	// Dial connects to a backend, given as the address and port that the API knows; nil follows MapBackend.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Direct lets connections to backends that are not mapped go to where their address leads on this machine's network.
	Direct bool
	// OwnAddresses lets balancers use the addresses that the API shows, with the ports of their listeners, instead of loopback
	// addresses: they listen there, and backends see connections come from there, or from the client where a network load
	// balancer preserves the source. All of this is up to the network in which the process runs: the balancers' addresses
	// have to be local ("ip route add local 198.18.0.0/15 dev lo"), what backends answer to clients has to come here, and
	// preserving the source takes CAP_NET_ADMIN, on Linux. It goes with Direct.
	OwnAddresses bool
	// Linger is how long connections live on when their backend has left its set; 0 ends them at once. What the services do
	// with them is not documented.
	Linger time.Duration
	// Speed divides the intervals of checks; 0 is 1, as fast as the services.
	Speed float64
	// Logger tells of health and of connections that failed, at level 1.
	Logger klog.Logger
}

// heartbeat is how often a body looks for changes that nothing announces: those of a foreign hand, or of an advanced clock.
const heartbeat = 100 * time.Millisecond

// Body listens for the balancers of a region. It is an ocisim.BalancerBody.
type Body struct {
	options Options
	region  *ocisim.Region
	log     klog.Logger
	ctx     context.Context //nolint:containedctx // the life of the body, which has no other context
	cancel  context.CancelFunc
	jobs    sync.WaitGroup
	wake    chan struct{}
	health  sync.Map // ocisim.BackendName to ocisim.HealthStatus

	mu       sync.Mutex
	closed   bool
	sessions map[*session]bool
	running  map[string]*running
	next     netip.Addr
	chosen   map[string]netip.Addr // loopback addresses that SetLoopback gives, by address of the balancer
	mapped   map[string]string

	etags map[string]string // only for the loop
}

// running is a balancer at work. Only the loop changes it, under the lock of the body.
type running struct {
	balancer

	loopback netip.Addr
	pools    map[string]*pool
	fronts   map[string]*front // by socket
	problems map[string]string // by listener: why it does not listen
	stale    bool              // the ports are not those of the settings, or one of them could not be opened
}

// New makes a body; give it to a region by ocisim.Options.Balancers.
func New(options Options) *Body {
	if options.Speed <= 0 {
		options.Speed = 1
	}
	if !options.Loopback.IsValid() {
		// 127.64.0.1 to 127.191.255.1
		options.Loopback = netip.AddrFrom4([4]byte{127, byte(64 + rand.IntN(128)), byte(rand.IntN(256)), 1}) //nolint:gosec // not a secret
	}
	b := &Body{
		options: options, log: options.Logger, wake: make(chan struct{}, 1), sessions: map[*session]bool{}, running: map[string]*running{},
		next: options.Loopback, chosen: map[string]netip.Addr{}, mapped: map[string]string{}, etags: map[string]string{},
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// Attach implements ocisim.BalancerBody.
func (b *Body) Attach(region *ocisim.Region) {
	b.region = region
	region.OnCall(func(c ocisim.Call) {
		if c.Write {
			b.stir()
		}
	})
	b.jobs.Go(b.loop)
}

// stir makes the loop look at the region now.
func (b *Body) stir() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// BackendHealth implements ocisim.BalancerBody.
func (b *Body) BackendHealth(balancerID, backendSet, backend string) ocisim.HealthStatus {
	status, ok := b.health.Load(ocisim.BackendName{Balancer: balancerID, BackendSet: backendSet, Backend: backend})
	if h, is := status.(ocisim.HealthStatus); ok && is {
		return h
	}
	return ocisim.HealthUnknown
}

// Close stops listening, ends all connections and waits for the end of all work.
func (b *Body) Close() error {
	b.mu.Lock()
	b.closed = true
	sessions := slices.Collect(maps.Keys(b.sessions))
	for _, r := range b.running {
		for _, f := range r.fronts {
			f.close()
		}
	}
	b.mu.Unlock()
	b.cancel()
	endAll(sessions, false)
	b.jobs.Wait()
	return nil
}

// join counts a connection; false once the body is closed.
func (b *Body) join(s *session) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.sessions[s] = true
	return true
}

func (b *Body) part(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sessions, s)
}

// loop follows the region.
func (b *Body) loop() {
	for {
		changes := b.region.BalancerChanges(b.etags)
		b.follow(changes)
		wait := heartbeat
		if changes.Next >= 0 {
			wait = min(wait, max(changes.Next, time.Millisecond))
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-b.wake:
		case <-b.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// follow makes the body do what the region says.
func (b *Body) follow(changes ocisim.BalancerChanges) {
	var changed []balancer
	for i := range changes.LoadBalancers {
		v := fromLoadBalancer(&changes.LoadBalancers[i])
		v.bundles = b.region.BalancerCertificates(v.id)
		changed = append(changed, v)
	}
	for i := range changes.NetworkLoadBalancers {
		changed = append(changed, fromNetworkLoadBalancer(&changes.NetworkLoadBalancers[i]))
	}
	b.etags = changes.ETags
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	var ended []*running
	for id, r := range b.running {
		if _, alive := changes.ETags[id]; !alive {
			ended = append(ended, r)
			delete(b.running, id)
		}
	}
	for _, v := range changed {
		b.update(v)
	}
	for _, r := range b.running {
		for _, p := range r.pools {
			p.force(changes.Forced)
		}
		if r.stale {
			b.open(r)
		}
	}
	for _, r := range ended {
		for _, f := range r.fronts {
			f.close()
		}
		for _, p := range r.pools {
			p.close()
		}
	}
}

// update gives a balancer new settings, without its ports.
func (b *Body) update(v balancer) {
	r := b.running[v.id]
	if r == nil {
		r = &running{loopback: b.next, pools: map[string]*pool{}, fronts: map[string]*front{}}
		b.next = b.next.Next()
		b.running[v.id] = r
	}
	r.balancer, r.stale = v, true
	for name, p := range r.pools {
		if _, kept := v.sets[name]; !kept {
			p.close()
			delete(r.pools, name)
		}
	}
	for name, set := range v.sets {
		p := r.pools[name]
		if p == nil {
			p = &pool{body: b, balancer: v.id, gone: make(chan struct{})}
			r.pools[name] = p
		}
		p.update(set, clientTLS(set.tls, v.bundles), b.origin(v))
	}
}

// origin is the address from which a balancer connects to its backends; none where the kernel chooses.
func (b *Body) origin(v balancer) netip.Addr {
	if !b.options.OwnAddresses {
		return netip.Addr{}
	}
	a, _ := netip.ParseAddr(v.origin)
	return a
}
