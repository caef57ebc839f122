// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// ocidFault says what is wrong with the form of an OCID, or returns "".
//
// An OCID is ocid1.<type>.<realm>.[region].<unique>, sometimes with a part more before the unique one. Tenancies of
// OCI's first months have the form ocidv1:<type>:<realm>:<region>:<number>:<unique>.
func ocidFault(s string) string {
	if i := strings.IndexFunc(s, unicode.IsSpace); i >= 0 {
		return fmt.Sprintf("an OCID has no blanks, but there is one at position %d of %q", i+1, s)
	}
	parts := ocidParts(s)
	if parts == nil {
		return fmt.Sprintf("%q is no OCID: want ocid1.<type>.<realm>.[region].<unique>", s)
	}
	for _, i := range []int{1, 2, len(parts) - 1} {
		if parts[i] == "" {
			return fmt.Sprintf("%q is no complete OCID: want ocid1.<type>.<realm>.[region].<unique>", s)
		}
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return !isOCIDRune(r) }); i >= 0 {
		return fmt.Sprintf("%q is no OCID: it has a character that cannot be in one at position %d", s, i+1)
	}
	return ""
}

// ocidTypeFault says that a well-formed OCID is one of another resource, or returns "".
func ocidTypeFault(s string, types []string) string {
	parts := ocidParts(s)
	if parts == nil || slices.Contains(types, parts[1]) {
		return ""
	}
	return fmt.Sprintf("want the OCID of a %s, got that of a %s", strings.Join(types, " or "), parts[1])
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
