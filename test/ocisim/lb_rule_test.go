// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// What a rule leaves out is filled in; what it says stays.
func TestRuleDefaults(t *testing.T) {
	for _, test := range []struct {
		rule loadbalancer.Rule
		want []string
	}{
		{loadbalancer.RedirectRule{}, []string{`"responseCode":302`, `"host":"{host}"`, `"path":"/{path}"`}},
		{
			loadbalancer.RedirectRule{ResponseCode: common.Int(308), RedirectUri: &loadbalancer.RedirectUri{Host: common.String("example.com")}},
			[]string{`"responseCode":308`, `"host":"example.com"`, `"protocol":"{protocol}"`},
		},
		{loadbalancer.ControlAccessUsingHttpMethodsRule{}, []string{`"statusCode":405`}},
		{loadbalancer.HttpHeaderRule{}, []string{`"areInvalidCharactersAllowed":false`}},
		{loadbalancer.RemoveHttpRequestHeaderRule{Header: common.String("x")}, []string{`"header":"x"`}},
	} {
		text, err := json.Marshal(withRuleDefaults(test.rule))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range test.want {
			if !strings.Contains(string(text), part) {
				t.Errorf("%T: %s lacks %s", test.rule, text, part)
			}
		}
	}
}

// IPv6 cannot be taken away from what uses it.
func TestIPv6InUseStays(t *testing.T) {
	v := &networkloadbalancer.NetworkLoadBalancer{
		Listeners:   map[string]networkloadbalancer.Listener{"l": {IpVersion: networkloadbalancer.IpVersionIpv6}},
		BackendSets: map[string]networkloadbalancer.BackendSet{"s": {IpVersion: networkloadbalancer.IpVersionIpv6}},
	}
	refused := func() bool { return checkNoSixth(v, networkloadbalancer.NlbIpVersionIpv4) != nil }
	if !refused() {
		t.Error("with a listener: taken away")
	}
	v.Listeners = nil
	if !refused() {
		t.Error("with a backend set: taken away")
	}
	v.BackendSets = nil
	if refused() || checkNoSixth(v, networkloadbalancer.NlbIpVersionIpv4AndIpv6) != nil {
		t.Error("refused without a reason")
	}
}
