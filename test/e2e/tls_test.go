// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/pki"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// secret writes a Secret with a certificate.
func (l *lab) secret(name string, p pki.Pair) {
	l.t.Helper()
	secrets := l.Cluster.Client().CoreV1().Secrets(v1.NamespaceDefault)
	s := &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: v1.SecretTypeTLS,
		StringData: map[string]string{v1.TLSCertKey: p.Certificate, v1.TLSPrivateKeyKey: p.Key},
	}
	_, err := secrets.Create(l.ctx, s, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(l.ctx, s, metav1.UpdateOptions{})
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// mayReadSecrets binds the role for Secrets with certificates, as docs/services.md says.
func (l *lab) mayReadSecrets() {
	l.t.Helper()
	const role = "oci-cloud-controller-manager:tls-secrets"
	_, err := l.Cluster.Client().RbacV1().RoleBindings(v1.NamespaceDefault).Create(l.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "cloud-controller-manager", Namespace: metav1.NamespaceSystem}},
	}, metav1.CreateOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
}

// wantCertificate waits until the only balancer shows a certificate, and has no other bundle.
func (l *lab) wantCertificate(p pki.Pair) {
	l.t.Helper()
	l.until("the certificate", func() (bool, string) {
		all := slices.DeleteFunc(l.Region.LoadBalancers(), func(b loadbalancer.LoadBalancer) bool {
			return b.LifecycleState != loadbalancer.LoadBalancerLifecycleStateActive
		})
		if len(all) != 1 || len(all[0].Certificates) != 1 {
			return false, l.CallLog(5) + "\n" + l.Events(l.ctx, v1.NamespaceDefault, "web")
		}
		for _, li := range all[0].Listeners {
			if s := li.SslConfiguration; s == nil || *all[0].Certificates[*s.CertificateName].PublicCertificate != p.Certificate {
				return false, l.CallLog(5)
			}
		}
		return true, ""
	})
}

// TestCertificates: a Service with TLS under the role of this version and under that of v1.35, which cannot watch Secrets
// (C031, C066).
func TestCertificates(t *testing.T) {
	for name, rbac := range map[string]string{"shipped role": testbed.ShippedRBAC, "role of v1.35": testbed.OldRBAC} {
		t.Run(name, func(t *testing.T) {
			one, two := pki.New(t, "one"), pki.New(t, "two")
			l := newLab(t, testbed.Options{RBAC: rbac})
			watched := rbac == testbed.ShippedRBAC
			period := "--oci-secret-poll-period=1s"
			if watched {
				period = "--oci-secret-poll-period=1h"
			}
			l.ready(period, "-v=10")
			l.secret("tls", one)
			l.service("web", "lb", func(svc *v1.Service) {
				svc.Annotations["service.beta.kubernetes.io/oci-load-balancer-ssl-ports"] = "80"
				svc.Annotations["service.beta.kubernetes.io/oci-load-balancer-tls-secret"] = "tls"
			})
			if watched {
				l.event(v1.NamespaceDefault, "web", "TLSSecretUnusable", "cannot get resource", "cloud-controller-manager", "oci-cloud-controller-manager:tls-secrets in namespace default")
				l.mayReadSecrets()
				l.poke("web")
			}
			l.served("web")
			l.wantCertificate(one)

			began := time.Now()
			l.secret("tls", two)
			l.wantCertificate(two)
			t.Logf("the new certificate was in place after %s", time.Since(began).Round(time.Millisecond))

			mixed := one
			mixed.Key = two.Key
			before := l.calls(writes)
			l.secret("tls", mixed)
			l.event(v1.NamespaceDefault, "web", "TLSSecretUnusable", "tls.key does not belong")
			if n := l.calls(writes) - before; n > 0 {
				t.Errorf("%d writes for a Secret that cannot be used", n)
			}
			l.wantCertificate(two)
			if !watched {
				l.event(metav1.NamespaceSystem, "cloud-controller-manager", "PermissionMissing", `resources: ["secrets"], verbs: ["watch"]`)
			}
			l.gone("web")
			l.empty()
			l.noSecrets(one.Key, two.Key)
		})
	}
}
