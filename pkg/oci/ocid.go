// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of ParseOCID and ParseProviderID.
var (
	// ErrInvalidOCID means text that has not the form of an OCID.
	ErrInvalidOCID = errors.New("not a valid OCID")
	// ErrForeignProvider means a provider ID of another cloud: the Node is none of ours, whatever becomes of it.
	ErrForeignProvider = errors.New("provider ID of another cloud")
	// ErrEmptyProviderID means that the Node has no provider ID yet.
	ErrEmptyProviderID = errors.New("no provider ID")
	// ErrWrongResourceType means an OCID of something else than was asked for.
	ErrWrongResourceType = errors.New("OCID of another resource type")
)

// ProviderName is the scheme of our provider IDs.
const ProviderName = "oci"

// OCID is an Oracle Cloud identifier, ocid1.<type>.<realm>.<region>.<unique>. Region is empty for global resources; it is a
// key ("iad") in old regions and a name in newer ones, with underscores in identifiers of the file storage service.
//
// https://docs.oracle.com/iaas/Content/General/Concepts/identifiers.htm
type OCID struct {
	Type   string
	Realm  string
	Region string
	Unique string
}

// ParseOCID takes an OCID apart. The error is ErrInvalidOCID.
func ParseOCID(s string) (OCID, error) {
	parts := strings.Split(s, ".")
	// The form leaves room for a part of future use between region and unique.
	if len(parts) < 5 || len(parts) > 6 {
		return OCID{}, fmt.Errorf("%q: %w", s, ErrInvalidOCID)
	}
	id := OCID{Type: parts[1], Realm: parts[2], Region: parts[3], Unique: parts[len(parts)-1]}
	if parts[0] != "ocid1" || id.Type == "" || id.Realm == "" || id.Unique == "" {
		return OCID{}, fmt.Errorf("%q: %w", s, ErrInvalidOCID)
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return !isOCIDRune(r) }); i >= 0 {
		return OCID{}, fmt.Errorf("%q: %w: unexpected character at %d", s, ErrInvalidOCID, i)
	}
	return id, nil
}

func isOCIDRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_'
}

// ParseProviderID returns the OCID of the instance that a provider ID names. It takes "oci://<ocid>", "oci:///<ocid>", and
// the bare OCID that kubelets are told to use.
//
// Errors: ErrEmptyProviderID, ErrForeignProvider, ErrInvalidOCID, ErrWrongResourceType.
func ParseProviderID(providerID string) (instanceID string, err error) {
	if providerID == "" {
		return "", ErrEmptyProviderID
	}
	scheme, rest, found := strings.Cut(providerID, "://")
	switch {
	case found && scheme != ProviderName:
		return "", fmt.Errorf("provider ID %q: %w", providerID, ErrForeignProvider)
	case found:
		rest = strings.TrimPrefix(rest, "/")
	case !strings.HasPrefix(providerID, "ocid1."):
		return "", fmt.Errorf("provider ID %q: %w", providerID, ErrForeignProvider)
	default:
		rest = providerID
	}
	id, err := ParseOCID(rest)
	if err != nil {
		return "", fmt.Errorf("provider ID: %w", err)
	}
	if id.Type != "instance" {
		return "", fmt.Errorf("provider ID %q: %w: %s, not instance", providerID, ErrWrongResourceType, id.Type)
	}
	return rest, nil
}

// ProviderID is the provider ID of an instance, "oci://<ocid>".
func ProviderID(instanceID string) string { return ProviderName + "://" + instanceID }
