// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Kinds of balancers, and modes of security rules, as annotations call them.
const (
	lb  = "lb"
	nlb = "nlb"

	lists  = "SL-All"
	groups = "NSG"
	off    = "None"
)

// wish is what a Service asks for, and so what there has to be in the end: on the balancer and beside it.
type wish struct {
	kind     string
	replace  bool // another kind is allowed
	ports    []int32
	backends int    // the nodes that are let in, from the first one
	mode     string // of security rules
	clients  []string
	interval int    // of health checks, in milliseconds
	secret   string // with the certificate of the listener of port 443; empty for none
	holds    string // name of the certificate that the Secret holds
}

// scenario is a change whose every call is a kill point: from one wish, or none, to another one, or none.
type scenario struct {
	name     string
	from, to *wish
}

// ordinary is a Service with security rules: those of lists for an LB, those of groups for an NLB.
func ordinary(kind string) wish {
	w := wish{kind: kind, ports: []int32{80, 443}, backends: workers, mode: lists, clients: []string{everybody}, interval: 10000}
	if kind == nlb {
		w.mode = groups
	}
	return w
}

// but is a copy of a wish with a change.
func (w wish) but(change func(*wish)) *wish {
	change(&w)
	return &w
}

func (w wish) inMode(mode string) *wish { return w.but(func(w *wish) { w.mode = mode }) }

func (w wish) withTLS(secret, holds string) *wish {
	return w.but(func(w *wish) { w.secret, w.holds = secret, holds })
}

// scenarios are those of the issue, for both kinds; those that take longest come first, so that they do not end last.
func scenarios() []scenario {
	plainLB, plainNLB := ordinary(lb), ordinary(nlb)
	all := []scenario{
		{lb + "/create", nil, &plainLB},
		{nlb + "/create", nil, &plainNLB},
		{lb + "/replace", &plainLB, plainLB.but(func(w *wish) { w.kind, w.replace = nlb, true })},
	}
	for _, w := range []wish{plainNLB, plainLB} {
		all = append(all,
			scenario{w.kind + "/port-change", &w, w.but(func(w *wish) { w.ports = []int32{80, 8443} })},
			scenario{w.kind + "/health-check", &w, w.but(func(w *wish) { w.interval = 20000 })},
			scenario{w.kind + "/node-change", &w, w.but(func(w *wish) { w.backends-- })},
			scenario{w.kind + "/source-ranges", &w, w.but(func(w *wish) { w.clients = []string{"203.0.113.0/24", "198.51.100.7/32"} })},
			scenario{w.kind + "/delete", &w, nil},
		)
	}
	return append(all,
		// One after the other, the steps from lists to groups to none, for either kind, and back.
		scenario{lb + "/lists-to-groups", &plainLB, plainLB.inMode(groups)},
		scenario{lb + "/groups-to-none", plainLB.inMode(groups), plainLB.inMode(off)},
		scenario{nlb + "/groups-to-lists", &plainNLB, plainNLB.inMode(lists)},
		scenario{nlb + "/lists-to-none", plainNLB.inMode(lists), plainNLB.inMode(off)},
		scenario{lb + "/tls-content", plainLB.withTLS("tls", "one"), plainLB.withTLS("tls", "two")},
		scenario{lb + "/tls-secret", plainLB.withTLS("tls", "one"), plainLB.withTLS("other", "two")},
		scenario{lb + "/tls-delete", plainLB.withTLS("tls", "one"), nil},
	)
}
