// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// machine is a region with callers, and what the tests know of it.
type machine struct {
	region       *Region
	compartments []string
	focus        string // service that most calls go to; "" for none
	known        map[string]lifecycle
	coverage     *coverage

	violations []string
	intruding  bool // a foreign write is going on: whatever it takes away is gone
	moved      map[string]bool
	born       map[string]time.Time
	shown      map[string]shot // what every resource was at its last change
	removed    map[string]bool

	calls      uint64
	requestIDs map[string]bool
	tokens     map[tokenKey]*tokenUse
	past       []outgoing // requests with a retry token
	walks      []*walk
	restore    []func() // of faults and denials

	choices    *rand.Rand // instead of rapid's, for a run that is made twice
	transcript []string   // every request with its answer
}

// outgoing is a request that a principal is about to send.
type outgoing struct {
	op        *Operation
	principal string
	params    []string
	query     url.Values
	body      []byte
	token     string
	match     string // If-Match
}

// incoming is what comes back.
type incoming struct {
	status int
	header http.Header
	body   []byte
	err    error
	code   string
	record Call
}

var principals = []string{"alice", "bob"}

func principalKey(name string) string { return "tenancy/" + name + "/fingerprint" }

func newMachine(t *rapid.T, cover *coverage) *machine {
	behaviour := DefaultBehaviour()
	behaviour.DeletedBalancerVisible = rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "deleted balancers stay")
	behaviour.RulesChangeGroupETag = rapid.Bool().Draw(t, "rules change the group's etag")
	behaviour.ListsLagByThemselves = rapid.Bool().Draw(t, "lists lag by themselves")
	m := newMachineWith(t, cover, Options{
		Seed:          rapid.Uint64Range(0, 1000).Draw(t, "seed"),
		PageSize:      rapid.IntRange(1, 5).Draw(t, "page size"),
		ShortPages:    rapid.SampledFrom([]float64{0, 0.4}).Draw(t, "short pages"),
		EventualReads: rapid.IntRange(0, 2).Draw(t, "eventual reads"),
		DropOptional:  rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "drop optional"),
		Write:         Rate{PerSecond: rapid.SampledFrom([]float64{0, 5}).Draw(t, "writes per second"), Burst: 5},
		Behaviour:     behaviour,
	})
	m.focus = rapid.SampledFrom(sortedKeys(sdkClients)).Draw(t, "focus")
	return m
}

func newMachineWith(t *rapid.T, cover *coverage, options Options) *machine {
	options.AvailabilityDomains = defaultDomains("us-ashburn-1")[:1] // so that most things fit together
	m := &machine{
		region: New(options), known: lifecycles(), coverage: cover,
		moved: map[string]bool{}, born: map[string]time.Time{}, shown: map[string]shot{}, removed: map[string]bool{}, requestIDs: map[string]bool{}, tokens: map[tokenKey]*tokenUse{},
	}
	for _, name := range principals {
		m.region.RegisterKey(principalKey(name), nil, Principal{ID: name})
	}
	m.region.cloud.watch = m.watch
	m.populate()
	m.balance(t)
	return m
}

// populate makes the world that the calls are about.
func (m *machine) populate() {
	r := m.region
	m.compartments = []string{
		r.AddCompartment(Compartment{Name: "cluster"}), r.AddCompartment(Compartment{Name: "other"}), r.options.Tenancy,
	}
	r.AddVCN(VCN{Name: "net", IPv6CIDRs: []string{"2001:db8::/56"}})
	r.AddSecurityGroup(SecurityGroup{Name: "a", Ingress: []SecurityRule{{Protocol: "tcp", Ports: "443"}}})
	r.AddSecurityGroup(SecurityGroup{Name: "b"})
	r.AddSecurityList(SecurityList{Name: "a"})
	r.AddSubnet(Subnet{Name: "balancers", CIDR: "10.0.20.0/28"})
	r.AddSubnet(Subnet{Name: "nodes", CIDR: "10.0.10.0/24", IPv6CIDR: "2001:db8:0:1::/64", Private: true})
	for _, name := range []string{"a", "b", "c"} {
		r.AddPublicIP(PublicIP{Name: name})
	}
	r.AddInstance(Instance{Name: "a", Count: 2, VNIC: VNIC{Subnet: "nodes", IPv6: []string{Auto}}})
	r.AddVolume(Volume{Name: "a", Count: 2})
	r.AddVolumeBackup(VolumeBackup{Name: "a", Volume: "a"})
	r.AddFileSystem(FileSystem{Name: "a"})
	r.AddMountTarget(MountTarget{Name: "a", Subnet: "nodes"})
	r.AddExport(Export{Path: "/a"})
	r.AddInstance(Instance{Name: "b", VNIC: VNIC{Subnet: "balancers", PublicIP: Auto, SecurityGroups: []string{"a"}}})
}

