// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
)

const groups = "/20160918/networkSecurityGroups/"

func (l *lab) rename(who, name string) {
	l.t.Helper()
	l.call(who, http.MethodPut, groups+l.group, object{"displayName": name})
}

func TestForeignChangeByUs(t *testing.T) {
	l := newLab(t)
	l.rename(me, "ours now")
	f := l.finds(nil, oracle.Foreign, l.group, `displayName: "theirs" -> "ours now"`, l.lastCall().RequestID)
	madeBy(t, f, "UpdateNetworkSecurityGroup")
	if len(f.Changes) != 1 {
		t.Errorf("changes %v", f.Changes)
	}
	l.clean(func(q *oracle.Question) { q.Before = nil })
	l.clean(func(q *oracle.Question) { q.Before = l.region.Snapshot() })

	l.rename(me, "theirs") // changed back, it is still not left alone
	l.finds(nil, oracle.Foreign, l.group, "(etag)")
}

func TestForeignChangeByOthers(t *testing.T) {
	l := newLab(t)
	l.rename(terraform, "theirs too")
	l.clean(nil)
	l.rename(me, "ours") // then it is ours, too
	madeBy(t, l.finds(nil, oracle.Foreign, l.group), "UpdateNetworkSecurityGroup")
}

// TestRefusedWrites: a write that was refused has changed nothing; of one that a fault answered this is not known.
func TestRefusedWrites(t *testing.T) {
	l := newLab(t)
	l.region.Fault(ocisim.Fault{Operation: "UpdateNetworkSecurityGroup", Drop: ocisim.BeforeApply, Times: 1})
	l.try(me, http.MethodPut, groups+l.group, object{"displayName": "lost"})
	restore := l.region.Deny(ocisim.Policy{Operation: "UpdateNetworkSecurityGroup"})
	l.try(me, http.MethodPut, groups+l.group, object{"displayName": "refused"})
	restore()
	l.rename(terraform, "theirs too")
	l.clean(nil)

	l.region.Fault(ocisim.Fault{Operation: "UpdateNetworkSecurityGroup", Status: 500, Applied: true, Times: 1})
	if status, _ := l.try(me, http.MethodPut, groups+l.group, object{"displayName": "ours"}); status != 500 {
		t.Fatalf("status %d", status)
	}
	l.finds(nil, oracle.Foreign, l.group, `"ours"`, "500 InternalServerError")
}

func TestForeignChangeByNobody(t *testing.T) {
	l := newLab(t)
	patch, err := json.Marshal(object{"displayName": "renamed", "freeformTags": object{"team": "red"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.region.Foreign().Patch(l.instance, patch); err != nil {
		t.Fatal(err)
	}
	f := l.finds(nil, oracle.Foreign, l.instance, "by no call in the log", `freeformTags.team: (none) -> "red"`)
	if len(f.Changes) != 2 || len(f.Calls) != 0 {
		t.Errorf("changes %v, calls %v", f.Changes, f.Calls)
	}
	l.clean(func(q *oracle.Question) { q.OthersAct = true })
	expect := func(e oracle.Expectation) func(*oracle.Question) {
		return func(q *oracle.Question) { q.Expected = []oracle.Expectation{e} }
	}
	l.clean(expect(oracle.Expectation{Resource: l.instance}))
	l.clean(expect(oracle.Expectation{Type: "instance", Fields: []string{"displayName", "freeformTags"}}))
	l.finds(expect(oracle.Expectation{Resource: l.instance, Fields: []string{"displayName"}}), oracle.Foreign, l.instance)
	l.finds(expect(oracle.Expectation{Resource: l.group}), oracle.Foreign, l.instance)
}

func TestForeignThingsComeAndGo(t *testing.T) {
	l := newLab(t)
	id := l.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "new"})
	l.finds(nil, oracle.Foreign, id, "it was not there before")
	l.clean(func(q *oracle.Question) { q.Expected = []oracle.Expectation{{Resource: id}} })
	if err := l.region.Foreign().Delete(id); err != nil {
		t.Fatal(err)
	}
	l.clean(nil)

	l.call(me, http.MethodDelete, groups+l.group, nil)
	// Its rule went with it, which needs no finding of its own.
	madeBy(t, l.finds(nil, oracle.Foreign, l.group, "it is not there any more"), "DeleteNetworkSecurityGroup")
	l.clean(func(q *oracle.Question) { q.Us.Principals = []string{terraform} })
}

// TestReservedAddress: an address that a balancer of ours was given may be assigned to it, and nothing else.
func TestReservedAddress(t *testing.T) {
	l := newLab(t)
	l.clean(nil) // newLab gives it one
	l.call(me, http.MethodPut, "/20160918/publicIps/"+l.address, object{"displayName": "mine"})
	l.finds(nil, oracle.Foreign, l.address, `"reserved" -> "mine"`)

	l = newLab(t)
	holder := l.region.InstanceVNICs(l.instance)[0]
	spare := l.region.AddPublicIP(ocisim.PublicIP{Name: "spare"})
	for _, ip := range l.region.PrivateIPs() {
		if *ip.VnicId == *holder.Id {
			l.call(terraform, http.MethodPut, "/20160918/publicIps/"+spare, object{"privateIpId": *ip.Id})
		}
	}
	l.before = l.region.Snapshot()
	l.call(me, http.MethodPut, "/20160918/publicIps/"+spare, object{"privateIpId": ""})
	report := l.ask(nil)
	found := false
	for _, f := range report.Of(oracle.Foreign) {
		found = found || f.Resource == spare && len(f.Calls) > 0
	}
	if !found {
		t.Errorf("an address was taken from a node:\n%s", report)
	}
}

// TestTerminatedInstance: what belongs to an instance follows it, whoever terminated it and however.
func TestTerminatedInstance(t *testing.T) {
	terminate := func(l *lab, who string) {
		l.call(who, http.MethodDelete, "/20160918/instances/"+l.instance, nil)
	}
	for name, tc := range map[string]struct {
		act  func(*lab)
		wait time.Duration
		mine bool
	}{
		"by others, just now":    {func(l *lab) { terminate(l, terraform) }, 2 * time.Minute, false},
		"by others, long ago":    {func(l *lab) { terminate(l, terraform) }, 2 * time.Hour, false},
		"by us, just now":        {func(l *lab) { terminate(l, me) }, 2 * time.Minute, true},
		"by us, long ago":        {func(l *lab) { terminate(l, me) }, 2 * time.Hour, true},
		"past the API, just now": {func(l *lab) { _ = l.region.Foreign().TerminateInstance(l.instance) }, 2 * time.Minute, true},
		"past the API, long ago": {func(l *lab) { _ = l.region.Foreign().TerminateInstance(l.instance) }, 2 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			tc.act(l)
			l.region.Advance(tc.wait)
			if !tc.mine {
				l.clean(nil)
				return
			}
			found := false
			for _, f := range l.ask(nil).Of(oracle.Foreign) {
				found = found || f.Resource == l.instance
			}
			if !found {
				t.Errorf("the instance is gone, and nobody sees it:\n%s", l.ask(nil))
			}
			l.clean(func(q *oracle.Question) { q.Expected = []oracle.Expectation{{Resource: l.instance}} })
		})
	}
}
