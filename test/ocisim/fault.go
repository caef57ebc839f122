// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"bytes"
	"fmt"
	"net/http"
	"time"
)

// Moment is when a connection breaks.
type Moment int

// A dropped connection breaks before the call takes effect, or after it did.
const (
	NoDrop Moment = iota
	BeforeApply
	AfterApply
)

// Fault is something that goes wrong with matching calls. Empty conditions match everything. Several effects may be
// combined; several faults may strike one call.
type Fault struct {
	Operation string `json:"operation,omitempty"` // "GetInstance", "loadbalancer.GetWorkRequest", "Create*", "compute.*", "*"
	Principal string `json:"principal,omitempty"` // Principal.ID
	// Resource is an OCID that the call names in its path, its query or its body, or whose work request it reads.
	Resource string `json:"resource,omitempty"`
	Writes   bool   `json:"writes,omitempty"` // only calls that change something
	Reads    bool   `json:"reads,omitempty"`  // only the others
	// Match is a further condition. It runs with the region's lock held and must not use the region.
	Match func(Call) bool `json:"-"`

	Nth    int     `json:"nth,omitempty"`    // first matching call that is struck, from 1; 0 is the first
	Times  int     `json:"times,omitempty"`  // calls struck from there on; 0 is every one, or one if Nth is set
	Chance float64 `json:"chance,omitempty"` // probability that a call is struck; 0 is certainty
	// Budget lets each principal make so many matching calls to each service; those above it are struck, with 429 if
	// the fault says nothing else. The zero Rate is none.
	Budget Rate `json:"budget,omitzero"`

	Status     int           `json:"status,omitempty"` // answers this error; a missing code follows from the status
	Code       string        `json:"code,omitempty"`
	Message    string        `json:"message,omitempty"`
	RetryAfter time.Duration `json:"retryAfter,omitempty"`

	Drop     Moment        `json:"drop,omitempty"`
	Delay    time.Duration `json:"delay,omitempty"`
	HalfBody bool          `json:"halfBody,omitempty"` // the connection breaks in the middle of the answer
	// Applied moves Status and Delay behind the effect: the call is applied, its answer is an error or late.
	Applied bool `json:"applied,omitempty"`
	// FailWork lets the call be accepted, and its work request fail with Code and Message (default INTERNAL_ERROR).
	// Where the operation has no work request, what it makes ends FAULTY or FAILED, and what it changes stays as it was.
	// A fault without any other effect counts in Nth and Times what calls start, not the calls.
	FailWork bool `json:"failWork,omitempty"`

	Note string `json:"note,omitempty"` // shown in the call log

	act func(Call) // of somebody else: see Foreign.Before and Foreign.After
}

type armedFault struct {
	Fault

	seen, struck int
	buckets      map[bucketName]*bucketState
}

// strike is the sum of the faults that hit one call.
type strike struct {
	before, after         time.Duration
	errBefore, errAfter   error
	dropBefore, dropAfter bool
	half                  bool
	work                  *workFailure
	note                  string
	actBefore, actAfter   []func(Call)
}

type workFailure struct {
	code, message string
}

// Fault arms a fault until remove is called.
func (r *Region) Fault(f Fault) (remove func()) {
	cl := r.lock()
	defer r.mu.Unlock()
	armed := &armedFault{Fault: f, buckets: map[bucketName]*bucketState{}}
	cl.faults = append(cl.faults, armed)
	return func() {
		cl := r.lock()
		defer r.mu.Unlock()
		cl.faults = without(cl.faults, armed)
	}
}

// harmless says whether a fault has no effect.
func (f Fault) harmless() bool {
	return f.Status == 0 && f.Drop == NoDrop && f.Delay == 0 && !f.HalfBody && !f.FailWork && f.act == nil
}

// status is the error that a fault answers: 429 for a budget that names nothing else.
func (f Fault) status() int {
	if f.Budget != (Rate{}) && f.harmless() {
		return http.StatusTooManyRequests
	}
	return f.Status
}

