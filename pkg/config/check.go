// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/oracle/oci-cloud-controller-manager/internal/nearest"
)

// oneWord refuses blanks.
func oneWord(s string) fault {
	if strings.ContainsFunc(s, unicode.IsSpace) {
		return fault{message: "must not contain blanks", got: s}
	}
	return fault{}
}

// path refuses what cannot be the path of a file, such as the content of one.
func path(s string) fault {
	if strings.ContainsAny(s, "\r\n\x00") || strings.Contains(s, "-----BEGIN") {
		return fault{message: "want the path of a file, not its content"}
	}
	return fault{}
}

// fingerprint knows the form that the console shows: the MD5 sum of the public key as 16 pairs of hexadecimal digits.
func fingerprint(s string) fault {
	if regexp.MustCompile(`^([0-9A-Fa-f]{2}:){15}[0-9A-Fa-f]{2}$`).MatchString(s) {
		return fault{}
	}
	return fault{message: "want 16 pairs of hexadecimal digits with colons between them, as the console shows the fingerprint of an API key", warning: true}
}

// tagValue knows the limits of a freeform tag's value.
func tagValue(s string) fault {
	switch n := len([]rune(s)); {
	case n > maxTagValue:
		return fault{message: fmt.Sprintf("want at most %d characters, which is what fits into a tag; got %d", maxTagValue, n)}
	case strings.TrimSpace(s) != s:
		return fault{message: "must not begin or end with blanks", got: s}
	}
	return fault{}
}

func securityListMode(s string) fault {
	modes := []string{string(ModeAll), string(ModeFrontend), string(ModeNone)}
	if slices.Contains(modes, s) {
		return fault{}
	}
	f := fault{message: "want All, Frontend or None", got: s}
	if meant := nearest.Word(s, modes); meant != "" {
		f.message += fmt.Sprintf(" (did you mean %s?)", meant)
	}
	return f
}

// endpointFault says what is wrong with the endpoint of a service.
func endpointFault(s string) fault {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return fault{message: "not a URL"}
	case u.Scheme != "https" && u.Scheme != "http":
		return fault{message: "want a URL that begins with https:// (or http:// for a local test)", got: u.Redacted()}
	case u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return fault{message: "want scheme and host only, such as https://iaas.example.com", got: u.Redacted()}
	}
	return fault{}
}

// userCredentials are the keys that only a user principal needs. auth.tenancy is not among them: it tells the tenancy
// for the workload identity of single Services too.
func userCredentials() []string {
	return []string{"auth.user", "auth.key", "auth.keyFile", "auth.fingerprint", "auth.passphrase", "auth.key_passphrase"}
}

// checkTogether reports what is wrong with keys taken together.
func (d *decoder) checkTogether() {
	d.checkPrincipal()
	d.checkPairs()
	d.checkMetrics()
	if d.doc.Auth.Key != "" && d.doc.Principal() == UserPrincipal {
		d.checkKey()
	}
}

func (d *decoder) checkPrincipal() {
	doc := d.doc
	switch {
	case doc.UseInstancePrincipals && doc.UseWorkloadIdentity:
		d.problem(d.places["useWorkloadIdentity"], Problem{Severity: Error, Key: "useWorkloadIdentity",
			Message: "excludes useInstancePrincipals: set one of the two"})
		d.checkIgnored("useInstancePrincipals", userCredentials())
	case doc.UseInstancePrincipals:
		d.checkIgnored("useInstancePrincipals", append(userCredentials(), "auth.region"))
	case doc.UseWorkloadIdentity:
		d.checkIgnored("useWorkloadIdentity", userCredentials())
		if doc.Auth.Region == "" {
			d.require(Problem{Strict: true, Message: "required with useWorkloadIdentity"}, "auth.region")
		}
	default:
		d.requireCredentials()
	}
}

