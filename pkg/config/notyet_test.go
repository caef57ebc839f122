// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

func TestWithoutEffect(t *testing.T) {
	const user = "auth: {region: iad, tenancy: ocid1.tenancy.oc1..a, user: ocid1.user.oc1..a, keyFile: k, fingerprint: '00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff'}\n"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing set": {text: user},
		"modes":       {text: user + "loadBalancer: {securityListManagementMode: All}\nnetworkLoadBalancer: {securityListManagementMode: Frontend}\n"},
		"one warning for a block": {
			text: user + "metrics:\n  compartmentID: ocid1.compartment.oc1..a\n  namespace: n\n  resourceGroup: g\n",
			want: []string{"f:3: warning: metrics.compartmentID: " + withoutEffect},
		},
		"tags that work": {text: user + "tags: {loadBalancer: {freeform: {a: b}}, common: {freeform: {a: b}}}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			c, report := Parse("f", []byte(test.text))
			if err := report.Err(); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range WithoutEffect(c).Problems {
				got = append(got, p.Error())
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}