// Validate refuses a fault that can never strike, or has no effect. Its error wraps ErrOption.
func (f Fault) Validate() error {
	switch {
	case f.Operation != "" && !knownOperation(f.Operation):
		return fmt.Errorf("%w: unknown operation %q", ErrOption, f.Operation)
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("%w: status %d is not an error", ErrOption, f.Status)
	case f.Chance < 0 || f.Chance > 1:
		return fmt.Errorf("%w: chance %g is not a probability from 0 to 1", ErrOption, f.Chance)
	case f.Nth < 0 || f.Times < 0 || f.Delay < 0 || f.RetryAfter < 0 || f.Budget.PerSecond < 0 || f.Budget.Burst < 0:
		return fmt.Errorf("%w: a fault has no negative numbers", ErrOption)
	case f.Reads && f.Writes:
		return fmt.Errorf("%w: no call is both a read and a write", ErrOption)
	case f.harmless() && f.Budget == (Rate{}):
		return fmt.Errorf("%w: the fault has no effect: status, drop, delay, halfBody, failWork or budget", ErrOption)
	}
	return nil
}

// knownOperation says whether a name that a person wrote means any operation.
func knownOperation(name string) bool {
	for _, s := range services() {
		for i := range s.operations {
			if s.operations[i].named(name) {
				return true
			}
		}
	}
	return false
}

// Faults lists what is armed.
func (r *Region) Faults() []Fault {
	cl := r.lock()
	defer r.mu.Unlock()
	list := make([]Fault, 0, len(cl.faults))
	for _, f := range cl.faults {
		list = append(list, f.Fault)
	}
	return list
}

// strikes counts the call on all faults and adds up those that hit it, with the latency of the operation.
func (cl *cloud) strikes(c *call) strike {
	var s strike
	for _, name := range [...]string{c.operation.FullName(), c.operation.Service + ".*", "*"} {
		if latency, ok := cl.options.Latency[name]; ok {
			s.before += cl.draw(latency)
			break
		}
	}
	for _, f := range cl.faults {
		if !f.onWork() && f.matches(c) && f.hits(cl, c) {
			f.addTo(&s)
		}
	}
	return s
}

// onWork says whether a fault strikes what a call starts, and nothing else.
func (f *armedFault) onWork() bool {
	return f.FailWork && f.Delay == 0 && f.Drop == NoDrop && !f.HalfBody
}

// strikeWork applies the faults that strike nothing but what a write starts. A write that starts nothing is none of
// theirs; only its end tells, so settle must be called then.
func (c *call) strikeWork() (settle func()) {
	type count struct {
		fault        *armedFault
		seen, struck int
	}
	var counts []count
	var s strike
	for _, f := range c.faults {
		if !c.operation.write() || !f.onWork() || !f.matches(c) {
			continue
		}
		counts = append(counts, count{f, f.seen, f.struck})
		if f.hits(c.cloud, c) {
			f.addTo(&s)
		}
	}
	if s.work != nil {
		c.failure = s.work
	}
	scheduled := c.schedule.seq
	return func() {
		if c.schedule.seq != scheduled || c.record.WorkRequest != "" {
			c.record.Fault = s.note
			return
		}
		for _, n := range counts {
			n.fault.seen, n.fault.struck = n.seen, n.struck
		}
	}
}

func (f *armedFault) matches(c *call) bool {
	if f.Operation != "" && !c.operation.named(f.Operation) {
		return false
	}
	if f.Principal != "" && f.Principal != c.principal.ID {
		return false
	}
	if write := c.operation.write(); f.Writes && !write || f.Reads && write {
		return false
	}
	if f.Resource != "" && !c.mentions(f.Resource) {
		return false
	}
	return f.Match == nil || f.Match(*c.record)
}

