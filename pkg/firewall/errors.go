// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// LimitError means that a target has no room for the rules that an owner needs. Nothing was written for that owner.
type LimitError struct {
	Target    Target
	Direction Direction // empty for NSGs, whose rules of both directions count together
	Limit     int
	Have      int // rules that the target has
	Need      int // rules that it would have
}

func (e *LimitError) Error() string {
	which := "rules"
	if e.Direction != "" {
		which = map[Direction]string{Ingress: "ingress", Egress: "egress"}[e.Direction] + " rules"
	}
	return fmt.Sprintf("%s has %d %s, and would need %d, but can have %d", e.Target, e.Have, which, e.Need, e.Limit)
}

// AccessError means that the cloud says of a target, or of the VCN, that it does not exist or that this principal may not
// do that. OCI answers the same in both cases.
type AccessError struct {
	Target Target // ID is empty where there is none yet
	// Statement is the IAM policy statement that is needed.
	Statement string

	err error
}

func (e *AccessError) Error() string {
	return fmt.Sprintf("%s: %v; if it exists, the policy lacks: %s", e.Target, e.err, e.Statement)
}

// Unwrap returns the answer of the cloud.
func (e *AccessError) Unwrap() error { return e.err }

// ConflictError means that others changed a target between each of our reads and updates.
type ConflictError struct {
	Target   Target
	Attempts int

	err error
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s was changed by others during each of %d attempts: %v", e.Target, e.Attempts, e.err)
}

// Unwrap returns the cloud's last answer.
func (e *ConflictError) Unwrap() error { return e.err }

// Policy statements (ccm.md §9; for NSGs the permissions that their operations require).
const (
	statementLists       = "Allow <subject> to manage security-lists in compartment <compartment of the security list>"
	statementGroups      = "Allow <subject> to manage network-security-groups in compartment <compartment of the group>"
	statementCreateGroup = statementGroups + ", and: Allow <subject> to manage vcns in compartment <compartment of the VCN>"
)

// explain puts a target, and what to do, to an error of the cloud.
func explain(t Target, err error) error {
	if t.Kind == NSG {
		return explainWith(t, statementGroups, err)
	}
	return explainWith(t, statementLists, err)
}

func explainWith(t Target, statement string, err error) error {
	var cloud *oci.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &cloud) && (cloud.Status == http.StatusNotFound || cloud.Status == http.StatusForbidden ||
		cloud.Code == "RelatedResourceNotAuthorizedOrNotFound"):
		return &AccessError{Target: t, Statement: statement, err: err}
	}
	return fmt.Errorf("%s: %w", t, err)
}
