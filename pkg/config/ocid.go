// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

const ocidForm = "ocid1.<type>.<realm>.[region].<unique>"

// ocidFault says what is wrong with the form of an OCID.
//
// An OCID is ocid1.<type>.<realm>.[region].<unique>, sometimes with a part more before the unique one. Tenancies of
// OCI's first months have the form ocidv1:<type>:<realm>:<region>:<number>:<unique>.
func ocidFault(s string) fault {
	if i := strings.IndexFunc(s, unicode.IsSpace); i >= 0 {
		return fault{message: fmt.Sprintf("an OCID has no blanks, but there is one at position %d", i+1), got: s}
	}
	parts := ocidParts(s)
	if parts == nil {
		return fault{message: "not an OCID, which has the form " + ocidForm, got: s}
	}
	for _, i := range []int{1, 2, len(parts) - 1} {
		if parts[i] == "" {
			return fault{message: "not a complete OCID, which has the form " + ocidForm, got: s}
		}
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return !isOCIDRune(r) }); i >= 0 {
		return fault{message: fmt.Sprintf("not an OCID: the character at position %d cannot be in one", i+1), got: s}
	}
	return fault{}
}

// ocidTypeFault says that a well-formed OCID is one of another resource. That is only a warning: the types are not part
// of the API's contract.
func ocidTypeFault(s string, types []string) fault {
	parts := ocidParts(s)
	if parts == nil || slices.Contains(types, parts[1]) {
		return fault{}
	}
	return fault{message: fmt.Sprintf("want the OCID of a %s, got that of a %s", strings.Join(types, " or "), parts[1]), warning: true}
}

// ocidParts splits an OCID into at least five parts, or returns nil.
func ocidParts(s string) []string {
	var parts []string
	switch {
	case strings.HasPrefix(s, "ocid1."):
		parts = strings.Split(s, ".")
	case strings.HasPrefix(s, "ocidv1:"):
		parts = strings.Split(s, ":")
	}
	if len(parts) < 5 {
		return nil
	}
	return parts
}

func isOCIDRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:-", r)
}
