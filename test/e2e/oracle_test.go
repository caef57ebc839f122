// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
)

// oracle asks, after every test, what must hold whatever the test was about: no balancer without a Service, none twice,
// none that failed; no security rule without a Service that could need it; nothing written or changed that is not ours, the
// rules of others included; no secret in the log.
func (l *lab) oracle() {
	l.t.Helper()
	ctx := context.WithoutCancel(l.ctx)
	list, err := l.Cluster.Client().CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		l.t.Errorf("oracle: %v", err)
		return
	}
	q := oracle.Question{
		Before: l.before,
		Us: oracle.Us{
			// Nobody but the program under test calls the region, and nobody else has balancers; networks, but for security
			// rules, and instances are not ours to write in this release.
			Types:  []string{"load balancer", "network load balancer"},
			Writes: append(oracle.RuleWrites(), ocisim.ServiceLoadBalancer, ocisim.ServiceNetworkLoadBalancer),
		},
		OthersAct: true, // tests add, change and terminate instances past the API
		Logs:      []oracle.Log{{Name: l.ccm.Log, Text: l.log(l.ccm)}},
		Secrets:   []oracle.Secret{{Name: "the private key", Value: l.User.PrivateKeyPEM()}},
	}
	for _, svc := range list.Items {
		if svc.Spec.Type == v1.ServiceTypeLoadBalancer || slices.Contains(svc.Finalizers, lbFinalizer) {
			q.Us.Owners = append(q.Us.Owners, string(svc.UID))
		}
	}
	report, err := oracle.Check(ctx, oracle.InProcess(l.Region), q)
	if err != nil {
		l.t.Errorf("oracle: %v", err)
		return
	}
	if err := report.Err(); err != nil {
		l.t.Error(err)
	}
}
