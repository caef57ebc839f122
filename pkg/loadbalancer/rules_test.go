// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// TestUnmanagedRulesAreTold: an LB whose ports nobody opens must not be silent about it, unless that was asked for.
func TestUnmanagedRulesAreTold(t *testing.T) {
	const text = "security rules are not managed yet"
	for name, test := range map[string]struct {
		kind        oci.BalancerKind
		expected    bool
		annotations map[string]string
		want        bool
	}{
		"LB by default":           {kind: oci.KindLB, expected: true, want: true},
		"NLB by default":          {kind: oci.KindNLB, expected: true},
		"mode None in the config": {kind: oci.KindLB},
		"mode None of the Service": {kind: oci.KindLB, expected: true,
			annotations: map[string]string{"service.beta.kubernetes.io/oci-load-balancer-security-list-management-mode": "None"}},
		"rule mode None": {kind: oci.KindLB, expected: true,
			annotations: map[string]string{"oci.oraclecloud.com/security-rule-management-mode": "None"}},
	} {
		t.Run(name, func(t *testing.T) {
			svc := &v1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Annotations: test.annotations},
				Spec:       v1.ServiceSpec{Ports: []v1.ServicePort{{Port: 80, NodePort: 30080}}},
			}
			settings, problems := loadbalancer.ParseAnnotations(svc.Annotations, test.kind)
			_, more := loadbalancer.Desired(svc, goldenNodes(), settings, loadbalancer.Config{
				CompartmentID: "c", Subnet1: "ocid1.subnet.oc1.iad.public", RulesExpected: test.expected,
			}, loadbalancer.Facts{Subnets: []*oci.Subnet{subnetNamed("public")}})
			got := false
			for _, p := range append(problems, more...) {
				got = got || strings.Contains(p.Message, text)
				if p.Fatal {
					t.Errorf("fatal: %s", p.Message)
				}
			}
			if got != test.want {
				t.Errorf("told: %v, want %v; problems %v", got, test.want, more)
			}
		})
	}
}
