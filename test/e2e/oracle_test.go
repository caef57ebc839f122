// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
)

// oracle asks, after every test, what must hold whatever the test was about: no balancer without a Service, none twice,
// none that failed; nothing written or changed that is not ours; no secret in the log.
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
			// Nobody but the program under test calls the region, and nobody else has balancers; networks and instances are
			// not ours to write in this release.
			Types:  []string{"load balancer", "network load balancer"},
			Writes: []string{ocisim.ServiceLoadBalancer, ocisim.ServiceNetworkLoadBalancer},
		},
		OthersAct: true, // tests add, change and terminate instances past the API
		Logs:      []oracle.Log{{Name: l.ccm.Log, Text: l.log(l.ccm)}},
		Secrets:   []oracle.Secret{{Name: "the private key", Value: l.User.PrivateKeyPEM()}},
	}
	if l.rules {
		q.Us.Writes = append(q.Us.Writes, ocisim.ServiceVirtualNetwork)
		q.Expected = append(q.Expected, oracle.Expectation{Type: "security list", Fields: []string{"(etag)"}}) // their content is what it was
	}
	for _, svc := range list.Items {
		q.Us.Owners = append(q.Us.Owners, string(svc.UID))
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
