// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
)

func bytesContain(text []byte, part string) bool { return bytes.Contains(text, []byte(part)) }

// TestReport looks at the report as a whole: in groups, with everything that a person needs to go on.
func TestReport(t *testing.T) {
	l := newLab(t)
	id := l.newLB(deadOwner, nil)
	made := l.lastCall()
	l.call(me, http.MethodPut, groups+l.group, object{"displayName": "mine"})
	changed := l.lastCall()
	report := l.ask(nil)
	text := report.String()
	want := strings.Join([]string{
		"", "ORPHANS: objects of ours without a living owner, or unfinished (1)", "",
		"  load balancer web [ACTIVE]",
		"    " + id,
		"    its owner " + deadOwner + " does not exist any more",
		"    call 2, " + made.Time.UTC().Format("2006-01-02T15:04:05Z") + ": loadbalancer.CreateLoadBalancer by " + me +
			" -> 204, opc-request-id " + made.RequestID,
		"", "FOREIGN CHANGES: what is not ours differs from the snapshot (1)", "",
		"  network security group mine [AVAILABLE]",
		"    " + l.group,
		"    it was changed; calls of ours that may have done it:",
		`    - displayName: "theirs" -> "mine"`,
		"    call 3, " + changed.Time.UTC().Format("2006-01-02T15:04:05Z") + ": virtualnetwork.UpdateNetworkSecurityGroup by " + me +
			" -> 200, opc-request-id " + changed.RequestID, "",
	}, "\n")
	if first, rest, _ := strings.Cut(text, "\n"); rest != want || !strings.HasPrefix(first, "oracle: 2 findings (") {
		t.Errorf("got:\n%s\nwant:\n%s", text, want)
	}

	err := report.Err()
	var findings *oracle.FindingsError
	if !errors.As(err, &findings) || findings.Report != report || err.Error() != text {
		t.Errorf("error %v", err)
	}

	raw, err := report.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var again oracle.Report
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	if again.String() != text {
		t.Errorf("the JSON says something else:\n%s", again.String())
	}
	raw, err = (&oracle.Report{}).JSON()
	if err != nil || !bytesContain(raw, `"findings": []`) {
		t.Errorf("an empty report is %s: %v", raw, err)
	}
}
