// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"net/url"
	"strings"
)

// Verb is the policy verb that an operation needs. Each includes those before it.
type Verb string

// The verbs of OCI's policy language, weakest first.
const (
	Inspect Verb = "inspect"
	Read    Verb = "read"
	Use     Verb = "use"
	Manage  Verb = "manage"
)

var verbStrength = map[Verb]int{Inspect: 1, Read: 2, Use: 3, Manage: 4}

// Operation is one line of a service's table.
type Operation struct {
	Service string
	Name    string // the SDK's name of the operation
	Method  string
	Path    string // with parameters in braces: "/20160918/instances/{instanceId}"

	// Query names the query parameters in the notation of the API tables: comma separated, a trailing * marks a
	// required one. The engine applies compartmentId, availabilityDomain, displayName, lifecycleState, sortBy,
	// sortOrder, limit and page to lists.
	Query string

	Verb     Verb
	Resource string // resource type in policies; that of Target when empty

	// Target is the kind of the resource that the first path parameter names. The engine resolves it: a missing,
	// hidden or denied one is a 404 before the handler runs.
	Target *kindInfo

	RetryToken bool // honours opc-retry-token
	IfMatch    bool // honours if-match, against the target's etag

	// Partial says what the operation does not do that the service does, in a few words; empty when it does all that a
	// client could notice. It stands in the reference.
	Partial string

	handle func(*call) (*answer, error)
}

// FullName is the name by which faults, counters and latencies address the operation: "service.Name".
func (o *Operation) FullName() string { return o.Service + "." + o.Name }

// write says on which budget the operation counts. Reads through POST need only a reading verb.
func (o *Operation) write() bool { return verbStrength[o.Verb] > verbStrength[Read] }

// router finds the operation of a request.
type router struct {
	root *routeNode
	all  []*Operation
}

type routeNode struct {
	literal map[string]*routeNode
	param   *routeNode
	methods map[string]*route
}

type route struct {
	operation *Operation
	params    []string        // names, in order
	query     map[string]bool // known parameters; true where required
}

func newRouter() *router { return &router{root: &routeNode{}} }

func (r *router) add(operations []Operation) {
	for i := range operations {
		r.addOne(&operations[i])
	}
}

func (r *router) addOne(o *Operation) {
	entry := &route{operation: o, query: map[string]bool{}}
	for name := range strings.SplitSeq(o.Query, ",") {
		if name = strings.TrimSpace(name); name != "" {
			bare, required := strings.CutSuffix(name, "*")
			entry.query[bare] = required
		}
	}
	node := r.root
	for segment := range strings.SplitSeq(strings.Trim(o.Path, "/"), "/") {
		if strings.HasPrefix(segment, "{") {
			entry.params = append(entry.params, strings.Trim(segment, "{}"))
			if node.param == nil {
				node.param = &routeNode{}
			}
			node = node.param
			continue
		}
		if node.literal == nil {
			node.literal = map[string]*routeNode{}
		}
		next := node.literal[segment]
		if next == nil {
			next = &routeNode{}
			node.literal[segment] = next
		}
		node = next
	}
	if node.methods == nil {
		node.methods = map[string]*route{}
	}
	if node.methods[o.Method] != nil {
		panic("ocisim: two operations at " + o.Method + " " + o.Path)
	}
	node.methods[o.Method] = entry
	r.all = append(r.all, o)
}

// match finds the operation and the values of its path parameters. Literal segments win over parameters.
func (r *router) match(method, escapedPath string) (*route, []string, error) {
	node := r.root
	var values []string
	for segment := range strings.SplitSeq(strings.TrimPrefix(escapedPath, "/"), "/") {
		if next := node.literal[segment]; next != nil {
			node = next
			continue
		}
		if node.param == nil || segment == "" {
			return nil, nil, &APIError{Status: http.StatusNotFound, Code: "NotFound", Message: messageNoSuch}
		}
		v, err := url.PathUnescape(segment)
		if err != nil {
			return nil, nil, &APIError{Status: http.StatusNotFound, Code: "InvalidParameter", Message: messageNoSuch}
		}
		values = append(values, v)
		node = node.param
	}
	if len(node.methods) == 0 {
		return nil, nil, &APIError{Status: http.StatusNotFound, Code: "NotFound", Message: messageNoSuch}
	}
	entry := node.methods[method]
	if entry == nil {
		return nil, nil, &APIError{Status: http.StatusMethodNotAllowed, Code: "MethodNotAllowed", Message: messageMethod}
	}
	return entry, values, nil
}

// Operations lists every operation that the region knows, in the order of the service tables.
func (r *Region) Operations() []Operation {
	list := make([]Operation, 0, len(r.routes.all))
	for _, o := range r.routes.all {
		list = append(list, *o)
	}
	return list
}
