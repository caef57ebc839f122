// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// network is where security lists are listed.
type network struct{ compartment, vcn string }

// errNoList means that a subnet has no security list.
var errNoList = errors.New("it has no security list")

// ruleSubnet reads what rules follow from, of a subnet. Without a security list the CIDR blocks are returned together with
// the error.
func (m *Manager) ruleSubnet(ctx context.Context, id string) (ruleSubnet, error) {
	subnet, _, err := m.subnets.get(ctx, id, m.cfg.RuleSubnetMaxAge)
	if err != nil {
		return ruleSubnet{}, fmt.Errorf("read subnet %s: %w", id, err)
	}
	s := ruleSubnet{V4: subnet.CIDRs, V6: subnet.IPv6CIDRs}
	s.List, err = m.chooseList(ctx, subnet)
	if err != nil {
		return s, fmt.Errorf("security list of subnet %s: %w", id, err)
	}
	return s, nil
}

// chooseList picks the security list of a subnet that is edited: the configured one if the subnet really has it, else the
// oldest one.
func (m *Manager) chooseList(ctx context.Context, subnet *oci.Subnet) (string, error) {
	lists := subnet.SecurityListIDs
	switch configured := m.cfg.SecurityLists[subnet.ID]; {
	case len(lists) == 0:
		return "", errNoList
	case slices.Contains(lists, configured):
		return configured, nil
	case len(lists) == 1:
		return lists[0], nil
	}
	created := make(map[string]time.Time, len(lists))
	listed, _, err := m.listTimes.get(ctx, network{subnet.CompartmentID, subnet.VCNID}, m.cfg.RuleSubnetMaxAge)
	if err != nil && !errors.Is(err, oci.ErrNotFound) {
		return "", err
	}
	for _, id := range lists {
		at, known := listed[id]
		if !known { // it is in another compartment, or new
			if at, _, err = m.listTime.get(ctx, id, m.cfg.RuleSubnetMaxAge); err != nil {
				return "", err
			}
		}
		created[id] = at
	}
	return slices.MinFunc(lists, func(a, b string) int { return cmp.Or(created[a].Compare(created[b]), cmp.Compare(a, b)) }), nil
}

// readListTimes says when the security lists of a VCN were made.
func (m *Manager) readListTimes(ctx context.Context, n network) (map[string]time.Time, error) {
	all, err := m.deps.Firewall.Lists.ListSecurityLists(ctx, n.compartment, n.vcn)
	if err != nil {
		return nil, err
	}
	times := make(map[string]time.Time, len(all))
	for _, list := range all {
		times[list.ID] = list.TimeCreated
	}
	return times, nil
}

// readListTime says when a security list was made.
func (m *Manager) readListTime(ctx context.Context, id string) (time.Time, error) {
	list, err := m.deps.Firewall.Lists.GetSecurityList(ctx, id)
	if err != nil {
		return time.Time{}, err
	}
	return list.TimeCreated, nil
}
