// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestProperties sends random sequences of calls from two principals to all operations of the region, valid and
// not, with faults, policies, foreign writes and time passing. Whatever happens:
//
//   - no resource takes a way that its state machine does not have (lifecycles);
//   - an etag changes exactly when the representation changes; another one in if-match changes nothing;
//   - a call that is refused, and a read, changes nothing;
//   - a retry token is one request with one effect and one answer, and useless once the resource is gone;
//   - the pages of a list show what is there all the time exactly once, and nothing twice;
//   - every answer has an opc-request-id of its own, every error a code; the log has every call once;
//   - addresses are neither lost nor given twice.
//
// A long run: go test -run TestProperties -rapid.checks 5000. With -v it prints how often each operation succeeded.
func TestProperties(t *testing.T) {
	cover := newCoverage()
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			m := newMachine(t, cover)
			t.Repeat(map[string]func(*rapid.T){
				"":         m.invariants,
				"create":   m.create,
				"create2":  m.create,
				"write":    m.write,
				"write2":   m.write,
				"read":     m.read,
				"again":    m.again,
				"list":     m.beginWalk,
				"page":     m.nextPage,
				"page2":    m.nextPage,
				"time":     m.time,
				"disturb":  m.disturb,
				"calm":     m.calm,
				"stranger": m.stranger,
			})
		})
	})
	cover.log(t)
}

// pick chooses an operation and makes a request of it.
func (m *machine) pick(t *rapid.T, match func(*Operation) bool) *outgoing {
	var choices, favourites []*Operation
	for _, o := range m.region.routes.all {
		if match(o) {
			choices = append(choices, o)
			if o.Service == m.focus {
				favourites = append(favourites, o)
			}
		}
	}
	d := m.draw(t)
	if len(favourites) > 0 && d.chance(75) {
		choices = favourites
	}
	return m.request(t, d, one(d, choices))
}

// request fills in an operation.
func (m *machine) request(t *rapid.T, d draw, o *Operation) *outgoing {
	q := &outgoing{op: o, principal: one(d, principals), query: url.Values{}}
	entry, _, err := m.region.routes.match(o.Method, o.Path)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range entry.params {
		if i == 0 && o.Target != nil {
			q.params = append(q.params, d.target(o.Target))
			continue
		}
		q.params = append(q.params, d.word(name, name))
	}
	for _, name := range sortedKeys(entry.query) {
		wanted := 15
		if entry.query[name] {
			wanted = 97
		}
		if name != "page" && name != "lifecycleState" && d.chance(wanted) {
			q.query.Set(name, d.parameter(name))
		}
	}
	if o.Method == http.MethodPost || o.Method == http.MethodPut {
		q.body = d.body(o)
	}
	if o.RetryToken && d.chance(40) {
		q.token = one(d, []string{"t1", "t2", "t3"})
	}
	if o.IfMatch && d.chance(30) {
		q.match = "00000000"
		if res := m.region.cloud.store.byID[q.params[0]]; res != nil && d.chance(70) {
			q.match = res.etag
		}
	}
	return q
}

// target is the identifier of a resource of a kind, now and then of another kind or of none.
func (d draw) target(kind *kindInfo) string {
	items := d.machine.region.cloud.store.under(kind, "")
	if len(items) == 0 || d.chance(4) {
		return d.ocid(kind.ocidType)
	}
	ids := make([]string, 0, len(items))
	for _, res := range items {
		ids = append(ids, res.id)
	}
	return one(d, ids)
}

// parameter is a value for a query parameter.
func (d draw) parameter(name string) string {
	switch name {
	case "limit":
		return strconv.Itoa(1 + d.IntN(6))
	case "sortBy":
		return one(d, []string{"TIMECREATED", "DISPLAYNAME"})
	case "sortOrder":
		return one(d, []string{"ASC", "DESC"})
	default:
		return d.word(name, name)
	}
}

func (m *machine) create(t *rapid.T) {
	m.call(t, m.pick(t, func(o *Operation) bool { return o.RetryToken && o.Target == nil }))
}

func (m *machine) write(t *rapid.T) {
	m.call(t, m.pick(t, func(o *Operation) bool { return o.write() && (o.Target != nil || !o.RetryToken) }))
}

