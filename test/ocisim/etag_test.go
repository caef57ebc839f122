// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func TestETagChangesExactlyOnChange(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	list := f.region.AddSecurityList(ocisim.SecurityList{Name: "rules"})
	uri := api + "/securityLists/" + list
	first := f.get(uri).want(http.StatusOK).header.Get("etag")
	if !regexp.MustCompile(`^[0-9a-f]{8}$`).MatchString(first) {
		t.Errorf("etag %q is not of the form seen on security lists", first)
	}
	if again := f.get(uri).header.Get("etag"); again != first {
		t.Errorf("a read changed the etag from %s to %s", first, again)
	}
	rules := object{"ingressSecurityRules": []object{{"protocol": "6", "source": "10.0.0.0/8"}}}
	second := f.put(uri, rules).want(http.StatusOK).header.Get("etag")
	if second == first {
		t.Error("a change kept the etag")
	}
	if same := f.put(uri, rules).want(http.StatusOK).header.Get("etag"); same != second {
		t.Errorf("a write of what was there changed the etag from %s to %s", second, same)
	}
	if err := f.region.Foreign().SecurityList(list, func(l *core.SecurityList) { l.DisplayName = common.String("renamed") }); err != nil {
		t.Fatal(err)
	}
	third := f.get(uri).header.Get("etag")
	if third == second {
		t.Error("a foreign change kept the etag")
	}
	if err := f.region.Foreign().SecurityList(list, func(*core.SecurityList) {}); err != nil {
		t.Fatal(err)
	}
	if got := f.get(uri).header.Get("etag"); got != third {
		t.Error("a foreign write without a change changed the etag")
	}
}

func TestIfMatch(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	list := f.region.AddSecurityList(ocisim.SecurityList{Name: "rules"})
	uri := api + "/securityLists/" + list
	stale := f.get(uri).header.Get("etag")
	if err := f.region.Foreign().SecurityList(list, func(l *core.SecurityList) {
		l.EgressSecurityRules = []core.EgressSecurityRule{{Protocol: common.String("all"), Destination: common.String("0.0.0.0/0")}}
	}); err != nil {
		t.Fatal(err)
	}
	current := f.get(uri).header.Get("etag")

	message := f.put(uri, object{"egressSecurityRules": []object{}}, "if-match", stale).wantError(http.StatusPreconditionFailed, "NoEtagMatch")
	want := fmt.Sprintf("Entity security list with ID %s has a computed tag of %s, but is passed a tag of %s", list, current, stale)
	if message != want {
		t.Errorf("message %q\nwant    %q", message, want)
	}
	if l, _ := f.region.SecurityList(list); len(l.EgressSecurityRules) != 1 {
		t.Error("the refused write took effect")
	}
	f.put(uri, object{"displayName": "a"}, "if-match", current).want(http.StatusOK)
	f.put(uri, object{"displayName": "b"}, "if-match", current).wantError(http.StatusPreconditionFailed, "NoEtagMatch")
	f.put(uri, object{"displayName": "c"}, "if-match", "*").want(http.StatusOK)
	f.put(uri, object{"displayName": "d"}).want(http.StatusOK)
}
