// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"crypto/tls"
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// rounds is how many connections each client makes, and how many answers it gets, before a step counts as lived through.
const rounds = 20

// steady are the balancers of TestNothingIsLost.
func steady() []*offer {
	return []*offer{
		{name: "lb-cluster", kind: "lb", policy: anyNode, peer: seesNode},
		{name: "lb-local", kind: "lb", policy: ownNodes, peer: seesBalancer},
		{name: "nlb-cluster", kind: "nlb", policy: anyNode, peer: seesNode},
		{name: "nlb-local", kind: "nlb", policy: ownNodes, peer: seesClient},
		{name: "lb-tls", kind: "lb", policy: anyNode, peer: seesNode, secure: true,
			annotations: map[string]string{lbPrefix + "ssl-ports": "443", lbPrefix + "tls-secret": tlsSecret}},
	}
}

// TestNothingIsLost: clients send a request each few milliseconds, on new connections and on lasting ones, and get every
// answer at the first attempt, while ports, health checks and the certificate of the Services change, and while nodes are
// added, cordoned and removed one by one.
//
// A node leaves as it does in a cluster that is run with care: its pods go first, and end when nobody asks them any more;
// then it leaves the balancers; then the machine ends.
func TestNothingIsLost(t *testing.T) {
	l := newLab(t)
	d := &drive{lab: l, all: steady(), pods: map[int]*pod{}, issuer: newIssuer(t)}
	certificate, _ := d.issuer.issue()
	l.readSecrets()
	l.secret(certificate)
	for i, m := range l.machines {
		d.pods[i] = l.startPod(fmt.Sprintf("web-%d", i), m)
	}
	for _, o := range d.all {
		l.service(o)
	}
	for _, o := range d.all {
		o.address = l.served(o.name)
		l.wantBackends(o, []int{0, 1, 2}, nil)
	}
	d.crowd = l.newCrowd()
	for _, o := range d.all {
		var secure *tls.Config
		if o.secure {
			secure = d.issuer.trust()
		}
		d.crowd.add(o.name, fmt.Sprintf("%s:%d", o.address, o.port()), secure, 2, 2)
	}
	d.crowd.rounds(rounds)
	d.crowd.noneLost()

	d.portsChange()
	d.healthChecksChange()
	d.certificateRotates()
	d.nodeJoins(3)
	d.nodeIsCordoned(0)
	d.nodeLeaves(0, `{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":"true"}}}`)
	d.nodeIsCordoned(1)
	d.nodeLeaves(1, `{"spec":{"taints":[{"key":"ToBeDeletedByClusterAutoscaler","effect":"NoSchedule"}]}}`)
	d.nodeJoins(4)

	answered := 0
	d.crowd.each(func(s *stream) { answered += s.answered })
	t.Logf("%d requests, none lost", answered)
}

// drive is the course of the test.
type drive struct {
	*lab

	crowd  *crowd
	all    []*offer
	pods   map[int]*pod // by node
	issuer *issuer
}

// nodes are the numbers of the nodes with a pod, in order.
func (d *drive) nodes() []int {
	var list []int
	for i := range d.pods {
		list = append(list, i)
	}
	slices.Sort(list)
	return list
}

// settle waits until all balancers have the nodes, and some more requests have been answered.
func (d *drive) settle() {
	d.t.Helper()
	for _, o := range d.all {
		d.wantBackends(o, d.nodes(), nil)
	}
	d.crowd.rounds(rounds)
	d.crowd.noneLost()
}

// portsChange adds a port, gives it another number, and takes it away. The clients use another one.
func (d *drive) portsChange() {
	d.t.Helper()
	change := func(what string, port int32, do func(*v1.Service)) {
		d.t.Helper()
		d.crowd.during(what)
		for _, o := range d.all {
			d.edit(o.name, do)
		}
		for _, o := range d.all {
			d.until(fmt.Sprintf("ports of %s", o.name), func() (bool, string) {
				got := d.listeners(o.address)
				want := []int{o.port()}
				if port != 0 {
					want = append(want, int(port))
				}
				return slices.Equal(got, want), fmt.Sprintf("listeners at %v, want %v", got, want)
			})
		}
		d.settle()
	}
	change("a port is added", 8080, func(svc *v1.Service) {
		svc.Spec.Ports = append(svc.Spec.Ports, v1.ServicePort{Name: "more", Port: 8080, TargetPort: intstr.FromInt32(podPort)})
	})
	change("a port changes", 8081, func(svc *v1.Service) { svc.Spec.Ports[1].Port = 8081 })
	change("a port is removed", 0, func(svc *v1.Service) { svc.Spec.Ports = svc.Spec.Ports[:1] })
}

// listeners are the ports at which the balancer with an address really listens, in order.
func (l *lab) listeners(address string) []int {
	var ports []int
	for _, one := range l.body.Listeners() {
		if slices.Contains(one.Addresses, address) && one.Listen != "" {
			ports = append(ports, one.Port)
		}
	}
	slices.Sort(ports)
	return ports
}