// mentions says whether an identifier stands in the path, the query or the body of the call, or the call reads a work
// request of it.
func (c *call) mentions(id string) bool {
	if contains(c.params, id) || bytes.Contains(c.body, []byte(`"`+id+`"`)) {
		return true
	}
	for _, param := range c.params {
		if w := workRequests.find(c.cloud, param); w != nil && w.target == id {
			return true
		}
	}
	for _, values := range c.query {
		if contains(values, id) {
			return true
		}
	}
	return false
}

// hits counts a matching call.
func (f *armedFault) hits(cl *cloud, c *call) bool {
	f.seen++
	times := f.Times
	if times == 0 && f.Nth > 0 {
		times = 1
	}
	if f.seen < f.Nth || (times > 0 && f.struck >= times) {
		return false
	}
	if f.Chance > 0 && !cl.chance(f.Chance) {
		return false
	}
	if f.Budget != (Rate{}) && takeFrom(f.buckets, bucketName{principal: c.principal.ID, service: c.operation.Service}, f.Budget, cl.now) {
		return false
	}
	f.struck++
	return true
}

func (f *armedFault) addTo(s *strike) {
	if f.Applied {
		s.after += f.Delay
	} else {
		s.before += f.Delay
	}
	switch f.Drop {
	case BeforeApply:
		s.dropBefore = true
	case AfterApply:
		s.dropAfter = true
	case NoDrop:
	}
	s.half = s.half || f.HalfBody
	switch {
	case f.act == nil:
	case f.Applied:
		s.actAfter = append(s.actAfter, f.act)
	default:
		s.actBefore = append(s.actBefore, f.act)
	}
	if s.note != "" {
		s.note += "; "
	}
	s.note += f.describe()
	if f.FailWork {
		s.work = &workFailure{code: orElse(f.Code, "INTERNAL_ERROR"), message: orElse(f.Message, "An internal error occurred.")}
		return
	}
	status := f.status()
	if status == 0 {
		return
	}
	code := orElse(f.Code, defaultCodes[status])
	err := &APIError{Status: status, Code: orElse(code, "InternalServerError"), Message: f.Message, RetryAfter: f.RetryAfter}
	if err.Message == "" {
		err.Message = orElse(defaultMessages[status], http.StatusText(status))
	}
	if f.Applied {
		s.errAfter = err
	} else {
		s.errBefore = err
	}
}

func (f *armedFault) describe() string {
	switch {
	case f.Note != "":
		return f.Note
	case f.FailWork:
		return "work request fails"
	case f.Drop == BeforeApply:
		return "dropped before applying"
	case f.Drop == AfterApply:
		return "dropped after applying"
	case f.HalfBody:
		return "half of the body"
	case f.status() != 0:
		return http.StatusText(f.status())
	case f.act != nil:
		return "somebody else acts"
	default:
		return "delayed"
	}
}

func orElse(s, fallback string) string {
	if s != "" {
		return s
	}
	return fallback
}

var defaultCodes = map[int]string{
	http.StatusBadRequest:          "InvalidParameter",
	http.StatusUnauthorized:        "NotAuthenticated",
	http.StatusForbidden:           "NotAllowed",
	http.StatusNotFound:            "NotAuthorizedOrNotFound",
	http.StatusMethodNotAllowed:    "MethodNotAllowed",
	http.StatusConflict:            "IncorrectState",
	http.StatusPreconditionFailed:  "NoEtagMatch",
	http.StatusTooManyRequests:     "TooManyRequests",
	http.StatusInternalServerError: "InternalServerError",
	http.StatusNotImplemented:      "MethodNotImplemented",
	http.StatusBadGateway:          "ExternalServerInvalidResponse",
	http.StatusServiceUnavailable:  "ServiceUnavailable",
	http.StatusGatewayTimeout:      "ExternalServerTimeout",
}

var defaultMessages = map[int]string{
	http.StatusUnauthorized:    messageAuth,
	http.StatusNotFound:        messageNotFound,
	http.StatusTooManyRequests: messageThrottle,
}
