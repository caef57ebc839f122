// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// oracle asks, after every test, what must hold whatever the test was about: no balancer without a Service, nothing
// written that is not ours to write, no secret in a log, nothing forbidden by the role, no panic.
func (l *lab) oracle() {
	l.t.Helper()
	l.noOrphans()
	l.onlyOurWrites()
	l.noKeyInLog()
}

// noOrphans fails if a balancer lives that no Service owns.
func (l *lab) noOrphans() {
	l.t.Helper()
	list, err := l.Cluster.Client().CoreV1().Services("").List(context.WithoutCancel(l.ctx), metav1.ListOptions{})
	if err != nil {
		l.t.Errorf("oracle: %v", err)
		return
	}
	owned := func(name string, tags map[string]string) bool {
		for _, svc := range list.Items {
			if tags["oci-k8s-owner"] == string(svc.UID) || strings.Contains(name, string(svc.UID)) {
				return true
			}
		}
		return false
	}
	for _, lb := range l.Region.LoadBalancers() {
		if !owned(*lb.DisplayName, lb.FreeformTags) && !strings.HasPrefix(string(lb.LifecycleState), "DELET") {
			l.t.Errorf("oracle: load balancer %s (%s) belongs to no Service", *lb.DisplayName, lb.LifecycleState)
		}
	}
	for _, nlb := range l.Region.NetworkLoadBalancers() {
		if !owned(*nlb.DisplayName, nlb.FreeformTags) && !strings.HasPrefix(string(nlb.LifecycleState), "DELET") {
			l.t.Errorf("oracle: network load balancer %s (%s) belongs to no Service", *nlb.DisplayName, nlb.LifecycleState)
		}
	}
}

// onlyOurWrites fails if anything but balancers was written: networks and instances are not ours in this release.
func (l *lab) onlyOurWrites() {
	l.t.Helper()
	for _, c := range l.Region.Calls() {
		if c.Write && !slices.Contains([]string{ocisim.ServiceLoadBalancer, ocisim.ServiceNetworkLoadBalancer}, c.Service) {
			l.t.Errorf("oracle: %s.%s on %s", c.Service, c.Operation, c.Resource)
		}
	}
}

// noKeyInLog fails if the private key of the user, or a part of it, is in a log of the cloud-controller-manager.
func (l *lab) noKeyInLog() {
	l.t.Helper()
	text := l.log(l.ccm)
	for _, line := range strings.Split(l.User.PrivateKeyPEM(), "\n") {
		if len(line) >= 32 && !strings.HasPrefix(line, "-----") && strings.Contains(text, line) {
			l.t.Errorf("oracle: a line of the private key is in the log: %s", fmt.Sprintf("%.8s…", line))
			return
		}
	}
}