// healthChecksChange sets interval, timeout and retries of all health checks anew.
func (d *drive) healthChecksChange() {
	d.t.Helper()
	d.crowd.during("health checks change")
	for _, o := range d.all {
		prefix := lbPrefix
		if o.kind == "nlb" {
			prefix = nlbPrefix
		}
		d.edit(o.name, func(svc *v1.Service) {
			svc.Annotations[prefix+"health-check-interval"] = "15000"
			svc.Annotations[prefix+"health-check-timeout"] = "5000"
			svc.Annotations[prefix+"health-check-retries"] = "2"
		})
	}
	for _, o := range d.all {
		d.until("health check of "+o.name, func() (bool, string) {
			got := d.healthCheck(o)
			return got == "every 15000 ms, for 5000 ms, 2 times", got
		})
	}
	d.settle()
}

// healthCheck describes the health check of a Service's port.
func (l *lab) healthCheck(o *offer) string {
	address, set := o.address, fmt.Sprintf("TCP-%d", o.port())
	text := func(interval, timeout, retries *int) string {
		return fmt.Sprintf("every %d ms, for %d ms, %d times", *interval, *timeout, *retries)
	}
	for _, v := range l.Region.LoadBalancers() {
		if len(v.IpAddresses) > 0 && *v.IpAddresses[0].IpAddress == address {
			h := v.BackendSets[set].HealthChecker
			return text(h.IntervalInMillis, h.TimeoutInMillis, h.Retries)
		}
	}
	for _, v := range l.Region.NetworkLoadBalancers() {
		for _, a := range v.IpAddresses {
			if *a.IpAddress == address {
				h := v.BackendSets[set].HealthChecker
				return text(h.IntervalInMillis, h.TimeoutInMillis, h.Retries)
			}
		}
	}
	return "no balancer"
}

// nodeJoins adds the i-th node, with a pod that is ready when the node is. Balancers get it when its kube-proxy is ready.
func (d *drive) nodeJoins(i int) {
	d.t.Helper()
	d.crowd.during("node " + testbed.NodeName(i) + " is added")
	d.Region.AddInstance(ocisim.Instance{
		ID: testbed.InstanceID(i), Name: testbed.NodeName(i), VNIC: ocisim.VNIC{Subnet: "nodes", PrivateIP: testbed.NodeIP(i)},
	})
	if err := d.Nodes.Add(d.ctx, 1); err != nil {
		d.t.Fatal(err)
	}
	m := d.boot(i)
	d.pods[i] = d.startPod(fmt.Sprintf("web-%d", i), m)
	for _, o := range d.all {
		d.ready(o.name, m)
	}
	d.patchNode(i, `{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":null}}}`)
	d.settle()
	d.until("all balancers use the new node", func() (bool, string) {
		idle := ""
		d.crowd.each(func(s *stream) {
			if s.pods[d.pods[i].name] == 0 {
				idle = s.name
			}
		})
		return idle == "", idle + " has no answer from there"
	})
	d.crowd.noneLost()
}

// nodeIsCordoned lets no new pods on a node. Balancers go on with it.
func (d *drive) nodeIsCordoned(i int) {
	d.t.Helper()
	d.crowd.during("node " + testbed.NodeName(i) + " is cordoned")
	d.patchNode(i, `{"spec":{"unschedulable":true}}`)
	d.settle()
}

// nodeLeaves takes a node away: its pod, its part in the balancers, its machine and instance, its Node.
func (d *drive) nodeLeaves(i int, patch string) {
	d.t.Helper()
	m, p := d.machine(i), d.pods[i]
	delete(d.pods, i)
	d.crowd.during("the pod on " + m.name + " ends")
	d.terminate(p)
	for _, o := range d.all {
		if o.policy == ownNodes {
			d.wantBackends(o, d.nodes(), []int{i})
		}
	}
	d.unused(p)
	d.finish(p)
	d.crowd.rounds(rounds)
	d.crowd.noneLost()

	d.crowd.during(m.name + " leaves the balancers")
	d.patchNode(i, patch)
	d.settle() // every client has used other connections since
	d.crowd.during(m.name + " ends")
	if err := d.Nodes.SetReady(false, m.name); err != nil { // as a kubelet that is shut down says
		d.t.Fatal(err)
	}
	d.until(m.name+" is not ready", func() (bool, string) {
		i := slices.IndexFunc(d.node(i).Status.Conditions, func(c v1.NodeCondition) bool {
			return c.Type == v1.NodeReady && c.Status != v1.ConditionTrue
		})
		return i >= 0, "ready"
	})
	if err := d.Nodes.Halt(m.name); err != nil {
		d.t.Fatal(err)
	}
	d.shutDown(m)
	if err := d.Region.Foreign().TerminateInstance(testbed.InstanceID(i)); err != nil {
		d.t.Fatal(err)
	}
	d.until("the Node of "+m.name+" is gone", func() (bool, string) {
		_, err := d.Cluster.Client().CoreV1().Nodes().Get(d.ctx, m.name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	d.settle()
}

func (d *drive) machine(i int) *machine {
	for _, m := range d.machines {
		if m != nil && m.index == i {
			return m
		}
	}
	d.t.Fatalf("node %d has no machine", i)
	return nil
}

// unused waits until a terminating pod has got no request and had no connection while every client did some rounds.
func (d *drive) unused(p *pod) {
	d.t.Helper()
	last := podStats{Requests: -1}
	d.until(p.name+" is asked no more", func() (bool, string) {
		d.crowd.rounds(rounds / 4)
		now, err := d.stats(p)
		if err != nil {
			d.t.Fatal(err)
		}
		done := now.Requests == last.Requests && now.Open == 0
		last = now
		return done, fmt.Sprintf("%+v", now)
	})
}
