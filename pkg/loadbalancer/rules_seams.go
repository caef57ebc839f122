// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Rules keeps security rules; *firewall.Manager is one, and says what each method does.
type Rules interface {
	Check(ctx context.Context, claim firewall.Claim) (firewall.Changes, error)
	Open(ctx context.Context, claim firewall.Claim) error
	Settle(ctx context.Context, claim firewall.Claim) (firewall.Report, error)
	Release(ctx context.Context, owner string, claim firewall.Claim) (firewall.Report, error)
	Sweep(ctx context.Context, kind firewall.TargetKind, places ...firewall.Place) (firewall.Report, error)

	FindGroup(ctx context.Context, g firewall.ServiceGroup, attached []string) (id string, err error)
	CreateGroup(ctx context.Context, g firewall.ServiceGroup) (id string, err error)
	DeleteGroup(ctx context.Context, g firewall.ServiceGroup, id string) error
	MarkBackendGroup(ctx context.Context, id string) error
}

// SecurityLists reads security lists.
type SecurityLists interface {
	GetSecurityList(ctx context.Context, id string) (*oci.SecurityList, error)
	ListSecurityLists(ctx context.Context, compartmentID, vcnID string) ([]*oci.SecurityList, error)
}

// Firewall is what the security rules of Services are managed with. The zero value manages none.
type Firewall struct {
	Rules Rules
	Lists SecurityLists
	// NodeSubnets returns the subnets of nodes by their names, and why those of some nodes are not known. What it has once
	// found out costs no call.
	NodeSubnets func(ctx context.Context, nodes []*v1.Node) (subnets map[string]string, unknown map[string]error)
}

func (f Firewall) off() bool { return f.Rules == nil }
