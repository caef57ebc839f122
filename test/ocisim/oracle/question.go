// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"regexp"
	"slices"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// The marks of the project: freeform tags on what it makes.
const (
	TagCluster = "oci-k8s-cluster"
	TagOwner   = "oci-k8s-owner"
	// TagService is the mark of security groups that are made for a Service, as the implementation before this one has
	// it: the Service's UID. It goes with CreatedBy=CCM.
	TagService = "ServiceUid"
)

// Us says who "we" are: whose calls are judged, and which objects are ours.
//
// Of security lists, which are shared, single rules are ours: those of our form whose description is ListRuleMark and
// Cluster (see there). Rules of security groups are objects; the description names their owner.
//
// An object is ours when it carries our mark, when its display name matches one of Names, when a call of ours created
// it, when it is of one of Types, or when it is a part of such an object, like the VNIC of a balancer.
type Us struct {
	// Principals are the callers that are ours (ocisim.Principal.ID). None means every caller.
	Principals []string
	// Cluster is the value of the tag oci-k8s-cluster on what is ours. Empty takes every mark for ours; a mark of an owner
	// without one of a cluster always is. Rules of security lists have it in their description; with an empty Cluster, those of
	// every cluster are ours, and those of one that does not know its identity.
	Cluster string
	// Owners are what still lives and may own objects: values of the tag oci-k8s-owner, such as UIDs of Services and
	// names of volumes. An owner also owns what has it in its display name, as before there were marks, or in the
	// description of a security rule. An OCID names an object that may exist without an owner.
	Owners []string
	// Former are owners that have lived in the time that is judged, or before, and do not live any more. What only its
	// description or name gives away as theirs, such as rules that were there before, is known as ours by this.
	Former []string
	// Names are the display names that objects of ours had before there were marks. The first group of an expression,
	// if it has one, is the owner.
	Names []*regexp.Regexp
	// Types are kinds of objects, as snapshots call them ("load balancer"), of which everything in the region is ours.
	Types []string
	// Writes are what we may write to: services ("loadbalancer") and operations ("compute.AttachVolume"). None allows
	// everything.
	Writes []string
}

// Window is a part of the call log: the calls behind From, up to and with To. A zero To is the end of the log. Both
// are values of ocisim.Call.Seq.
type Window struct {
	From, To uint64
}

func (w Window) has(c *ocisim.Call) bool {
	return c.Seq > w.From && (w.To == 0 || c.Seq <= w.To)
}

// Budget bounds the calls of ours to an operation.
type Budget struct {
	Operation string // "GetInstance", "compute.GetInstance", "compute" for all of a service, "*" for all
	Most      int    // calls that are allowed, refused ones included
	Within    Window
}

func (b *Budget) has(c *ocisim.Call) bool {
	return b.Within.has(c) && names(b.Operation, c)
}

// names says whether a name that a person wrote means the call's operation.
func names(name string, c *ocisim.Call) bool {
	return name == "*" || name == c.Operation || name == c.Name() || name == c.Service
}

// Log is a text in which no secret may stand.
type Log struct {
	Name string // where it is from
	Text string
}

// Secret is a value that must not be seen. Its name stands in reports, its value never.
type Secret struct {
	Name  string
	Value string
}

// Expectation is a change of something foreign that was made on purpose, past the API, and is nobody's fault.
type Expectation struct {
	Resource string   // OCID, with the parts of the object; empty means all of a type
	Type     string   // "instance", "network security group": the kinds of a snapshot; empty means any
	Fields   []string // with whatever is below them; none means every field, and that it came or went
}

// Question is what the oracle is asked.
type Question struct {
	Us Us

	// Before is a snapshot from the time before: what was there then and is not ours must be as it was. Nil skips that.
	Before []byte
	// Expected are foreign changes that are all right.
	Expected []Expectation
	// OthersAct says that others change the region past the API: a change without a call in the log is theirs. Otherwise
	// it is a finding.
	OthersAct bool

	// Settled says that everything should have come to rest: what of ours is still being made, changed or deleted is a
	// finding.
	Settled bool

	Quiet   []Window // in which we may not write: a second reconcile
	Budgets []Budget

	Logs    []Log
	Secrets []Secret
}

// made says whether a call is one of ours.
func (u *Us) made(c *ocisim.Call) bool {
	return len(u.Principals) == 0 || slices.Contains(u.Principals, c.Principal)
}

// mayWrite says whether we may make a writing call.
func (u *Us) mayWrite(c *ocisim.Call) bool {
	return len(u.Writes) == 0 || slices.ContainsFunc(u.Writes, func(name string) bool { return names(name, c) })
}
