// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPrincipals is the table of case C154.
func TestPrincipals(t *testing.T) {
	for _, test := range []struct {
		name, file string
		principal  Principal
		want       []string
		strict     bool // the file is good enough for strict
	}{
		{"user", user, UserPrincipal, nil, true},
		{"user with encrypted key", strings.Replace(user, privateKey, encryptedKey, 1) + "  passphrase: p\n", UserPrincipal, nil, true},
		{"encrypted key without passphrase", strings.Replace(user, privateKey, encryptedKey, 1), UserPrincipal,
			[]string{"f:1:1: error: auth.passphrase: the private key is encrypted, but there is no passphrase"}, false},
		{"encrypted key in the old form", strings.Replace(user, privateKey, `-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nbWFya2Vk\n-----END RSA PRIVATE KEY-----\n`, 1), UserPrincipal,
			[]string{"f:1:1: error: auth.passphrase: the private key is encrypted, but there is no passphrase"}, false},
		{"deprecated passphrase", strings.Replace(user, privateKey, encryptedKey, 1) + "  key_passphrase: p\n", UserPrincipal,
			[]string{"f:7:3: warning: auth.key_passphrase: deprecated: use auth.passphrase"}, true},
		{"two passphrases", user + "  passphrase: p\n  key_passphrase: q\n", UserPrincipal,
			[]string{"f:8:3: warning: auth.key_passphrase: deprecated: use auth.passphrase", "f:8:3: warning: auth.key_passphrase: contradicts auth.passphrase (line 7), which wins"}, false},
		{"the same passphrase twice", user + "  passphrase: p\n  key_passphrase: p\n", UserPrincipal,
			[]string{"f:8:3: warning: auth.key_passphrase: deprecated: use auth.passphrase"}, true},
		{"no PEM", strings.Replace(user, privateKey, "marked", 1), UserPrincipal,
			[]string{"f:5:3: error: auth.key: want a private key in PEM form, beginning with a line -----BEGIN PRIVATE KEY----- or -----BEGIN RSA PRIVATE KEY-----"}, false},
		{"certificate as key", strings.ReplaceAll(user, "RSA PRIVATE KEY", "CERTIFICATE"), UserPrincipal,
			[]string{`f:5:3: error: auth.key: want a private key, got a PEM block of type "CERTIFICATE"`}, false},
		{"key in file", strings.Replace(user, `key: "`+privateKey+`"`, "keyFile: k.pem", 1), UserPrincipal, nil, true},
		{"key twice", user + "  keyFile: k.pem\n", UserPrincipal, []string{"f:7:3: error: auth.keyFile: excludes auth.key (line 5): set one of the two"}, false},
		{"no fingerprint", strings.Replace(user, "  fingerprint", "  #", 1), UserPrincipal, []string{"f:1:1: error: auth.fingerprint: required for a user principal"}, false},
		{"bad fingerprint", strings.Replace(user, ":74", "", 1), UserPrincipal,
			[]string{"f:6:16: warning: auth.fingerprint: want 16 pairs of hexadecimal digits with colons between them, as the console shows the fingerprint of an API key"}, false},
		{"misspelt key", strings.Replace(user, "tenancy:", "tenency:", 1), UserPrincipal,
			[]string{"f:3:3: error: auth.tenency: unknown key; did you mean tenancy? (auth.tenancy: required for a user principal)"}, false},
		{"misspelt key file", strings.Replace(user, `key: "`+privateKey+`"`, "key_file: k.pem", 1), UserPrincipal,
			[]string{"f:5:3: error: auth.key_file: unknown key: write keyFile, exactly so (auth.key: required for a user principal)"}, false},
		{"misspelt block", strings.Replace(user, "auth:", "Auth:", 1), UserPrincipal,
			[]string{"f:1:1: error: Auth: unknown key: write auth, exactly so (auth.tenancy: required for a user principal)"}, false},
		{"misspelt switch", "useInstancePrincipal: true\n", UserPrincipal,
			[]string{"f:1:1: error: useInstancePrincipal: unknown key; did you mean useInstancePrincipals? (auth: no credentials: set useInstancePrincipals, or useWorkloadIdentity, or tenancy, user, key and fingerprint of a user)"}, false},
		{"switch of a wrong type", "useInstancePrincipals: perhaps\n", UserPrincipal, []string{`f:1:24: error: useInstancePrincipals: want a bool (true or false), got "perhaps"`}, false},
		{"no region", strings.Replace(user, "  region", "  #", 1), UserPrincipal, nil, true},

		{"instance", "useInstancePrincipals: true\n", InstancePrincipal, nil, true},
		{"instance, YAML 1.1", "useInstancePrincipals: Yes\n", InstancePrincipal, nil, true},
		{"instance, deprecated", "auth: {useInstancePrincipals: true}\n", InstancePrincipal,
			[]string{"f:1:8: warning: auth.useInstancePrincipals: deprecated: use useInstancePrincipals"}, true},
		{"instance at both levels", "useInstancePrincipals: true\nauth: {useInstancePrincipals: true}\n", InstancePrincipal,
			[]string{"f:2:8: warning: auth.useInstancePrincipals: deprecated: use useInstancePrincipals"}, true},
		{"instance, contradicting", "useInstancePrincipals: false\nauth: {useInstancePrincipals: true}\n", InstancePrincipal,
			[]string{"f:2:8: warning: auth.useInstancePrincipals: deprecated: use useInstancePrincipals", "f:2:8: warning: auth.useInstancePrincipals: true here wins over false in useInstancePrincipals (line 1)"}, false},
		{"instance with leftovers", user + "useInstancePrincipals: true\n", InstancePrincipal,
			[]string{"f:1:1: warning: auth: ignored because useInstancePrincipals is true: auth.user (line 4), auth.key (line 5), auth.fingerprint (line 6), auth.region (line 2)"}, false},
		{"instance with region", "useInstancePrincipals: true\nauth: {region: a}\n", InstancePrincipal,
			[]string{"f:2:1: warning: auth: ignored because useInstancePrincipals is true: auth.region (line 2)"}, true},
		{"instance with one leftover", "useInstancePrincipals: true\nauth: {keyFile: a}\n", InstancePrincipal,
			[]string{"f:2:1: warning: auth: ignored because useInstancePrincipals is true: auth.keyFile (line 2)"}, false},
		{"instance with empty leftovers", "auth: {user: \"\", key: \"\", passphrase: \"\"}\nuseInstancePrincipals: true\n", InstancePrincipal, nil, true},
		{"instance with bad leftovers", "auth: {user: x, key: y}\nuseInstancePrincipals: true\n", InstancePrincipal,
			[]string{
				"f:1:1: warning: auth: ignored because useInstancePrincipals is true: auth.user (line 1), auth.key (line 1)",
				`f:1:14: warning: auth.user: not an OCID, which has the form ocid1.<type>.<realm>.[region].<unique> (ignored because useInstancePrincipals is true)`,
			}, false},
		{"instance with tenancy", "auth: {tenancy: ocid1.tenancy.oc1..aaaa}\nuseInstancePrincipals: true\n", InstancePrincipal, nil, true},

		{"workload", "useWorkloadIdentity: true\nauth: {region: us-phoenix-1}\n", WorkloadIdentity, nil, true},
		{"workload without region", "useWorkloadIdentity: true\n", WorkloadIdentity, []string{"f:1:1: warning: auth.region: required with useWorkloadIdentity"}, false},
		{"workload with misspelt region", "useWorkloadIdentity: true\nauth: {Region: a}\n", WorkloadIdentity, []string{"f:2:8: warning: auth.Region: unknown key: write region, exactly so"}, false},
		{"workload with leftovers", user + "useWorkloadIdentity: true\n", WorkloadIdentity,
			[]string{"f:1:1: warning: auth: ignored because useWorkloadIdentity is true: auth.user (line 4), auth.key (line 5), auth.fingerprint (line 6)"}, false},
		{"two at once", "useWorkloadIdentity: true\nuseInstancePrincipals: true\n", InstancePrincipal,
			[]string{"f:1:1: error: useWorkloadIdentity: excludes useInstancePrincipals: set one of the two"}, false},
		{"two at once, deprecated", "useWorkloadIdentity: true\nauth: {region: a, useInstancePrincipals: true}\n", InstancePrincipal,
			[]string{
				"f:1:1: error: useWorkloadIdentity: excludes useInstancePrincipals: set one of the two",
				"f:2:19: warning: auth.useInstancePrincipals: deprecated: use useInstancePrincipals",
			}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, report := Parse("f", []byte(test.file))
			if diff := cmp.Diff(append([]string{}, test.want...), messages(report)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if got := c.Principal(); got != test.principal {
				t.Errorf("calls would be made as %s, want %s", got, test.principal)
			}
			if got := report.Strict().Err() == nil; got != test.strict {
				t.Errorf("accepted under strict: %v, want %v", got, test.strict)
			}
		})
	}
}