// balance makes a balancer of each kind with all parts, through the API.
func (m *machine) balance(t *rapid.T) {
	subnet := value(subnets.of(m.region.cloud.store.under(subnets.kindInfo, "")[0]).Id)
	const parts = `,"backendSets":{"a":{"policy":"%s","healthChecker":{"protocol":"TCP","port":80},"backends":[{"ipAddress":"10.0.10.2","port":80}]}},
		"listeners":{"a":{"name":"a","defaultBackendSetName":"a","port":80,"protocol":"TCP"}}}`
	for _, b := range []struct{ name, body string }{
		{"loadbalancer.CreateLoadBalancer", `{"compartmentId":"` + m.compartments[0] + `","displayName":"a","shapeName":"100Mbps","subnetIds":["` + subnet + `"]` +
			fmt.Sprintf(parts, "ROUND_ROBIN")},
		{"networkloadbalancer.CreateNetworkLoadBalancer", `{"compartmentId":"` + m.compartments[0] + `","displayName":"a","isPrivate":false,"subnetId":"` + subnet + `"` +
			fmt.Sprintf(parts, "FIVE_TUPLE")},
	} {
		i := slices.IndexFunc(m.region.routes.all, func(o *Operation) bool { return o.FullName() == b.name })
		if in := m.call(t, &outgoing{op: m.region.routes.all[i], principal: "alice", body: []byte(b.body)}); in.status >= 300 {
			t.Fatalf("%s: %d %s", b.name, in.status, in.body)
		}
	}
	m.wait(t, 2*time.Minute)
}

func (m *machine) violate(format string, args ...any) {
	m.violations = append(m.violations, fmt.Sprintf(format, args...))
}

// watch sees every change of the store, also those between two calls.
func (m *machine) watch(res *resource, before facets) {
	l, ok := m.known[res.kind.label]
	if !ok {
		m.violate("the kind %q has no entry in lifecycles()", res.kind.label)
		return
	}
	from, to := before.state, res.state
	switch {
	case before.id == "":
		from = start
		m.born[res.id] = m.region.cloud.now
	case res.gone:
		to = gone
		m.removed[res.id] = true
	case before.name != res.name || !sameKeys(before, res.facets):
		m.moved[res.id] = true
	}
	if to != gone && m.coverage.hasETag[res.kind] {
		m.checkNewETag(res)
	}
	m.coverage.transition(res.kind.label, from, to)
	if to == gone && m.intruding {
		return
	}
	// What a call does to the resource that it makes is not seen by anybody.
	unseen := m.born[res.id].Equal(m.region.cloud.now) && l.allows(start, to)
	if !unseen && !l.allows(from, to) {
		m.violate("%s %s went from %s to %s", res.kind.label, res.id, from, to)
	}
}

// checkNewETag: the etag is another one exactly when the representation is.
func (m *machine) checkNewETag(res *resource) {
	cl := m.region.cloud
	now := shot{etag: res.etag, json: cl.representation(res)}
	old, known := m.shown[res.id]
	m.shown[res.id] = now
	if !known || bytes.Equal(old.json, now.json) == (old.etag == now.etag) {
		return
	}
	if res.kind == securityGroups.kindInfo && cl.behaviour.RulesChangeGroupETag {
		return // the etag stands for the rules too
	}
	m.violate("%s had etag %s and has %s, and was %s and is %s", res.id, old.etag, now.etag, old.json, now.json)
}

