// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"context"
	"errors"

	"github.com/oracle/oci-go-sdk/v65/core"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	nlbsdk "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	v1 "k8s.io/api/core/v1"
)

// Remove removes what that release finds of a Service that goes. Kubernetes asks for it only if there is a balancer: without
// one the Service is let go, and nothing is removed.
func (r *Release) Remove(ctx context.Context, svc *v1.Service) error {
	b, err := r.Find(svc)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var group *core.NetworkSecurityGroup
	if modeOf(svc) == modeNSG {
		if found, err := r.findGroup(svc, b.Groups); err == nil {
			group = &found
		}
		if err := r.closeGroups(ctx, svc); err != nil {
			return err
		}
	}
	if err := r.closeLists(ctx, svc, b); err != nil {
		return err
	}
	if err := r.removeBalancer(ctx, svc, b.ID); err != nil {
		return err
	}
	if group == nil {
		return nil
	}
	return r.removeGroup(ctx, *group.Id)
}

func (r *Release) removeBalancer(ctx context.Context, svc *v1.Service, id string) error {
	if isNLB(svc) {
		client, err := r.networkLoadBalancers()
		if err == nil {
			_, err = client.DeleteNetworkLoadBalancer(ctx, nlbsdk.DeleteNetworkLoadBalancerRequest{NetworkLoadBalancerId: &id})
		}
		if err != nil {
			return err
		}
	} else {
		client, err := r.loadBalancers()
		if err == nil {
			_, err = client.DeleteLoadBalancer(ctx, lbsdk.DeleteLoadBalancerRequest{LoadBalancerId: &id})
		}
		if err != nil {
			return err
		}
	}
	return until(ctx, "the end of "+id, func() bool {
		_, err := r.Find(svc)
		return errors.Is(err, ErrNotFound)
	})
}

// removeGroup deletes a network security group, as soon as the VNICs of the balancer have left it.
func (r *Release) removeGroup(ctx context.Context, id string) error {
	client, err := r.network()
	if err != nil {
		return err
	}
	var last error
	err = until(ctx, "the end of "+id, func() bool {
		read, err := client.GetNetworkSecurityGroup(ctx, core.GetNetworkSecurityGroupRequest{NetworkSecurityGroupId: &id})
		if err == nil {
			_, err = client.DeleteNetworkSecurityGroup(ctx, core.DeleteNetworkSecurityGroupRequest{NetworkSecurityGroupId: &id, IfMatch: read.Etag})
		}
		last = err
		return err == nil
	})
	return errors.Join(err, last)
}
