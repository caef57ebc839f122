// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse reads the content of a file. name stands for the file in messages. The Config is never nil, but it is of use
// only if the report has no errors. Parse does no I/O: ReadFile reads the files that the configuration names.
//
// Unknown keys and other traces of a mistake that does no harm are warnings here, since an upgrade must not stop a
// cluster because of them; Report.Strict makes errors of them.
func Parse(name string, data []byte) (*Config, Report) {
	report := &Report{}
	d := &decoder{tree: newTree(), file: name, doc: &document{}, report: report, places: map[string]*yaml.Node{}}
	d.doc.file = name

	root := d.read(data)
	if root != nil {
		d.places[""] = root
		d.block("", root)
		if root.Kind == yaml.MappingNode {
			d.fold()
			d.checkTogether()
		}
	}
	d.defaults()
	d.demoteIgnored()
	report.sort()
	return &d.doc.Config, *report
}

// read returns the top-level node of the first document, or nil after reporting why there is none.
func (d *decoder) read(data []byte) *yaml.Node {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	stream := yaml.NewDecoder(bytes.NewReader(data))
	var first yaml.Node
	if err := stream.Decode(&first); errors.Is(err, io.EOF) {
		d.problem(nil, Problem{Severity: Error, Line: 1, Message: emptyFile})
		return nil
	} else if err != nil {
		d.syntax(data, err, Problem{Severity: Error})
		return nil
	}

	// Only the first document was ever read, so what follows it cannot stop a start.
	var second yaml.Node
	switch err := stream.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		d.syntax(data, err, Problem{Strict: true})
	case !isNull(resolve(second.Content[0])):
		d.problem(second.Content[0], Problem{Strict: true, Message: "a second YAML document begins here; it is ignored"})
	}

	root := resolve(first.Content[0])
	if isNull(root) {
		d.problem(root, Problem{Severity: Error, Message: emptyFile})
		return nil
	}
	return root
}

const emptyFile = "the file is empty: it has no keys"

// syntax reports text that is not YAML. The YAML library's own line is often that of the block around the mistake;
// the line after the longest beginning that is good YAML is nearer to it.
func (d *decoder) syntax(data []byte, err error, p Problem) {
	lines := bytes.SplitAfter(data, []byte("\n"))
	p.Line = 1
	for n := min(len(lines)-1, maxSyntaxLines); n > 0; n-- {
		if isYAML(bytes.Join(lines[:n], nil)) {
			p.Line = n + 1
			break
		}
	}
	p.Message = "not YAML: " + libraryMessage(err)
	if at := tabIndent(lines, p.Line); at > 0 {
		p.Line, p.Column, p.Message = at, 1, "not YAML: the line is indented with a tab; use blanks"
	}
	d.problem(nil, p)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// maxSyntaxLines bounds the search for the line of a syntax error, which is quadratic. Config files have some 50 lines.
const maxSyntaxLines = 2000

func isYAML(data []byte) bool {
	stream := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		if err := stream.Decode(&n); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// tabIndent returns the first line from the bad one on, but at most one further, that is indented with a tab, or 0.
func tabIndent(lines [][]byte, bad int) int {
	for n := bad; n <= min(bad+1, len(lines)); n++ {
		line := lines[n-1]
		if indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]; bytes.ContainsRune(indent, '\t') {
			return n
		}
	}
	return 0
}

// libraryMessage is the text of a syntax error without its line, and without the word that an unquoted * begins: it
// could be a passphrase.
func libraryMessage(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = regexp.MustCompile(`^line \d+: `).ReplaceAllString(text, "")
	return regexp.MustCompile(`unknown anchor '.*' referenced`).ReplaceAllString(text, "a value that begins with * must be quoted")
}

// fold moves deprecated spellings to their successors.
func (d *decoder) fold() {
	doc := d.doc
	foldInto(d, &doc.Compartment, doc.old.authCompartment, "compartment", "auth.compartment")
	foldInto(d, &doc.RegionKey, doc.old.authRegionKey, "regionKey", "auth.regionKey")
	foldInto(d, &doc.Auth.Passphrase, doc.old.authKeyPassphrase, "auth.passphrase", "auth.key_passphrase")
	if doc.old.disableSecurityListManagement {
		foldInto(d, &doc.LoadBalancer.SecurityListManagementMode, ModeNone,
			"loadBalancer.securityListManagementMode", "loadBalancer.disableSecurityListManagement")
	}
	if doc.old.authUseInstancePrincipals {
		if at, ok := d.places["useInstancePrincipals"]; ok && !doc.UseInstancePrincipals {
			d.problem(d.places["auth.useInstancePrincipals"], Problem{Key: "auth.useInstancePrincipals", Strict: true,
				Message: fmt.Sprintf("true here wins over false in useInstancePrincipals (line %d)", at.Line)})
		}
		doc.UseInstancePrincipals = true
		d.inherit("useInstancePrincipals", "auth.useInstancePrincipals")
	}
}

// foldInto gives the successor of a deprecated key the value of the latter, unless it has one of its own.
func foldInto[T comparable](d *decoder, successor *T, old T, key, oldKey string) {
	switch {
	case old == *new(T) || old == *successor:
	case *successor == *new(T):
		*successor = old
		d.inherit(key, oldKey)
	default:
		d.problem(d.places[oldKey], Problem{Key: oldKey, Strict: true,
			Message: fmt.Sprintf("contradicts %s (line %d), which wins", key, d.places[key].Line)})
	}
}

// inherit gives a key the origin of the deprecated key that it takes its value from.
func (d *decoder) inherit(key, oldKey string) {
	o := d.doc.Origin(oldKey)
	o.note = oldKey
	d.doc.setOrigin(key, o)
}

// defaults fills in the values that do not depend on the place where the process runs.
func (d *decoder) defaults() {
	r := &d.doc.RateLimiter
	defaultTo(d, &r.QPSRead, DefaultQPS, "rateLimiter.rateLimitQPSRead")
	defaultTo(d, &r.QPSWrite, DefaultQPS, "rateLimiter.rateLimitQPSWrite")
	defaultTo(d, &r.BucketRead, DefaultBucket, "rateLimiter.rateLimitBucketRead")
	defaultTo(d, &r.BucketWrite, DefaultBucket, "rateLimiter.rateLimitBucketWrite")
}

func defaultTo[T comparable](d *decoder, at *T, value T, key string) {
	if *at == *new(T) {
		*at = value
		d.doc.setOrigin(key, Origin{source: fromDefault})
	}
}

// demoteIgnored turns errors in values that are ignored anyway into warnings.
func (d *decoder) demoteIgnored() {
	for i := range d.report.Problems {
		p := &d.report.Problems[i]
		if why := d.ignored(p.Key); why != "" && p.Severity == Error {
			p.Severity, p.Strict = Warning, true
			p.Message += " (ignored because " + why + " is true)"
		}
	}
}

// ignored says which key makes another one useless, or returns "".
func (d *decoder) ignored(key string) string {
	doc := d.doc
	credentials := slices.Contains(userCredentials(), key)
	switch {
	case doc.LoadBalancer.Disabled && (within(key, "loadBalancer") || within(key, "networkLoadBalancer")):
		return "loadBalancer.disabled"
	case doc.UseInstancePrincipals && (credentials || key == "auth.region"):
		return "useInstancePrincipals"
	case doc.UseWorkloadIdentity && credentials:
		return "useWorkloadIdentity"
	}
	return ""
}