// settled fails the test if something that may not happen has happened.
func (m *machine) settled(t *rapid.T) {
	if len(m.violations) > 0 {
		t.Fatal(strings.Join(m.violations, "\n"))
	}
}

// shot is a resource at one moment.
type shot struct {
	kind        *kindInfo
	etag, state string
	json        []byte
}

func (m *machine) snapshot() map[string]shot {
	cl := m.region.lock()
	defer m.region.mu.Unlock()
	shots := make(map[string]shot, len(cl.store.byID))
	for id, res := range cl.store.byID {
		shots[id] = shot{kind: res.kind, etag: res.etag, state: res.state, json: cl.representation(res)}
	}
	return shots
}

// changes describes what differs between two moments.
func changes(before, after map[string]shot) []string {
	var list []string
	for id, old := range before {
		now, there := after[id]
		switch {
		case !there:
			list = append(list, id+" is gone")
		case now.etag != old.etag || now.state != old.state || !bytes.Equal(now.json, old.json):
			list = append(list, fmt.Sprintf("%s changed from %s to %s", id, old.json, now.json))
		}
	}
	for id := range after {
		if _, there := before[id]; !there {
			list = append(list, id+" is new")
		}
	}
	slices.Sort(list)
	return list
}

// checkETags: no representation changes under its etag, also where it depends on other resources.
func (m *machine) checkETags(before, after map[string]shot) {
	for id, now := range after {
		old, there := before[id]
		if there && m.coverage.hasETag[now.kind] && old.etag == now.etag && !bytes.Equal(old.json, now.json) {
			m.violate("%s changed under etag %s, from %s to %s", id, old.etag, old.json, now.json)
		}
	}
}

// uri renders the path and the query of a request.
func (q *outgoing) uri() string {
	var b strings.Builder
	next := 0
	for segment := range strings.SplitSeq(strings.TrimPrefix(q.op.Path, "/"), "/") {
		b.WriteByte('/')
		if strings.HasPrefix(segment, "{") {
			segment = url.PathEscape(q.params[next])
			next++
		}
		b.WriteString(segment)
	}
	if len(q.query) > 0 {
		b.WriteString("?" + q.query.Encode())
	}
	return b.String()
}

func (q *outgoing) String() string {
	return fmt.Sprintf("%s: %s %s token=%q if-match=%q %s", q.principal, q.op.Method, q.uri(), q.token, q.match, q.body)
}

