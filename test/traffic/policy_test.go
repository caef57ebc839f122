// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

const (
	anyNode  = v1.ServiceExternalTrafficPolicyCluster
	ownNodes = v1.ServiceExternalTrafficPolicyLocal
)

// seer is whose address a pod sees as that of the peer.
type seer string

const (
	seesNode     seer = "a node's"
	seesBalancer seer = "the balancer's"
	seesClient   seer = "the client's"
)

// offer is a kind of Service and what its pods are to see.
type offer struct {
	name, kind  string
	policy      v1.ServiceExternalTrafficPolicy
	annotations map[string]string
	peer        seer
	proxy       bool // the PROXY protocol tells the client
	secure      bool // the balancer terminates TLS

	address string
}

// port is that of the Service.
func (o *offer) port() int {
	if o.secure {
		return 443
	}
	return 80
}

// offers: under Cluster a node hands requests on, and answers must come back to it, so its address is all that a pod can
// see. Under Local it is that of the balancer, which a network load balancer replaces by the client's.
func offers() []*offer {
	return []*offer{
		{name: "lb-cluster", kind: "lb", policy: anyNode, peer: seesNode},
		{name: "lb-local", kind: "lb", policy: ownNodes, peer: seesBalancer},
		{name: "lb-cluster-proxy2", kind: "lb", policy: anyNode, peer: seesNode, proxy: true,
			annotations: map[string]string{lbPrefix + "connection-proxy-protocol-version": "2"}},
		{name: "lb-local-proxy1", kind: "lb", policy: ownNodes, peer: seesBalancer, proxy: true,
			annotations: map[string]string{lbPrefix + "connection-proxy-protocol-version": "1"}},
		{name: "nlb-cluster", kind: "nlb", policy: anyNode, peer: seesNode},
		{name: "nlb-local", kind: "nlb", policy: ownNodes, peer: seesClient},
		{name: "nlb-local-hidden", kind: "nlb", policy: ownNodes, peer: seesBalancer, annotations: map[string]string{nlbPrefix + "is-preserve-source": "false"}},
		{name: "nlb-cluster-proxy2", kind: "nlb", policy: anyNode, peer: seesNode, proxy: true, annotations: map[string]string{nlbPrefix + "is-ppv2-enabled": "true"}},
		{name: "nlb-private", kind: "nlb", policy: ownNodes, peer: seesClient, annotations: map[string]string{nlbPrefix + "internal": "true"}},
	}
}

// TestRequestsReachPods: through load balancers and network load balancers, under both external traffic policies, requests
// come through every eligible node and reach every pod that they can, and no other; and pods see the address of the client
// where they should. Pods come and go on nodes.
func TestRequestsReachPods(t *testing.T) {
	l := newLab(t)
	pods := []*pod{l.startPod("web-0", l.machines[0]), l.startPod("web-1", l.machines[1])}
	all := offers()
	for _, o := range all {
		l.service(o)
	}
	for _, o := range all {
		o.address = l.served(o.name)
	}
	check := func(with ...int) {
		t.Helper()
		without := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return slices.Contains(with, i) })
		for _, o := range all {
			healthy, others := []int{0, 1, 2}, []int(nil)
			if o.policy == ownNodes {
				healthy, others = with, without
			}
			l.wantBackends(o, healthy, others)
			l.reaches(o, with)
		}
		for i := range l.machines {
			l.localHealth("lb-local", i, slices.Contains(with, i))
		}
	}
	check(0, 1)
	pods = append(pods, l.startPod("web-2", l.machines[2]))
	check(0, 1, 2)
	l.terminate(pods[0])
	l.until("the terminating pod gets no requests", func() (bool, string) {
		before, err := l.stats(pods[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			l.visit(o, 20, func(answer, netip.AddrPort) {})
		}
		after, err := l.stats(pods[0])
		return err == nil && before.Requests == after.Requests, fmt.Sprintf("%d requests", after.Requests-before.Requests)
	})
	check(1, 2)
	l.finish(pods[0])
	check(1, 2)
}