func (m *machine) read(t *rapid.T) {
	m.call(t, m.pick(t, func(o *Operation) bool { return !o.write() }))
}

// again repeats an earlier request with its retry token, or asks something else with it.
func (m *machine) again(t *rapid.T) {
	if len(m.past) == 0 {
		t.Skip("no request has had a retry token yet")
	}
	d := m.draw(t)
	q := one(d, m.past)
	q.match = ""
	if d.chance(30) {
		q.body = d.body(q.op)
	}
	m.call(t, &q)
}

func (m *machine) time(t *rapid.T) {
	m.wait(t, rapid.SampledFrom([]time.Duration{
		time.Second, 5 * time.Second, 20 * time.Second, time.Minute, 10 * time.Minute, 2 * time.Hour, 25 * time.Hour,
	}).Draw(t, "time"))
}

// disturb lets calls fail, or takes permissions away.
func (m *machine) disturb(t *rapid.T) {
	if len(m.restore) > 2 {
		t.Skip("enough goes wrong")
	}
	d := m.draw(t)
	if d.chance(50) {
		policy := Policy{
			Principal: one(d, append(principals, "")),
			Verb:      one(d, []Verb{Inspect, Read, Use, Manage}),
			ResourceType: one(d, []string{
				"", "load-balancers", "network-load-balancers", "instances", "public-ips", "network-security-groups",
			}),
		}
		t.Logf("denied: %+v", policy)
		m.restore = append(m.restore, m.region.Deny(policy))
		return
	}
	fault := one(d, []Fault{
		{Status: http.StatusInternalServerError}, {Status: http.StatusInternalServerError, Applied: true},
		{Status: http.StatusTooManyRequests, RetryAfter: time.Second}, {Status: http.StatusConflict},
		{Drop: BeforeApply}, {Drop: AfterApply}, {HalfBody: true},
		{Delay: 3 * time.Second}, {Delay: 40 * time.Second, Applied: true}, {FailWork: true},
	})
	fault.Times, fault.Nth = 1+d.IntN(5), 1+d.IntN(3)
	t.Logf("fault: %+v", fault)
	m.restore = append(m.restore, m.region.Fault(fault))
}

func (m *machine) calm(t *rapid.T) {
	if len(m.restore) == 0 {
		t.Skip("nothing is disturbed")
	}
	for _, restore := range m.restore {
		restore()
	}
	m.restore = nil
}

// stranger writes past the API.
func (m *machine) stranger(t *rapid.T) {
	var ids []string
	for id, res := range m.region.cloud.store.byID {
		if res.kind != compartments.kindInfo && res.kind != workRequests.kindInfo {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return int(m.region.cloud.store.byID[a].seq) - int(m.region.cloud.store.byID[b].seq)
	})
	d := m.draw(t)
	id := one(d, ids)
	// Networks go last: nobody, not even on OCI, can delete one while something is in it.
	kind := m.region.cloud.store.byID[id].kind
	if d.chance(25) && kind != vcns.kindInfo && kind != subnets.kindInfo {
		t.Log("foreign delete of", id)
		m.intrude(t, func(f *Foreign) error { return f.Delete(id) })
		return
	}
	name := one(d, partNames)
	t.Log("foreign name for", id)
	m.intrude(t, func(f *Foreign) error { return f.Patch(id, []byte(`{"displayName":"`+name+`"}`)) })
}

// invariants hold after every action.
func (m *machine) invariants(t *rapid.T) {
	m.followWalks()
	m.checkAddresses()
	cl := m.region.cloud
	for target := range cl.queues {
		if _, there := cl.store.byID[target]; !there && !m.removed[target] {
			m.violate("work waits for %s, which is not there", target)
		}
	}
	for id := range cl.vnicOwners {
		if vnics.lookup(cl, id) == nil {
			m.violate("VNIC %s has an owner and is not there", id)
		}
	}
	m.settled(t)
}

