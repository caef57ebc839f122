// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// pool is a backend set at work.
type pool struct {
	body     *Body
	balancer string
	gone     chan struct{} // closed with the pool

	mu      sync.Mutex
	set     backendSet
	tls     *backendTLS                                // nil: not encrypted
	from    netip.Addr                                 // source of connections; invalid if the kernel chooses
	members []*member                                  // in the order of the set
	forced  map[ocisim.BackendName]ocisim.HealthStatus // of all backends of the region
}

// member is a backend at work. Its fields are guarded by the lock of its pool.
type member struct {
	backend

	health   ocisim.HealthStatus // what its checks found
	good     int                 // checks in a row
	bad      int
	sessions map[*session]bool
	rotation int           // of the smooth weighted round robin
	changed  chan struct{} // tells the checks of new settings
	quit     chan struct{} // ends the checks
}

// update gives the pool new settings. Connections of backends that are gone end, after Options.Linger.
func (p *pool) update(set backendSet, tls *backendTLS, from netip.Addr) {
	p.mu.Lock()
	var kept, started []*member
	var ended []*session
	for _, b := range set.backends {
		i := slices.IndexFunc(p.members, func(m *member) bool { return m.name == b.name })
		if i < 0 {
			m := &member{
				backend: b, health: ocisim.HealthUnknown, sessions: map[*session]bool{},
				changed: make(chan struct{}, 1), quit: make(chan struct{}),
			}
			kept, started = append(kept, m), append(started, m)
			continue
		}
		m := p.members[i]
		m.backend = b
		kept = append(kept, m)
	}
	for _, m := range p.members {
		if !slices.Contains(kept, m) {
			ended = append(ended, p.retire(m)...)
		}
	}
	p.set, p.tls, p.from, p.members = set, tls, from, kept
	for _, m := range kept {
		select {
		case m.changed <- struct{}{}:
		default:
		}
	}
	p.mu.Unlock()
	for _, m := range started {
		p.body.jobs.Go(func() { p.checks(m) })
	}
	p.endLater(ended)
}

// endLater ends connections after Options.Linger, or with the pool.
func (p *pool) endLater(sessions []*session) {
	linger := p.body.options.Linger
	if linger <= 0 || len(sessions) == 0 {
		endAll(sessions, false)
		return
	}
	p.body.jobs.Go(func() {
		timer := time.NewTimer(linger)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.gone:
		case <-p.body.ctx.Done():
		}
		endAll(sessions, false)
	})
}

// retire ends the checks of a member and returns its connections.
func (p *pool) retire(m *member) []*session {
	close(m.quit)
	p.body.health.Delete(p.nameOf(m))
	sessions := make([]*session, 0, len(m.sessions))
	for s := range m.sessions {
		sessions = append(sessions, s)
	}
	return sessions
}

func (p *pool) nameOf(m *member) ocisim.BackendName {
	return ocisim.BackendName{Balancer: p.balancer, BackendSet: p.set.name, Backend: m.name}
}

// close ends all checks and connections.
func (p *pool) close() {
	p.mu.Lock()
	var ended []*session
	for _, m := range p.members {
		ended = append(ended, p.retire(m)...)
	}
	p.members = nil
	close(p.gone)
	p.mu.Unlock()
	endAll(ended, false)
}

// force takes over the health that tests have set.
func (p *pool) force(forced map[ocisim.BackendName]ocisim.HealthStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forced = forced
}

// healthy says whether a member may get connections by its health. Where checks of a sort that the body does not make find
// nothing, it may.
func (p *pool) healthy(m *member) bool {
	health := m.health
	if forced, ok := p.forced[p.nameOf(m)]; ok {
		health = forced
	}
	return health == ocisim.HealthOK || health == ocisim.HealthWarning || (health == ocisim.HealthUnknown && !p.set.check.known())
}

// pick chooses the backend of a new connection and counts it there: nil if there is none. tried are those that did not
// answer.
func (p *pool) pick(s *session, client, front netip.AddrPort, tried []*member) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.chosen(client, front, tried)
	if m != nil {
		m.sessions[s] = true
	}
	return m
}

func (p *pool) chosen(client, front netip.AddrPort, tried []*member) *member {
	open := func(m *member) bool {
		return !m.drain && !m.offline && m.weight > 0 && (m.limit == 0 || len(m.sessions) < m.limit) && !slices.Contains(tried, m)
	}
	var primary, backup, unhealthy []*member
	for _, m := range p.members {
		switch {
		case !open(m):
		case !p.healthy(m):
			if !m.backup {
				unhealthy = append(unhealthy, m)
			}
		case m.backup:
			backup = append(backup, m)
		default:
			primary = append(primary, m)
		}
	}
	switch {
	case len(primary) > 0:
		return p.choose(primary, client, front)
	case len(backup) > 0:
		return p.choose(backup, client, front)
	case p.set.failOpen && len(unhealthy) > 0:
		return p.choose(unhealthy, client, front)
	}
	return nil
}

func (p *pool) choose(from []*member, client, front netip.AddrPort) *member {
	address, _ := client.Addr().MarshalBinary()
	to, _ := front.Addr().MarshalBinary()
	switch p.set.policy {
	case "LEAST_CONNECTIONS":
		return leastConnections(from)
	case "IP_HASH":
		return rendezvous(from, address)
	case "TWO_TUPLE":
		return rendezvous(from, address, to)
	case "THREE_TUPLE":
		return rendezvous(from, address, to, []byte{protocolTCP})
	case "FIVE_TUPLE":
		ports := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, client.Port()), front.Port())
		return rendezvous(from, address, to, []byte{protocolTCP}, ports)
	}
	return roundRobin(from)
}

const protocolTCP = 6

// roundRobin is the smooth weighted one: every member gains its weight, the richest one pays for all.
func roundRobin(from []*member) *member {
	total := 0
	var best *member
	for _, m := range from {
		m.rotation += m.weight
		total += m.weight
		if best == nil || m.rotation > best.rotation {
			best = m
		}
	}
	best.rotation -= total
	return best
}

// leastConnections takes the members with the fewest connections for their weight in turn.
func leastConnections(from []*member) *member {
	var least []*member
	for _, m := range from {
		switch {
		case len(least) == 0 || len(m.sessions)*least[0].weight < len(least[0].sessions)*m.weight:
			least = []*member{m}
		case len(m.sessions)*least[0].weight == len(least[0].sessions)*m.weight:
			least = append(least, m)
		}
	}
	return roundRobin(least)
}

// rendezvous sends equal keys to the same member as long as it is there, in proportion to the weights.
func rendezvous(from []*member, key ...[]byte) *member {
	var best *member
	var highest float64
	for _, m := range from {
		h := fnv.New64a()
		for _, part := range key {
			_, _ = h.Write(part)
		}
		_, _ = h.Write([]byte(m.name))
		share := (float64(mix(h.Sum64())>>11) + 0.5) / (1 << 53) // in (0, 1)
		if score := -float64(m.weight) / math.Log(share); best == nil || score > highest {
			best, highest = m, score
		}
	}
	return best
}

// mix spreads the bits of a hash, of which FNV changes few for keys that differ at the end.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// leave ends the count of a connection.
func (p *pool) leave(m *member, s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(m.sessions, s)
}

// settings are those for a new connection of a client to a member. from is the source that the member is to see.
func (p *pool) settings(m *member, client netip.AddrPort) (to backend, encrypt *backendTLS, from netip.AddrPort, retry bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from = netip.AddrPortFrom(p.from, 0)
	if p.from.IsValid() && p.set.preserve {
		from = client
	}
	return m.backend, p.tls, from, p.set.retryOtherBackend
}
