// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Config is what the cluster's configuration says about balancers, and the times that the package keeps.
type Config struct {
	// ClusterID is the cluster identity that goes into marks; empty makes marks without it.
	ClusterID string
	// CompartmentID is the cluster's compartment, in which balancers are made unless a Service says otherwise.
	CompartmentID string
	// Subnet1 and Subnet2 are the default subnets.
	Subnet1, Subnet2 string
	// DisplayNamePrefix is put before the display names of LBs.
	DisplayNamePrefix string
	// Tags go on new balancers.
	Tags oci.Tags
	// RulesLB and RulesNLB are the modes of security rules that the configuration sets for each kind of balancer; empty if
	// it does not.
	RulesLB, RulesNLB RuleMode
	// SecurityLists maps the OCID of a subnet to that of the security list to edit for it.
	SecurityLists map[string]string

	// Hold is how long Ensure and UpdateBackends wait for the cloud before they return Pending. Default 15 s.
	Hold time.Duration
	// AbsenceSettle is how long a balancer has to be absent from complete lists, after a create of which the outcome is
	// not known, before another one is made under a new retry token. Default 30 s.
	AbsenceSettle time.Duration
	// OperationTimeout bounds Ensure, UpdateBackends and Audit, API waits included. Default 2 min.
	OperationTimeout time.Duration
	// DeleteTimeout bounds Delete. Default 10 min.
	DeleteTimeout time.Duration
	// SlowRetry is the time between two creates after a limit was met or a creation failed. Default 150 s.
	SlowRetry time.Duration
	// ListMaxAge is how old a list may be that a balancer is looked up in; to prove an absence, always a new one is read.
	// Default 60 s.
	ListMaxAge time.Duration
	// SubnetMaxAge is how old the knowledge about a subnet may be. Default 60 s.
	SubnetMaxAge time.Duration
	// RuleSubnetMaxAge is the same for what security rules follow from: the CIDR blocks and security lists of a subnet, which
	// hardly ever change. Default 1 h.
	RuleSubnetMaxAge time.Duration
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, byDefault time.Duration) {
		if *d == 0 {
			*d = byDefault
		}
	}
	set(&c.Hold, 15*time.Second)
	set(&c.AbsenceSettle, 30*time.Second)
	set(&c.OperationTimeout, 2*time.Minute)
	set(&c.DeleteTimeout, 10*time.Minute)
	set(&c.SlowRetry, 150*time.Second)
	set(&c.ListMaxAge, time.Minute)
	set(&c.SubnetMaxAge, time.Minute)
	set(&c.RuleSubnetMaxAge, time.Hour)
	return c
}