// checkAddresses: every address that is in use belongs to a resource, and to one only.
func (m *machine) checkAddresses() {
	cl := m.region.cloud
	used := map[string]map[string]string{}
	claim := func(pool, address, owner string) {
		if used[pool] == nil {
			used[pool] = map[string]string{}
		}
		if other, twice := used[pool][address]; twice {
			m.violate("address %s belongs to %s and to %s", address, other, owner)
		}
		used[pool][address] = owner
	}
	for ip := range privateIPs.under(cl, "") {
		claim(value(ip.SubnetId), value(ip.IpAddress), value(ip.Id))
	}
	for ip := range ipv6s.under(cl, "") {
		claim(value(ip.SubnetId)+"/v6", value(ip.IpAddress), value(ip.Id))
	}
	for subnet := range subnets.under(cl, "") {
		for _, key := range []string{value(subnet.Id), value(subnet.Id) + "/v6"} {
			if pool := cl.pools[key]; pool != nil {
				m.compareAddresses(key, pool, used[key])
			}
		}
	}
	for ip := range publicIPs.under(cl, "") {
		claim("public", value(ip.IpAddress), value(ip.Id))
	}
	for b := range loadBalancers.under(cl, "") {
		if b.LifecycleState != "DELETED" {
			for _, address := range lbAddresses(b) {
				claim("public", address, value(b.Id))
			}
		}
	}
	for b := range networkLoadBalancers.under(cl, "") {
		if b.LifecycleState != "DELETED" {
			for _, address := range nlbOwnAddresses(b) {
				claim("public", address, value(b.Id))
			}
		}
	}
	m.compareAddresses("public", cl.publicPool, used["public"])
}

func (m *machine) compareAddresses(name string, pool *addressPool, used map[string]string) {
	for a := range pool.used {
		if _, ok := used[a.String()]; !ok {
			m.violate("address %s of %s is in use by nobody", a, name)
		}
	}
	for a, owner := range used {
		if !slices.ContainsFunc(sortedAddresses(pool), func(b string) bool { return a == b }) {
			m.violate("address %s of %s belongs to %s and is free", a, name, owner)
		}
	}
}

func sortedAddresses(pool *addressPool) []string {
	list := make([]string, 0, len(pool.used))
	for a := range pool.used {
		list = append(list, a.String())
	}
	return list
}

// coverage counts what the random calls reached.
type coverage struct {
	hasETag     map[*kindInfo]bool
	operations  []string
	answers     map[string]map[int]int
	refusals    map[string]map[string]int
	transitions map[string]int
}

func newCoverage() *coverage {
	c := &coverage{hasETag: map[*kindInfo]bool{}, answers: map[string]map[int]int{}, refusals: map[string]map[string]int{}, transitions: map[string]int{}}
	for _, o := range New(Options{}).Operations() {
		c.operations = append(c.operations, o.FullName())
		if o.Target != nil {
			c.hasETag[o.Target] = true
		}
	}
	return c
}

func (c *coverage) transition(label, from, to string) { c.transitions[label+": "+from+" -> "+to]++ }

func (c *coverage) answered(o *Operation, in *incoming) {
	name := o.FullName()
	if c.answers[name] == nil {
		c.answers[name], c.refusals[name] = map[int]int{}, map[string]int{}
	}
	c.answers[name][in.record.Status/100]++
	if in.status >= 400 && in.record.Fault == "" {
		text := string(in.body)
		if i := strings.Index(text, "ocid1."); i > 0 {
			text = text[:i]
		}
		c.refusals[name][text]++
	}
}

// log prints what was reached, and what was not.
func (c *coverage) log(t *testing.T) {
	var never []string
	for _, name := range c.operations {
		if c.answers[name][2] == 0 {
			never = append(never, name)
		}
		t.Logf("%-60s 2xx %5d  4xx %5d", name, c.answers[name][2], c.answers[name][4])
		if testing.Verbose() && c.answers[name][2]*10 < c.answers[name][4] {
			for _, text := range sortedKeys(c.refusals[name]) {
				t.Logf("    %5d %s", c.refusals[name][text], text)
			}
		}
	}
	for _, way := range sortedKeys(c.transitions) {
		t.Logf("%7d %s", c.transitions[way], way)
	}
	t.Logf("never answered 2xx: %v", never)
}