// reaches asks until all has been seen that is to be seen, and complains of everything else.
func (l *lab) reaches(o *offer, nodes []int) {
	l.t.Helper()
	pods, entries := map[string]bool{}, map[int]bool{}
	for _, i := range nodes {
		pods[fmt.Sprintf("web-%d", i)] = false
	}
	if o.peer == seesNode {
		for i := range l.machines {
			entries[i] = false
		}
	}
	l.until(o.name+" reaches all pods through all nodes", func() (bool, string) {
		l.visit(o, 20, func(a answer, local netip.AddrPort) {
			if _, expected := pods[a.Pod]; !expected {
				l.t.Errorf("%s: pod %s answers; wanted one of %v", o.name, a.Pod, slices.Sorted(maps.Keys(pods)))
			}
			pods[a.Pod] = true
			l.sees(o, a, local, entries)
		})
		if l.t.Failed() {
			l.t.FailNow()
		}
		seen := fmt.Sprintf("pods %v, through nodes %v", pods, entries)
		return !slices.Contains(slices.Collect(maps.Values(pods)), false) && !slices.Contains(slices.Collect(maps.Values(entries)), false), seen
	})
}

// visit sends n requests of one connection each, from the namespace of the clients.
func (l *lab) visit(o *offer, n int, take func(answer, netip.AddrPort)) {
	l.t.Helper()
	inSpace(l.t, clientSpace, func() {
		for range n {
			c := &client{address: o.address + ":80", label: o.name}
			a, local, err := c.ask(l.ctx)
			c.close()
			if err != nil {
				l.t.Errorf("%s: a request from %s: %v", o.name, local, err)
				return
			}
			take(a, local)
		}
	})
}

// sees checks the addresses that a pod has seen.
func (l *lab) sees(o *offer, a answer, local netip.AddrPort, entries map[int]bool) {
	l.t.Helper()
	peer, err := netip.ParseAddrPort(a.Peer)
	if err != nil {
		l.t.Errorf("%s: %v", o.name, err)
		return
	}
	entry := l.nodeNumber(peer.Addr())
	right := false
	switch o.peer {
	case seesNode:
		right = entry >= 0
		entries[entry] = true
	case seesBalancer:
		right = slices.Contains(l.addressesOf(o.address), peer.Addr().String())
	case seesClient:
		right = peer.Addr() == local.Addr()
	}
	if !right {
		l.t.Errorf("%s: the pod sees %s, want %s address; the client is %s", o.name, a.Peer, o.peer, local)
	}
	if told := a.Client == local.String(); told != o.proxy || (!o.proxy && a.Client != "") {
		l.t.Errorf("%s: the PROXY protocol tells %q; the client is %s", o.name, a.Client, local)
	}
}

// addressesOf are all addresses of the balancer that has one of them.
func (l *lab) addressesOf(address string) []string {
	for _, one := range l.body.Listeners() {
		if slices.Contains(one.Addresses, address) {
			return one.Addresses
		}
	}
	return nil
}

// localHealth checks what kube-proxy says at the health check port of a Service with the policy Local.
func (l *lab) localHealth(name string, i int, want bool) {
	l.t.Helper()
	svc, err := l.Cluster.Client().CoreV1().Services(v1.NamespaceDefault).Get(l.ctx, name, metav1.GetOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	wanted := http.StatusServiceUnavailable
	if want {
		wanted = http.StatusOK
	}
	l.until(fmt.Sprintf("health check of node %d", i), func() (bool, string) {
		code, err := l.status(fmt.Sprintf("http://%s:%d/healthz", testbed.NodeIP(i), svc.Spec.HealthCheckNodePort))
		return code == wanted, strings.TrimSpace(fmt.Sprintf("status %d, want %d; %v", code, wanted, err))
	})
}