func TestDeprecatedSpellingsWork(t *testing.T) {
	c, report := Parse("f", []byte(user+lines(
		"  key_passphrase: p",
		"  compartment: ocid1.compartment.oc1..aaaa",
		"  regionKey: phx",
		"loadBalancer:",
		"  disableSecurityListManagement: true")))
	if report.Err() != nil || report.Strict().Err() != nil || len(report.Warnings()) != 4 {
		t.Fatal(messages(report))
	}
	if c.Auth.Passphrase != "p" || c.Compartment != "ocid1.compartment.oc1..aaaa" || c.RegionKey != "phx" || c.LoadBalancer.SecurityListManagementMode != ModeNone {
		t.Errorf("passphrase %q, compartment %q, regionKey %q, mode %q", string(c.Auth.Passphrase), c.Compartment, c.RegionKey, c.LoadBalancer.SecurityListManagementMode)
	}
	if got, want := c.Origin("compartment").String(), "f:8, as auth.compartment"; got != want {
		t.Errorf("origin of compartment is %q, want %q", got, want)
	}
}

func TestTheNewSpellingWins(t *testing.T) {
	c, report := Parse("f", []byte(user+lines(
		"  passphrase: new",
		"  key_passphrase: old",
		"  compartment: ocid1.compartment.oc1..old",
		"compartment: ocid1.compartment.oc1..new",
		"loadBalancer:",
		"  securityListManagementMode: Frontend",
		"  disableSecurityListManagement: true")))
	if report.Err() != nil || len(report.Strict().Errors()) != 3 {
		t.Fatal(messages(report))
	}
	if c.Auth.Passphrase != "new" || c.Compartment != "ocid1.compartment.oc1..new" || c.LoadBalancer.SecurityListManagementMode != ModeFrontend {
		t.Errorf("passphrase %q, compartment %q, mode %q", string(c.Auth.Passphrase), c.Compartment, c.LoadBalancer.SecurityListManagementMode)
	}
}
