// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// SecurityList is a security list: the rules for all VNICs of the subnets that use it.
type SecurityList struct {
	ID            string
	CompartmentID string
	VCNID         string
	DisplayName   string
	State         string // PROVISIONING, AVAILABLE, TERMINATING, TERMINATED
	TimeCreated   time.Time
	ETag          string // of a single read, or of an update; lists have none

	Ingress, Egress []SecurityRule
	Tags
}

// GetSecurityList reads one security list with its ETag. An answer that lacks one of its two sets of rules is
// ErrIncompleteList: an update would empty the set.
func (s *Network) GetSecurityList(ctx context.Context, id string) (*SecurityList, error) {
	o := readOp(ServiceVirtualNetwork, "GetSecurityList", "security_list", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.GetSecurityListResponse, *http.Response, error) {
		r, err := s.client.network.GetSecurityList(ctx, core.GetSecurityListRequest{SecurityListId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	if r.IngressSecurityRules == nil || r.EgressSecurityRules == nil {
		return nil, fmt.Errorf("%s %s: %w: the answer (opc-request-id %s) lacks rules", o.name, id, ErrIncompleteList, value(r.OpcRequestId))
	}
	list := securityListFromSDK(r.SecurityList)
	list.ETag = value(r.Etag)
	if list.ID == "" {
		list.ID = id
	}
	return list, nil
}

// ListSecurityLists lists the security lists of a compartment with their rules, without ETags. An empty vcnID means those
// of every VCN.
func (s *Network) ListSecurityLists(ctx context.Context, compartmentID, vcnID string) ([]*SecurityList, error) {
	return listAll(ctx, s.client, readOp(ServiceVirtualNetwork, "ListSecurityLists", "security_list", "list"), securityListFromSDK,
		func(ctx context.Context, token *string) (page[core.SecurityList], *http.Response, error) {
			r, err := s.client.network.ListSecurityLists(ctx, core.ListSecurityListsRequest{
				CompartmentId: &compartmentID,
				VcnId:         present(vcnID),
				Limit:         &s.client.pageSize,
				Page:          token,
			})
			return page[core.SecurityList]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// UpdateSecurityList replaces both sets of rules of a security list; nothing else of it changes. The service knows no
// change of a single rule, so an ETag should always be given: one that is out of date is ErrPrecondition. It returns the
// list as it is then, with its new ETag.
//
// An update whose answer was lost is repeated, and is ErrPrecondition then, though it took effect.
func (s *Network) UpdateSecurityList(ctx context.Context, id string, ingress, egress []SecurityRule, etag string) (*SecurityList, error) {
	details := core.UpdateSecurityListDetails{
		IngressSecurityRules: make([]core.IngressSecurityRule, 0, len(ingress)),
		EgressSecurityRules:  make([]core.EgressSecurityRule, 0, len(egress)),
	}
	for _, rule := range ingress {
		details.IngressSecurityRules = append(details.IngressSecurityRules, ingressToSDK(rule))
	}
	for _, rule := range egress {
		details.EgressSecurityRules = append(details.EgressSecurityRules, egressToSDK(rule))
	}
	o := writeOp(ServiceVirtualNetwork, "UpdateSecurityList", "security_list", "update")
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.UpdateSecurityListResponse, *http.Response, error) {
		r, err := s.client.network.UpdateSecurityList(ctx, core.UpdateSecurityListRequest{
			SecurityListId: &id, IfMatch: present(etag), UpdateSecurityListDetails: details,
		})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	list := securityListFromSDK(r.SecurityList)
	list.ETag = value(r.Etag)
	if list.ID == "" {
		list.ID = id
	}
	return list, nil
}

func securityListFromSDK(l core.SecurityList) *SecurityList {
	out := &SecurityList{
		ID:            value(l.Id),
		CompartmentID: value(l.CompartmentId),
		VCNID:         value(l.VcnId),
		DisplayName:   value(l.DisplayName),
		State:         string(l.LifecycleState),
		TimeCreated:   timeValue(l.TimeCreated),
		Tags:          Tags{Freeform: l.FreeformTags, Defined: l.DefinedTags},
	}
	for _, rule := range l.IngressSecurityRules {
		out.Ingress = append(out.Ingress, ingressFromSDK(rule))
	}
	for _, rule := range l.EgressSecurityRules {
		out.Egress = append(out.Egress, egressFromSDK(rule))
	}
	return out
}
