// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/identity"
)

// Identity reads what the identity service knows about a region.
type Identity struct {
	client *Client
}

// Identity returns the identity service.
func (c *Client) Identity() *Identity { return &Identity{c} }

// ListAvailabilityDomains returns the names of the region's availability domains as this tenancy sees them, for example
// "Uocm:PHX-AD-1".
func (s *Identity) ListAvailabilityDomains(ctx context.Context, compartmentID string) ([]string, error) {
	o := readOp(ServiceIdentity, "ListAvailabilityDomains", "availability_domain", "list")
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (identity.ListAvailabilityDomainsResponse, *http.Response, error) {
		r, err := s.client.identity.ListAvailabilityDomains(ctx, identity.ListAvailabilityDomainsRequest{CompartmentId: &compartmentID})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	// The request has no page parameter (identity API 20160918), so a second page could not be asked for.
	if value(r.OpcNextPage) != "" {
		return nil, fmt.Errorf("%s: %w: the answer announces a second page", o.name, ErrIncompleteList)
	}
	names := make([]string, 0, len(r.Items))
	for _, ad := range r.Items {
		if name := value(ad.Name); name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}
