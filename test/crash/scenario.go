// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// scenario is a change whose every call is a kill point. done returns what is still open, "" at the end.
type scenario struct {
	name    string
	prepare func(ctx context.Context, service string) error
	act     func(ctx context.Context, service string) error
	done    func(ctx context.Context, service string) string
	undo    func(ctx context.Context) error
}

func nothing(context.Context, string) error { return nil }

func keep(context.Context) error { return nil }

// scenarios are those of the issue: create, change of ports, change of nodes, delete.
func (m *matrix) scenarios() []scenario {
	return []scenario{
		{
			name: "create", prepare: nothing, act: m.createService, undo: keep,
			done: func(ctx context.Context, service string) string { return m.open(ctx, service, []int32{80, 443}, 3) },
		},
		{
			name: "port-change", prepare: m.createReady, undo: keep,
			act: func(ctx context.Context, service string) error {
				return m.edit(ctx, service, func(svc *v1.Service) {
					svc.Spec.Ports = []v1.ServicePort{port(80), port(8443)}
				})
			},
			done: func(ctx context.Context, service string) string { return m.open(ctx, service, []int32{80, 8443}, 3) },
		},
		{
			name: "node-change", prepare: m.createReady,
			act:  func(ctx context.Context, _ string) error { return m.exclude(ctx, true) },
			done: func(ctx context.Context, service string) string { return m.open(ctx, service, []int32{80, 443}, 2) },
			undo: func(ctx context.Context) error { return m.exclude(ctx, false) },
		},
		{
			name: "delete", prepare: m.createReady, undo: keep,
			act: func(ctx context.Context, service string) error {
				return m.bed.Cluster.Client().CoreV1().Services(v1.NamespaceDefault).Delete(ctx, service, metav1.DeleteOptions{})
			},
			done: func(ctx context.Context, service string) string {
				_, err := m.bed.Cluster.Client().CoreV1().Services(v1.NamespaceDefault).Get(ctx, service, metav1.GetOptions{})
				if !apierrors.IsNotFound(err) {
					return "the Service is still there"
				}
				return m.leftovers()
			},
		},
	}
}

func port(n int32) v1.ServicePort { return v1.ServicePort{Name: fmt.Sprintf("p%d", n), Port: n} }

func (m *matrix) createService(ctx context.Context, name string) error {
	svc := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"oci.oraclecloud.com/load-balancer-type": m.kind}},
		Spec: v1.ServiceSpec{
			Type: v1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": name}, Ports: []v1.ServicePort{port(80), port(443)},
		},
	}
	_, err := m.bed.Cluster.Client().CoreV1().Services(v1.NamespaceDefault).Create(ctx, svc, metav1.CreateOptions{})
	return err
}

func (m *matrix) createReady(ctx context.Context, name string) error {
	if err := m.createService(ctx, name); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, convergeTimeout)
	defer cancel()
	return testbed.Until(wait, func(ctx context.Context) (bool, string) {
		open := m.open(ctx, name, []int32{80, 443}, 3)
		return open == "", open
	})
}

func (m *matrix) edit(ctx context.Context, name string, change func(*v1.Service)) error {
	services := m.bed.Cluster.Client().CoreV1().Services(v1.NamespaceDefault)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		svc, err := services.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(svc)
		_, err = services.Update(ctx, svc, metav1.UpdateOptions{})
		return err
	})
}

// exclude takes the last node out of all balancers, or lets it in again.
func (m *matrix) exclude(ctx context.Context, out bool) error {
	value := "null"
	if out {
		value = `"true"`
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, v1.LabelNodeExcludeBalancers, value)
	_, err := m.bed.Cluster.Client().CoreV1().Nodes().Patch(ctx, testbed.NodeName(2), types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// open says what is missing for a Service to be served as it should: the address in its status, one balancer, exactly
// these ports, and so many backends on the node port of each.
func (m *matrix) open(ctx context.Context, name string, ports []int32, backends int) string {
	svc, err := m.bed.Cluster.Client().CoreV1().Services(v1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	if len(svc.Status.LoadBalancer.Ingress) == 0 {
		return "no address in the status"
	}
	got, want := m.served(), wanted(svc, ports, backends)
	if !slices.Equal(got, want) {
		return fmt.Sprintf("served %v, wanted %v", got, want)
	}
	return ""
}

// wanted lists "listener port -> backend port x backends" for the ports.
func wanted(svc *v1.Service, ports []int32, backends int) []string {
	nodePorts := map[int32]int32{}
	for _, p := range svc.Spec.Ports {
		nodePorts[p.Port] = p.NodePort
	}
	var list []string
	for _, p := range ports {
		list = append(list, fmt.Sprintf("%d->%dx%d", p, nodePorts[p], backends))
	}
	slices.Sort(list)
	return list
}

// served lists what the one balancer serves, in the form of wanted.
func (m *matrix) served() []string {
	var list []string
	for _, lb := range m.bed.Region.LoadBalancers() {
		for _, l := range lb.Listeners {
			set := lb.BackendSets[*l.DefaultBackendSetName]
			ports := make([]string, 0, len(set.Backends))
			for _, b := range set.Backends {
				ports = append(ports, fmt.Sprint(*b.Port))
			}
			list = append(list, row(*l.Port, ports))
		}
		if len(lb.BackendSets) != len(lb.Listeners) {
			list = append(list, fmt.Sprintf("%d backend sets", len(lb.BackendSets)))
		}
	}
	for _, nlb := range m.bed.Region.NetworkLoadBalancers() {
		for _, l := range nlb.Listeners {
			set := nlb.BackendSets[*l.DefaultBackendSetName]
			ports := make([]string, 0, len(set.Backends))
			for _, b := range set.Backends {
				ports = append(ports, fmt.Sprint(*b.Port))
			}
			list = append(list, row(*l.Port, ports))
		}
		if len(nlb.BackendSets) != len(nlb.Listeners) {
			list = append(list, fmt.Sprintf("%d backend sets", len(nlb.BackendSets)))
		}
	}
	slices.Sort(list)
	return list
}

// row is one listener with its backends' port, or ports where they differ.
func row(listener int, ports []string) string {
	n := len(ports)
	slices.Sort(ports)
	return fmt.Sprintf("%d->%sx%d", listener, strings.Join(slices.Compact(ports), "+"), n)
}