// checkIgnored warns about keys that another principal makes useless. A region alone does no harm: strict accepts it.
func (d *decoder) checkIgnored(because string, keys []string) {
	var ignored []string
	for _, key := range keys {
		if at, ok := d.places[key]; ok {
			ignored = append(ignored, fmt.Sprintf("%s (line %d)", key, at.Line))
		}
	}
	if len(ignored) == 0 {
		return
	}
	_, region := d.places["auth.region"]
	onlyRegion := region && len(ignored) == 1 && slices.Contains(keys, "auth.region")
	d.problem(d.places["auth"], Problem{Key: "auth", Strict: !onlyRegion,
		Message: fmt.Sprintf("ignored because %s is true: %s", because, strings.Join(ignored, ", "))})
}

// requireCredentials reports what a user principal lacks. A file without any credential gets one message, not four.
func (d *decoder) requireCredentials() {
	a := d.doc.Auth
	if a == (Auth{Region: a.Region}) && !d.report.touches("auth") {
		d.require(Problem{Severity: Error, Message: "no credentials: set useInstancePrincipals, or useWorkloadIdentity, or tenancy, user, key and fingerprint of a user"},
			"auth", "useInstancePrincipals", "useWorkloadIdentity")
		return
	}
	for _, required := range []struct {
		lacking bool
		keys    []string
	}{
		{a.Tenancy == "", []string{"auth.tenancy"}},
		{a.User == "", []string{"auth.user"}},
		{a.Key == "" && a.KeyFile == "", []string{"auth.key", "auth.keyFile"}},
		{a.Fingerprint == "", []string{"auth.fingerprint"}},
	} {
		if required.lacking {
			// A mistake in the keys that choose another principal may be why credentials are asked for at all.
			d.require(Problem{Severity: Error, Message: "required for a user principal"},
				slices.Concat(required.keys, []string{"useInstancePrincipals", "useWorkloadIdentity", "auth.useInstancePrincipals"})...)
		}
	}
}

// checkPairs reports pairs of keys of which only one may be set.
func (d *decoder) checkPairs() {
	for _, pair := range [][2]string{{"auth.key", "auth.keyFile"}, {"caBundle", "caFile"}} {
		first, ok1 := d.places[pair[0]]
		second, ok2 := d.places[pair[1]]
		if ok1 && ok2 {
			d.problem(second, Problem{Severity: Error, Key: pair[1],
				Message: fmt.Sprintf("excludes %s (line %d): set one of the two", pair[0], first.Line)})
		}
	}
}

func (d *decoder) checkMetrics() {
	m := d.doc.Metrics
	if !m.Enabled {
		return
	}
	for _, required := range []struct{ key, value string }{
		{"metrics.compartmentID", m.CompartmentID},
		{"metrics.namespace", m.Namespace},
		{"metrics.resourceGroup", m.ResourceGroup},
	} {
		if required.value == "" {
			d.require(Problem{Severity: Error, Message: "required in a metrics block"}, required.key)
		}
	}
}

// checkKey looks at an inline key; ReadFile does the same with that of a file.
func (d *decoder) checkKey() {
	message, passphraseMissing := keyFault(d.doc.Auth.Key, d.doc.Auth.Passphrase)
	switch {
	case message == "":
	case passphraseMissing:
		d.require(Problem{Severity: Error, Message: message}, "auth.passphrase", "auth.key_passphrase")
	default:
		d.problem(d.places["auth.key"], Problem{Severity: Error, Key: "auth.key", Message: message})
	}
}

// require reports that the first of keys is missing. If the file has a misspelling of one of them, or something else is
// wrong with one already, that problem takes the severity of this one: one mistake gets one message.
func (d *decoder) require(p Problem, keys ...string) {
	p.Key = keys[0]
	known := d.report.concerning(keys...)
	if known == nil {
		d.problem(d.nearestPlace(p.Key), p)
		return
	}
	if p.Severity == Error && known.Severity != Error {
		known.Severity = Error
		known.Message += fmt.Sprintf(" (%s: %s)", p.Key, p.Message)
	}
}
