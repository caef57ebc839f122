// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
)

// open says what is missing for a Service to be served as it should, and only so: the address of its balancer in its status,
// and all that there is of ours. Without a wish, the Service and all of ours shall be gone. "" means that all is well.
func (m *matrix) open(ctx context.Context, name string, w *wish) string {
	svc, err := m.bed.Cluster.Client().CoreV1().Services(v1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
	switch {
	case w == nil && apierrors.IsNotFound(err):
		return difference(m.seen(), nil)
	case w == nil && err == nil:
		return "the Service is still there"
	case err != nil:
		return err.Error()
	}
	if gap := difference(m.seen(), m.wanted(svc, w)); gap != "" {
		return gap
	}
	addresses := m.addresses()
	if len(svc.Status.LoadBalancer.Ingress) == 0 {
		return "no address in the status"
	}
	for _, ingress := range svc.Status.LoadBalancer.Ingress {
		if !slices.Contains(addresses, ingress.IP) {
			return fmt.Sprintf("address %s in the status, but the balancer has %v", ingress.IP, addresses)
		}
	}
	return ""
}

// addresses are those of all balancers.
func (m *matrix) addresses() []string {
	var list []string
	for _, b := range m.bed.Region.LoadBalancers() {
		for _, a := range b.IpAddresses {
			list = append(list, *a.IpAddress)
		}
	}
	for _, b := range m.bed.Region.NetworkLoadBalancers() {
		for _, a := range b.IpAddresses {
			list = append(list, *a.IpAddress)
		}
	}
	return list
}

// rulesOfOthers compares the rules that are not ours with those of the start, byte for byte.
func (m *matrix) rulesOfOthers() error {
	now, err := m.foreignRules()
	if err != nil {
		return err
	}
	for id, rules := range m.theirs {
		if now[id] != rules {
			err = errors.Join(err, fmt.Errorf("rules of others on %s are\n%s\nand were\n%s", id, now[id], rules))
		}
	}
	return err
}

// judge asks the oracle: nothing without a Service, nothing changed or written that is not ours, no key in a log; and looks
// at the rules of others. Once everything has settled, nothing may be on its way any more.
func (m *matrix) judge(ctx context.Context, settled bool) error {
	q := m.question(settled)
	list, err := m.bed.Cluster.Client().CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, svc := range list.Items {
		if svc.Spec.Type == v1.ServiceTypeLoadBalancer {
			q.Us.Owners = append(q.Us.Owners, string(svc.UID))
		}
	}
	for _, path := range m.logs {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		q.Logs = append(q.Logs, oracle.Log{Name: path, Text: string(text)})
	}
	report, err := oracle.Check(ctx, oracle.InProcess(m.bed.Region), q)
	if err != nil {
		return err
	}
	return errors.Join(report.Err(), m.rulesOfOthers())
}

func (m *matrix) question(settled bool) oracle.Question {
	q := oracle.Question{
		Before: m.before,
		Us: oracle.Us{
			Cluster: m.clusterID,
			Types:   []string{"load balancer", "network load balancer"},
			Writes:  append(oracle.RuleWrites(), ocisim.ServiceLoadBalancer, ocisim.ServiceNetworkLoadBalancer),
		},
		Settled: settled,
		Secrets: []oracle.Secret{{Name: "the private key", Value: m.bed.User.PrivateKeyPEM()}},
	}
	for name, pair := range m.certificates {
		q.Secrets = append(q.Secrets, oracle.Secret{Name: "the key of certificate " + name, Value: pair.Key})
	}
	return q
}