// exchange sends a request and reads the answer, as far as the connection carries it.
func (m *machine) exchange(t *rapid.T, q *outgoing) *incoming {
	req, err := http.NewRequestWithContext(t.Context(), q.op.Method, "https://simulator"+q.uri(), bytes.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", `Signature version="1",headers="date",keyId="`+principalKey(q.principal)+`",algorithm="rsa-sha256",signature="AA=="`)
	setIf(req.Header, "Opc-Retry-Token", q.token)
	setIf(req.Header, "If-Match", q.match)
	in := &incoming{}
	res, err := m.region.Transport().RoundTrip(req)
	if in.err = err; err == nil {
		in.status, in.header = res.StatusCode, res.Header
		in.body, in.err = io.ReadAll(res.Body)
	}
	m.transcript = append(m.transcript, fmt.Sprintf("%s\n%d %v %s %v", q, in.status, in.header, in.body, in.err))
	cl := m.region.lock()
	defer m.region.mu.Unlock()
	in.record = cl.log.last()
	return in
}

// last is the newest line of the log.
func (l *callLog) last() Call {
	switch {
	case len(l.ring) == 0:
		return Call{}
	case len(l.ring) < l.size:
		return l.ring[len(l.ring)-1]
	default:
		return l.ring[(l.next+l.size-1)%l.size]
	}
}

// call sends a request and checks all that is true of every call.
func (m *machine) call(t *rapid.T, q *outgoing) *incoming {
	t.Log(q)
	before := m.snapshot()
	events := m.region.cloud.schedule.events.Len()
	refusal := m.deniedAnyway(q)
	began := time.Now()
	in := m.exchange(t, q)
	t.Logf("  -> %d %v %s %s", in.status, in.err, in.record.Fault, in.body)
	m.calls++
	m.coverage.answered(q.op, in)
	m.checkRecord(t, q, in)
	after := m.snapshot()
	m.checkETags(before, after)
	faulty := in.record.Fault != "" && in.record.Fault != "work request fails"
	if !faulty {
		m.checkAnswer(t, in)
	}
	// A delay lets time pass, and time changes things.
	still := time.Since(began) == 0
	if still && (in.record.Status >= 400 && !faulty || in.record.Status == 0 || !q.op.changes()) {
		if list := changes(before, after); len(list) > 0 {
			t.Fatalf("a call that may not change anything did: %s", strings.Join(list, "\n"))
		}
		if now := m.region.cloud.schedule.events.Len(); in.record.Status >= 400 && now != events {
			t.Fatalf("a refused call scheduled something: %d events instead of %d", now, events)
		}
	}
	if refusal && in.record.Status > 0 && in.record.Status < 400 {
		t.Fatal("a denied call was answered")
	}
	if !faulty {
		m.checkMatch(t, q, in, before)
	}
	m.checkToken(t, q, in)
	m.settled(t)
	return in
}

// changes says whether an operation may change anything.
func (o *Operation) changes() bool { return o.Method != http.MethodGet && o.write() }

// checkRecord: the log has exactly this call, as the caller knows it.
func (m *machine) checkRecord(t *rapid.T, q *outgoing, in *incoming) {
	r := in.record
	if r.Seq != m.calls || r.Principal != q.principal || r.Name() != q.op.FullName() || r.Method != q.op.Method ||
		r.RetryToken != q.token || r.IfMatch != q.match || r.Write != q.op.write() {
		t.Fatalf("call %d is in the log as %+v", m.calls, r)
	}
	if in.err == nil && (r.Status != in.status || r.RequestID != in.header.Get("Opc-Request-Id") || r.WorkRequest != in.header.Get("Opc-Work-Request-Id")) {
		t.Fatalf("answered %d %v, in the log as %+v", in.status, in.header, r)
	}
	total := 0
	for _, n := range m.region.Counts() {
		total += n
	}
	if total != int(m.calls) {
		t.Fatalf("%d calls are counted, want %d", total, m.calls)
	}
}

// checkAnswer: every answer has its request id, every error its code.
func (m *machine) checkAnswer(t *rapid.T, in *incoming) {
	if in.err != nil {
		t.Fatalf("no fault, but %v", in.err)
	}
	id := in.header.Get("Opc-Request-Id")
	if id == "" || m.requestIDs[id] {
		t.Fatalf("opc-request-id %q is empty or repeats", id)
	}
	m.requestIDs[id] = true
	if in.status >= 500 {
		t.Fatalf("the simulator fails by itself: %s", in.body)
	}
	if in.status >= 400 {
		var e struct{ Code, Message string }
		if json.Unmarshal(in.body, &e) != nil || e.Code == "" || e.Message == "" || e.Code != in.record.Code {
			t.Fatalf("error body %s", in.body)
		}
		in.code = e.Code
		return
	}
	if len(in.body) > 0 && !json.Valid(in.body) {
		t.Fatalf("body is not JSON: %s", in.body)
	}
}

// checkMatch: another version in if-match is refused, the right one is not.
func (m *machine) checkMatch(t *rapid.T, q *outgoing, in *incoming, before map[string]shot) {
	if !q.op.IfMatch || q.match == "" || len(q.params) == 0 || in.record.Replayed {
		return
	}
	target, there := before[q.params[0]]
	switch right := there && target.etag == q.match; {
	case !right && in.status < 400:
		t.Fatalf("if-match %s was accepted, the etag is %s", q.match, target.etag)
	case right && in.code == "NoEtagMatch":
		t.Fatalf("if-match %s is right and was refused", q.match)
	}
}

// deniedAnyway says whether a policy forbids the call, whatever it is about.
func (m *machine) deniedAnyway(q *outgoing) bool {
	resource := q.op.Resource
	if resource == "" && q.op.Target != nil {
		resource = q.op.Target.policy
	}
	return slices.ContainsFunc(m.region.cloud.denials, func(d *denial) bool {
		return d.Compartment == "" && (d.Principal == "" || d.Principal == q.principal) &&
			(d.ResourceType == "" || d.ResourceType == resource) && verbStrength[q.op.Verb] >= verbStrength[d.Verb]
	})
}

// tokenUse is what a retry token stands for.
type tokenUse struct {
	request string // what was asked with it
	since   time.Time
	created string // OCID, or the resource that was changed
	status  int    // of the answer; 0 when it was lost
	body    []byte
}

// checkToken: one token is one request with one effect and one answer.
func (m *machine) checkToken(t *rapid.T, q *outgoing, in *incoming) {
	if !q.op.RetryToken || q.token == "" || len(q.token) > maxRetryToken {
		return
	}
	key := tokenKey{q.principal, q.op.FullName(), q.token}
	use := m.tokens[key]
	if use != nil && time.Since(use.since) >= retryTokenLife {
		delete(m.tokens, key)
		use = nil
	}
	request := strings.Join(append(slices.Clone(q.params), q.query.Encode(), canonical(q.body)), "\n")
	if use == nil {
		m.firstUse(key, request, q, in)
		return
	}
	lost := in.err != nil || in.record.Fault != ""
	same, live := use.request == request, m.alive(use.created)
	switch {
	case lost:
		if in.record.Created != "" {
			t.Fatalf("the token created %s, and now %s", use.created, in.record.Created)
		}
	case in.status < 300:
		if !same || !live || !in.record.Replayed {
			t.Fatalf("a used token was accepted: same request %t, resource alive %t, replayed %t", same, live, in.record.Replayed)
		}
		if use.status == 0 {
			use.status, use.body = in.status, in.body
		}
		if use.status != in.status || !bytes.Equal(use.body, in.body) {
			t.Fatalf("the repeated request was answered %d %s, at first %d %s", in.status, in.body, use.status, use.body)
		}
	case slices.Contains([]string{"TooManyRequests", "NotAuthorizedOrNotFound", "MissingParameter"}, in.code):
	case same && live:
		t.Fatalf("the repeated request was refused: %s", in.body)
	case in.code != "InvalidatedRetryToken":
		t.Fatalf("a token that does not fit was refused with %s", in.code)
	}
}

// firstUse remembers a request that took effect under a token.
func (m *machine) firstUse(key tokenKey, request string, q *outgoing, in *incoming) {
	if m.region.cloud.tokens[key] == nil {
		if in.err == nil && in.status < 300 {
			m.violate("the token of an accepted request is forgotten")
		}
		return
	}
	use := &tokenUse{request: request, since: time.Now(), created: in.record.Created}
	if use.created == "" && len(q.params) > 0 {
		use.created = q.params[0]
	}
	if in.err == nil && in.status < 300 {
		use.status, use.body = in.status, in.body
	}
	m.tokens[key] = use
	m.past = append(m.past, *q)
}

// alive says whether a resource is there and not on its way out.
func (m *machine) alive(id string) bool {
	if id == "" {
		return true
	}
	res := m.region.cloud.store.byID[id]
	return res != nil && res.alive()
}

// canonical is a body whatever the order of its fields.
func canonical(body []byte) string {
	var v any
	if raw, err := canonicalJSON(body, &v); err == nil {
		return string(raw)
	}
	return string(body)
}

// wait lets time pass.
func (m *machine) wait(t *rapid.T, d time.Duration) {
	before := m.snapshot()
	time.Sleep(d)
	m.checkETags(before, m.snapshot())
	m.settled(t)
}

// intrude writes past the API.
func (m *machine) intrude(t *rapid.T, write func(*Foreign) error) {
	before := m.snapshot()
	m.intruding = true
	err := write(m.region.Foreign())
	m.intruding = false
	if err != nil && !errors.Is(err, ErrUnknownResource) && !strings.Contains(err.Error(), "is not stored in the form of the API") {
		t.Fatal(err)
	}
	m.checkETags(before, m.snapshot())
	m.settled(t)
}
