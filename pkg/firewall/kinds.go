// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Lists are the security lists; oci.Network implements it.
type Lists interface {
	// GetSecurityList returns the list with its ETag.
	GetSecurityList(ctx context.Context, id string) (*oci.SecurityList, error)
	// ListSecurityLists returns all lists of a VCN in a compartment with their rules, or an error.
	ListSecurityLists(ctx context.Context, compartmentID, vcnID string) ([]*oci.SecurityList, error)
	// UpdateSecurityList replaces all rules of a list that still has the given ETag.
	UpdateSecurityList(ctx context.Context, id string, ingress, egress []oci.SecurityRule, etag string) (*oci.SecurityList, error)
}

// Groups are the network security groups; oci.Network implements it.
type Groups interface {
	GetSecurityGroup(ctx context.Context, id string) (*oci.SecurityGroup, error)
	// ListSecurityGroups returns all groups of a VCN in a compartment, or an error.
	ListSecurityGroups(ctx context.Context, compartmentID, vcnID string) ([]*oci.SecurityGroup, error)
	CreateSecurityGroup(ctx context.Context, g oci.SecurityGroup, retryToken string) (*oci.SecurityGroup, error)
	DeleteSecurityGroup(ctx context.Context, id, etag string) error
	UpdateSecurityGroupTags(ctx context.Context, id string, tags oci.Tags, etag string) (*oci.SecurityGroup, error)

	ListSecurityGroupRules(ctx context.Context, id string) ([]oci.SecurityRule, error)
	// AddSecurityGroupRules returns what was added, also if it fails on the way.
	AddSecurityGroupRules(ctx context.Context, id string, rules []oci.SecurityRule) ([]oci.SecurityRule, error)
	RemoveSecurityGroupRules(ctx context.Context, id string, ruleIDs []string) error
}

// errNoETag means that an update could not be guarded.
var errNoETag = errors.New("the cloud gave no ETag, without which an update could undo the changes of others")

// listKind is what a security list is like.
type listKind struct {
	lists Lists
	limit int
}

func (k listKind) read(ctx context.Context, id string) (*state, error) {
	list, err := k.lists.GetSecurityList(ctx, id)
	if err != nil {
		return nil, err
	}
	return &state{rules: heldRules(list.Ingress, list.Egress), list: list}, nil
}

// write replaces all rules in one call, so that what is added and what is removed takes effect at the same time.
func (k listKind) write(ctx context.Context, id string, s *state, p *plan) (*state, error) {
	if s.list.ETag == "" {
		return nil, errNoETag
	}
	at := time.Now()
	list, err := k.lists.UpdateSecurityList(ctx, id, p.result(Ingress), p.result(Egress), s.list.ETag)
	if err != nil || list.ETag == "" || len(list.Ingress)+len(list.Egress) != len(p.have)+len(p.add)-len(p.drop) {
		return nil, err
	}
	return &state{at: at, rules: heldRules(list.Ingress, list.Egress), list: list}, nil
}

func (listKind) guarded() bool { return true }

// again is true for conflicts. (An update that was applied although its answer was lost is one, too.)
func (listKind) again(err error) bool {
	return errors.Is(err, oci.ErrPrecondition) || errors.Is(err, oci.ErrConflict)
}

func (k listKind) limits() limits { return limits{direction: k.limit} }

// groupKind is what the rules of an NSG are like.
type groupKind struct {
	groups Groups
	limit  int
}

func (k groupKind) read(ctx context.Context, id string) (*state, error) {
	rules, err := k.groups.ListSecurityGroupRules(ctx, id)
	if err != nil {
		return nil, err
	}
	return &state{rules: heldRules(rules)}, nil
}

// write adds first. Only where both do not fit at the same time it removes first; what it removes is needed by nobody.
func (k groupKind) write(ctx context.Context, id string, s *state, p *plan) (*state, error) {
	at := s.at
	var added []oci.SecurityRule
	add := func() (err error) {
		if len(p.add) > 0 {
			added, err = k.groups.AddSecurityGroupRules(ctx, id, p.add)
		}
		return err
	}
	remove := func() error {
		if len(p.drop) == 0 {
			return nil
		}
		var ids []string
		for i := range s.rules {
			if _, dropped := p.drop[i]; dropped {
				ids = append(ids, s.rules[i].cloud.ID)
			}
		}
		return k.groups.RemoveSecurityGroupRules(ctx, id, ids)
	}
	steps := []func() error{add, remove}
	if len(s.rules)+len(p.add) > k.limit {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if len(added) != len(p.add) {
		return nil, nil // the answer lacks some: read
	}
	after := &state{at: at}
	for i, h := range s.rules {
		if _, dropped := p.drop[i]; !dropped {
			after.rules = append(after.rules, h)
		}
	}
	after.rules = append(after.rules, heldRules(added)...)
	return after, nil
}

func (groupKind) guarded() bool { return false }

// again is true for conflicts, for what may have been applied without an answer, and for rules that somebody else has
// removed first.
func (groupKind) again(err error) bool {
	var cloud *oci.Error
	if !errors.As(err, &cloud) {
		return false
	}
	return errors.Is(err, oci.ErrPrecondition) || errors.Is(err, oci.ErrConflict) || cloud.Status == 0 || cloud.Status >= http.StatusInternalServerError ||
		cloud.Operation == "RemoveNetworkSecurityGroupSecurityRules" && (cloud.Status == http.StatusBadRequest || cloud.Status == http.StatusNotFound)
}

func (k groupKind) limits() limits { return limits{all: k.limit} }

// kindOf returns how targets of a kind are dealt with.
func (m *Manager) kindOf(k TargetKind) (kind, error) {
	switch k {
	case SecurityList:
		return listKind{m.lists, m.cfg.MaxListRules}, nil
	case NSG:
		return groupKind{m.groups, m.cfg.MaxGroupRules}, nil
	}
	return nil, fmt.Errorf("%w: target of kind %q", ErrInvalidRule, k)
}
