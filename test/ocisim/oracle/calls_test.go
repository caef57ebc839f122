// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
)

func TestWritesOfASecondReconcile(t *testing.T) {
	l := newLab(t)
	since := oracle.Window{From: l.lastCall().Seq}
	quiet := func(q *oracle.Question) { q.Quiet = []oracle.Window{since} }
	l.call(me, http.MethodGet, balancers+"/"+l.balancer, nil)
	l.rename(terraform, "not ours to judge")
	l.clean(quiet)

	tags := object{"freeformTags": marks(owner)} // changes nothing, and is a write
	l.call(me, http.MethodPut, balancers+"/"+l.balancer, tags)
	first := l.lastCall()
	l.call(me, http.MethodPut, balancers+"/"+l.balancer, tags)
	f := l.finds(quiet, oracle.Restless, "", "2 calls of loadbalancer.UpdateLoadBalancer", first.RequestID)
	madeBy(t, f, "UpdateLoadBalancer", "UpdateLoadBalancer")
	l.clean(func(q *oracle.Question) { q.Quiet = []oracle.Window{{From: since.From, To: first.Seq - 1}} })
	l.finds(func(q *oracle.Question) { q.Quiet = []oracle.Window{{From: since.From, To: first.Seq}} }, oracle.Restless, "", "1 call of")
}

func TestForbiddenWrites(t *testing.T) {
	l := newLab(t)
	l.clean(func(q *oracle.Question) { q.Us.Writes = []string{"loadbalancer.CreateLoadBalancer"} })
	l.try(me, http.MethodDelete, "/20160918/instances/ocid1.instance.oc1..unknown", nil)
	l.try(terraform, http.MethodDelete, "/20160918/instances/ocid1.instance.oc1..unknown", nil)
	l.clean(nil)
	f := l.finds(func(q *oracle.Question) { q.Us.Writes = []string{ocisim.ServiceLoadBalancer} },
		oracle.Forbidden, "", "1 call of compute.TerminateInstance")
	madeBy(t, f, "TerminateInstance")
	l.clean(func(q *oracle.Question) { q.Us.Writes = []string{ocisim.ServiceLoadBalancer, ocisim.ServiceCompute} })
}

func TestBudgets(t *testing.T) {
	l := newLab(t)
	for range 3 {
		l.call(me, http.MethodGet, balancers+"/"+l.balancer, nil)
		l.call(terraform, http.MethodGet, balancers+"/"+l.balancer, nil)
	}
	third := l.region.Calls()[5]
	restore := l.region.Deny(ocisim.Policy{Operation: "GetLoadBalancer"})
	l.try(me, http.MethodGet, balancers+"/"+l.balancer, nil)
	restore()
	budget := func(operation string, most int, within oracle.Window) func(*oracle.Question) {
		return func(q *oracle.Question) {
			q.Budgets = []oracle.Budget{{Operation: operation, Most: most, Within: within}}
		}
	}
	l.clean(budget("GetLoadBalancer", 4, oracle.Window{}))
	f := l.finds(budget("GetLoadBalancer", 2, oracle.Window{}), oracle.Budgeted, "",
		"4 calls, 2 allowed (3 x 200, 1 x 404 NotAuthorizedOrNotFound)", third.RequestID)
	if f.Calls[0].Seq != third.Seq {
		t.Errorf("the first call too many was %d, want %d", f.Calls[0].Seq, third.Seq)
	}
	l.clean(budget("GetLoadBalancer", 1, oracle.Window{From: third.Seq}))
	l.finds(budget("GetLoadBalancer", 0, oracle.Window{From: third.Seq}), oracle.Budgeted, "")
	l.finds(budget("loadbalancer", 4, oracle.Window{}), oracle.Budgeted, "") // with the create
	l.finds(budget("*", 4, oracle.Window{}), oracle.Budgeted, "")
	l.clean(budget("compute.GetLoadBalancer", 0, oracle.Window{}))
}

// TestMissingEvidence: what cannot be judged is a finding.
func TestMissingEvidence(t *testing.T) {
	l := newLab(t)
	l.call(me, http.MethodGet, balancers+"/"+l.balancer, nil)
	seq := l.lastCall().Seq
	quiet := func(w oracle.Window) func(*oracle.Question) {
		return func(q *oracle.Question) { q.Quiet = []oracle.Window{w} }
	}
	l.clean(quiet(oracle.Window{From: seq}))
	l.finds(quiet(oracle.Window{From: seq + 1}), oracle.Blind, "", "the log ends at call 2")
	l.finds(quiet(oracle.Window{From: seq, To: seq - 1}), oracle.Blind, "", "ends before it begins")
	l.rename(terraform, "x")
	l.before = l.region.Snapshot()
	l.region.ResetCalls()
	l.finds(quiet(oracle.Window{From: seq}), oracle.Blind, "", "the log is empty")
	l.rename(terraform, "y")
	l.finds(quiet(oracle.Window{From: seq}), oracle.Blind, "", "the log begins at call 4")
	l.clean(quiet(oracle.Window{From: seq + 1}))

	e, err := oracle.Gather(t.Context(), oracle.InProcess(l.region))
	if err != nil {
		t.Fatal(err)
	}
	e.Calls = nil
	report, err := oracle.Judge(e, l.question())
	if err != nil {
		t.Fatal(err)
	}
	if list := report.Of(oracle.Blind); len(list) != 1 {
		t.Errorf("a log that lost a call:\n%s", report)
	}
	e.State = []byte("{")
	if _, err := oracle.Judge(e, l.question()); err == nil {
		t.Error("a broken snapshot was accepted")
	}
}

func TestSecretsInLogs(t *testing.T) {
	const pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAxyz0123456789\nabcdefghijklmnopqrstuvwxyz\n-----END RSA PRIVATE KEY-----\n"
	secrets := []oracle.Secret{{Name: "API key", Value: pem}, {Name: "pass phrase", Value: "a \"b\"/c?d"}}
	l := newLab(t)
	for _, tc := range []struct{ name, log, secret, how string }{
		{"clean", "I1130 no secrets here\n-----BEGIN RSA PRIVATE KEY-----\n", "", ""},
		{"whole", "first\n" + pem, "API key", "ccm.log has the value in line 2"},
		{"one line", "key=abcdefghijklmnopqrstuvwxyz", "API key", "line 3 of the value in line 1"},
		{"as it is", `pass a "b"/c?d end`, "pass phrase", "the value in line 1"},
		{"quoted", `{"pass":"a \"b\"/c?d"}`, "pass phrase", "quoted"},
		{"escaped", "?p=a+%22b%22%2Fc%3Fd", "pass phrase", "escaped"},
		{"base64", "YSAiYiIvYz9k", "pass phrase", "base64"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l.t = t
			ask := func(q *oracle.Question) {
				q.Secrets = secrets
				q.Logs = []oracle.Log{{Name: "other.log", Text: "nothing"}, {Name: "ccm.log", Text: tc.log}}
			}
			if tc.secret == "" {
				l.clean(ask)
				return
			}
			if f := l.finds(ask, oracle.Exposed, "", tc.how); f.Name != tc.secret {
				t.Errorf("secret %s, want %s", f.Name, tc.secret)
			}
			text, err := json.Marshal(l.ask(ask))
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"MIIE", "abcdefghij", "b\"/c"} {
				if bytesContain(text, part) {
					t.Errorf("the report tells the secret: %s", text)
				}
			}
		})
	}
	l.t = t
	l.finds(func(q *oracle.Question) { q.Secrets = []oracle.Secret{{Name: "pin", Value: "1234"}} }, oracle.Blind, "", "cannot be looked for")
}
