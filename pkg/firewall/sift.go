// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Descriptions of our rules begin with these.
const (
	markList  = "k8s" // followed by a space and the cluster's identity, if that is known
	markGroup = "service-uid-"
)

const (
	// maxDescription is what the API takes as the description of a rule, in characters.
	maxDescription = 255
	// markDigest is how many bytes of a digest stand for the rest of an identity that is too long for a description.
	markDigest = 8
)

// listMark is the description of a cluster's rules of security lists.
func listMark(clusterID string) string {
	mark := []rune(strings.TrimSpace(markList + " " + clusterID))
	if len(mark) <= maxDescription {
		return string(mark)
	}
	sum := sha256.Sum256([]byte(clusterID))
	digest := hex.EncodeToString(sum[:markDigest])
	return string(mark[:maxDescription-len(digest)]) + digest
}

// groupMark is the description of an owner's rules of NSGs.
func groupMark(owner string) string { return markGroup + owner }

// marked says whether a description is that of some cluster's or Service's rules.
func marked(description string) bool {
	return description == markList || strings.HasPrefix(description, markList+" ") || strings.HasPrefix(description, markGroup)
}

// held is a rule that a target has.
type held struct {
	cloud oci.SecurityRule
	rule  Rule
	plain bool // it has the form of our rules, and rule says all of it
}

func heldRules(rules ...[]oci.SecurityRule) []held {
	var out []held
	for _, list := range rules {
		for _, r := range list {
			rule, plain := ruleOf(r)
			out = append(out, held{r, rule, plain})
		}
	}
	return out
}

// view is what is known about the needs on one target: of all owners (security lists), or of one (NSGs).
type view struct {
	mark string // description of the rules that the view is about

	needed func(Rule) bool // somebody needs it
	unsure func(Rule) bool // somebody whose needs are not known may need it
	legacy func(Rule) bool // the existing implementation has written it, if it has no description
	known  func(Rule) bool // a rule with our mark is really ours

	keepAnonymous bool
}

// sifted are the rules of a target as a view sees them.
type sifted struct {
	missing []Rule // of those that are wanted
	stale   []int  // indices of the rules that have to go
	kept    []Rule
	waiting []Rule
	edited  []string
}

// sift is the one place that decides what becomes of a rule. want are rules that are to exist; all of them are needed.
// Without judge only the missing rules are found out, which is far less work: the others are not looked at closely.
func (v view) sift(have []held, want ruleSet, judge bool) sifted {
	var out sifted
	satisfied, ours := ruleSet{}, ruleSet{}
	for i, h := range have {
		mine := h.cloud.Description == v.mark
		switch {
		case !h.plain && mine && judge:
			out.edited = append(out.edited, describe(h.cloud))
		case !h.plain:
		case !judge:
			if mine || !marked(h.cloud.Description) {
				satisfied[h.rule] = struct{}{}
			}
		case mine && ours.has(h.rule):
			out.stale = append(out.stale, i) // a second one, of two processes that added it at the same time
		case mine:
			ours[h.rule], satisfied[h.rule] = struct{}{}, struct{}{}
			switch {
			case v.needed(h.rule) || !v.known(h.rule):
			case v.unsure(h.rule):
				out.waiting = append(out.waiting, h.rule)
			default:
				out.stale = append(out.stale, i)
			}
		case !marked(h.cloud.Description):
			satisfied[h.rule] = struct{}{}
			if h.cloud.Description != "" || !v.legacy(h.rule) || v.needed(h.rule) {
				continue
			}
			switch {
			case v.keepAnonymous:
				out.kept = append(out.kept, h.rule)
			case v.unsure(h.rule):
				out.waiting = append(out.waiting, h.rule)
			default:
				out.stale = append(out.stale, i)
			}
		}
	}
	for _, r := range want.sorted() {
		if !satisfied.has(r) {
			out.missing = append(out.missing, r)
		}
	}
	return out
}

// rulesAt are the rules with the given indices.
func rulesAt(have []held, indices []int) []Rule {
	var out []Rule
	for _, i := range indices {
		out = append(out, have[i].rule)
	}
	return out
}
