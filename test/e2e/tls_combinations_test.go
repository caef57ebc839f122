// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// TestC066TLSCombinations: each combination of annotations and Secrets that cannot work has an event of its own, and nothing is
// uploaded or made for it; those that only look wrong work, with an event that says what has no effect.
func TestC066TLSCombinations(t *testing.T) {
	l := newLab(t, testbed.Options{})
	l.ready()
	l.mayReadSecrets()
	good := pki.New(t, "good")
	l.secret("good", good)
	for name, data := range map[string]map[string]string{
		"without-key": {v1.TLSCertKey: good.Certificate},
		"only-a-ca":   {"ca.crt": good.Certificate},
		"no-pem":      {v1.TLSCertKey: "certificate", v1.TLSPrivateKeyKey: good.Key},
		"other-key":   {v1.TLSCertKey: good.Certificate, v1.TLSPrivateKeyKey: pki.New(t, "other").Key},
	} {
		_, err := l.Cluster.Client().CoreV1().Secrets(v1.NamespaceDefault).Create(l.ctx, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	const prefix = "service.beta.kubernetes.io/oci-load-balancer-"
	annotations := func(pairs ...string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			out[prefix+pairs[i]] = pairs[i+1]
		}
		return out
	}
	tests := []struct {
		name, reason string
		annotations  map[string]string
		texts        []string
		served       bool
	}{
		{"star", "InvalidAnnotation", annotations("ssl-ports", "*", "tls-secret", "good"), []string{"ssl-ports", "port numbers"}, false},
		{"bad-name", "InvalidAnnotation", annotations("ssl-ports", "80", "tls-secret", "Good"), []string{"tls-secret", "name of a Secret"}, false},
		{"missing", "TLSSecretUnusable", annotations("ssl-ports", "80", "tls-secret", "nowhere"), []string{"Secret default/nowhere", "does not exist"}, false},
		{"no-key", "TLSSecretUnusable", annotations("ssl-ports", "80", "tls-secret", "without-key"), []string{"no key tls.key"}, false},
		{"other-key", "TLSSecretUnusable", annotations("ssl-ports", "80", "tls-secret", "other-key"), []string{"tls.key does not belong"}, false},
		{"no-pem", "TLSSecretUnusable", annotations("ssl-ports", "80", "tls-secret", "no-pem"), []string{"tls.crt is no certificate"}, false},
		{"ca-only", "TLSSecretUnusable", annotations("ssl-ports", "80", "tls-backendset-secret", "only-a-ca"), []string{"tls-backendset-secret", "no key tls.crt"}, false},
		{"elsewhere", "TLSSecretUnusable", annotations("ssl-ports", "80", "tls-secret", "kube-system/good"), []string{"Secret kube-system/good", "bind the ClusterRole", "in namespace kube-system"}, false},
		{"wrong-port", "AnnotationIgnored", annotations("ssl-ports", "80, 9999", "tls-secret", "good"), []string{"ssl-ports", "9999"}, true},
		{"no-ports", "AnnotationIgnored", annotations("tls-secret", "good"), []string{"tls-secret", "no port has TLS"}, true},
	}
	made := 0
	for _, test := range tests {
		l.service(test.name, "lb", func(svc *v1.Service) { maps.Copy(svc.Annotations, test.annotations) })
	}
	for _, test := range tests {
		l.event(v1.NamespaceDefault, test.name, test.reason, test.texts...)
		if test.served {
			l.served(test.name)
			made++
		}
	}
	creates := func(c ocisim.Call) bool { return c.Operation == "CreateLoadBalancer" }
	uploads := func(c ocisim.Call) bool { return c.Operation == "CreateCertificate" }
	if n := l.calls(creates); n != made {
		t.Errorf("%d balancers were asked for, want %d", n, made)
	}
	if n := l.calls(uploads); n > 0 {
		t.Errorf("%d certificates were uploaded", n)
	}
	for _, test := range tests {
		l.gone(test.name)
	}
	l.empty()
}
