// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/oracle/oci-cloud-controller-manager/test/pki"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// Annotations of the Services.
const (
	typeKey        = "oci.oraclecloud.com/load-balancer-type"
	replaceKey     = "oci.oraclecloud.com/load-balancer-replace"
	modeKey        = "oci.oraclecloud.com/security-rule-management-mode"
	nodeGroupKey   = "oci.oraclecloud.com/oci-backend-network-security-group"
	intervalKeyLB  = "service.beta.kubernetes.io/oci-load-balancer-health-check-interval"
	intervalKeyNLB = "oci-network-load-balancer.oraclecloud.com/health-check-interval"
	sslPortsKey    = "service.beta.kubernetes.io/oci-load-balancer-ssl-ports"
	secretKey      = "service.beta.kubernetes.io/oci-load-balancer-tls-secret"
)

// securePort is the one with TLS, in scenarios that have it.
const securePort = 443

// write puts a wish into a Service.
func (w *wish) write(svc *v1.Service) {
	set := func(key, value string, wanted bool) {
		if wanted {
			metav1.SetMetaDataAnnotation(&svc.ObjectMeta, key, value)
		} else {
			delete(svc.Annotations, key)
		}
	}
	set(typeKey, w.kind, true)
	set(replaceKey, "true", w.replace)
	set(modeKey, w.mode, w.kind != lb || w.mode != lists) // which is the default for an LB
	set(nodeGroupKey, nodeGroup, w.mode == groups)
	set(intervalKeyLB, strconv.Itoa(w.interval), w.kind == lb)
	set(intervalKeyNLB, strconv.Itoa(w.interval), w.kind == nlb)
	set(sslPortsKey, strconv.Itoa(securePort), w.secret != "")
	set(secretKey, secretName(svc.Name, w.secret), w.secret != "")
	svc.Spec.LoadBalancerSourceRanges = nil
	if !slices.Contains(w.clients, everybody) {
		svc.Spec.LoadBalancerSourceRanges = w.clients
	}
	had := map[int32]int32{}
	for _, p := range svc.Spec.Ports {
		had[p.Port] = p.NodePort
	}
	svc.Spec.Ports = nil
	for _, p := range w.ports {
		svc.Spec.Ports = append(svc.Spec.Ports, v1.ServicePort{Name: fmt.Sprintf("p%d", p), Port: p, NodePort: had[p]})
	}
}

// secretName is the name of a Secret of a Service: each has its own, so that kill points do not meet.
func secretName(service, secret string) string { return service + "-" + secret }

// demand brings nodes, Secrets and the Service to what is wished; what is there already is not touched. Nil deletes the
// Service.
func (m *matrix) demand(ctx context.Context, name string, w *wish) error {
	services := m.bed.Cluster.Client().CoreV1().Services(v1.NamespaceDefault)
	if w == nil {
		return services.Delete(ctx, name, metav1.DeleteOptions{})
	}
	if err := m.letNodesIn(ctx, w.backends); err != nil {
		return err
	}
	if w.secret != "" {
		if err := m.putSecret(ctx, secretName(name, w.secret), m.certificates[w.holds]); err != nil {
			return err
		}
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		svc, err := services.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			svc = &v1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       v1.ServiceSpec{Type: v1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": name}},
			}
			w.write(svc)
			_, err = services.Create(ctx, svc, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		w.write(svc)
		_, err = services.Update(ctx, svc, metav1.UpdateOptions{})
		return err
	})
}

// letNodesIn takes the last node out of all balancers, or lets it in again.
func (m *matrix) letNodesIn(ctx context.Context, backends int) error {
	value := "null"
	if backends < workers {
		value = `"true"`
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, v1.LabelNodeExcludeBalancers, value)
	_, err := m.bed.Cluster.Client().CoreV1().Nodes().Patch(ctx, testbed.NodeName(workers-1), types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (m *matrix) putSecret(ctx context.Context, name string, p pki.Pair) error {
	secrets := m.bed.Cluster.Client().CoreV1().Secrets(v1.NamespaceDefault)
	secret := &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: v1.SecretTypeTLS,
		StringData: map[string]string{v1.TLSCertKey: p.Certificate, v1.TLSPrivateKeyKey: p.Key},
	}
	_, err := secrets.Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	return err
}

// tidy takes back what a kill point has left in the cluster, once its Service is gone.
func (m *matrix) tidy(ctx context.Context, name string) error {
	errs := []error{m.letNodesIn(ctx, workers)}
	for _, w := range []*wish{m.scenario.from, m.scenario.to} {
		if w == nil || w.secret == "" {
			continue
		}
		err := m.bed.Cluster.Client().CoreV1().Secrets(v1.NamespaceDefault).Delete(ctx, secretName(name, w.secret), metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// makeCertificates makes those that Secrets hold, and lets the cloud-controller-manager read the Secrets as docs/services.md
// says.
func (m *matrix) makeCertificates(ctx context.Context) error {
	m.certificates = map[string]pki.Pair{}
	now := time.Now()
	for _, name := range []string{"one", "two"} {
		pair, err := pki.Make(name, now.Add(-time.Hour), now.AddDate(1, 0, 0))
		if err != nil {
			return err
		}
		m.certificates[name] = pair
	}
	const role = "oci-cloud-controller-manager:tls-secrets"
	_, err := m.bed.Cluster.Client().RbacV1().RoleBindings(v1.NamespaceDefault).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "cloud-controller-manager", Namespace: metav1.NamespaceSystem}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("bind %s: %w", role, err)
	}
	return nil
}
