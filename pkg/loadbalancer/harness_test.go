// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:debug rsa1024min=0

package loadbalancer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

const (
	prefixLB     = "service.beta.kubernetes.io/oci-load-balancer-"
	prefixCommon = "oci.oraclecloud.com/"
	prefixNLB    = "oci-network-load-balancer.oraclecloud.com/"
	clusterID    = "cluster-1"
	finalizer    = "service.kubernetes.io/load-balancer-cleanup"
)

// rig is a simulated region, a cluster with Services and nodes, and a manager between them.
type rig struct {
	*testing.T
	region *ocisim.Region

	compartment, other                     string
	public, private, dual, adFirst, adNext string
	groups                                 []string

	cluster  *cluster
	accounts *accounts
	secrets  *secrets
	nodesNow []*v1.Node // what the manager's Nodes returns, if not nil
	cfg      loadbalancer.Config
	m        *loadbalancer.Manager
	ruled    *ruled // nil: no security rules are managed
}

// simulate runs a test on virtual time.
func simulate(t *testing.T, o ocisim.Options, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newRig(t, o)) })
}

// onBothKinds runs a test for load balancers and for network load balancers.
func onBothKinds(t *testing.T, o ocisim.Options, test func(r *rig, kind oci.BalancerKind)) {
	t.Helper()
	for _, kind := range []oci.BalancerKind{oci.KindLB, oci.KindNLB} {
		t.Run(string(kind), func(t *testing.T) {
			simulate(t, o, func(r *rig) { test(r, kind) })
		})
	}
}

func newRig(t *testing.T, o ocisim.Options) *rig {
	t.Helper()
	region := ocisim.New(o)
	r := &rig{T: t, region: region}
	r.compartment = region.AddCompartment(ocisim.Compartment{Name: "cluster"})
	r.other = region.AddCompartment(ocisim.Compartment{Name: "other"})
	vcn := region.AddVCN(ocisim.VCN{Compartment: r.compartment, IPv6CIDRs: []string{"fd00:10::/56"}})
	ads := region.Options().AvailabilityDomains
	r.public = region.AddSubnet(ocisim.Subnet{VCN: vcn, Name: "public", CIDR: "10.0.0.0/24"})
	r.private = region.AddSubnet(ocisim.Subnet{VCN: vcn, Name: "private", CIDR: "10.0.1.0/24", Private: true})
	r.dual = region.AddSubnet(ocisim.Subnet{VCN: vcn, Name: "dual", CIDR: "10.0.2.0/24", IPv6CIDR: "fd00:10::/64"})
	r.adFirst = region.AddSubnet(ocisim.Subnet{VCN: vcn, Name: "ad1", CIDR: "10.0.3.0/24", AvailabilityDomain: ads[0]})
	r.adNext = region.AddSubnet(ocisim.Subnet{VCN: vcn, Name: "ad2", CIDR: "10.0.4.0/24", AvailabilityDomain: ads[1]})
	for i := range 6 {
		r.groups = append(r.groups, region.AddSecurityGroup(ocisim.SecurityGroup{VCN: vcn, Name: fmt.Sprintf("group-%d", i)}))
	}
	r.accounts = &accounts{rig: r, byName: map[string]*loadbalancer.Identity{}}
	r.cluster = &cluster{t: t, services: map[types.UID]*v1.Service{}}
	r.secrets = newSecrets()
	r.cfg = loadbalancer.Config{ClusterID: clusterID, CompartmentID: r.compartment, Subnet1: r.public}
	r.restart()
	return r
}

// restart replaces the manager by a new process's. What the old one was doing goes on until its context ends.
func (r *rig) restart() { r.m = r.newManager(r.region.Transport()) }

// newManager returns a manager of a process of its own.
func (r *rig) newManager(transport http.RoundTripper) *loadbalancer.Manager {
	r.Helper()
	client := r.connect(transport)
	var nodes func(context.Context) ([]*v1.Node, error)
	if r.nodesNow != nil {
		nodes = func(context.Context) ([]*v1.Node, error) { return r.nodesNow, nil }
	}
	deps := loadbalancer.Deps{
		Nodes:      nodes,
		LB:         client.LoadBalancers(),
		NLB:        client.NetworkLoadBalancers(),
		Subnets:    client.Network(),
		PublicIPs:  client.Network(),
		Events:     r.cluster.event,
		Records:    r.cluster,
		Conditions: r.cluster,
		Identities: r.accounts,
		Fresh:      r.cluster.fresh,
		Secret:     r.secrets.read,
		Gone:       r.gone,
	}
	if r.ruled != nil {
		deps.Firewall = r.ruled.firewall(client)
	}
	return loadbalancer.New(r.cfg, deps)
}

func (r *rig) connect(transport http.RoundTripper) *oci.Client {
	r.Helper()
	return r.connectAs("ocid1.user.oc1..ccm", transport)
}

func (r *rig) connectAs(user string, transport http.RoundTripper) *oci.Client {
	r.Helper()
	principal, err := oci.UserPrincipal(oci.UserCredentials{
		Tenancy: r.region.Options().Tenancy, User: user, Region: r.region.Options().Region,
		Fingerprint: "20:3b:97:13:55:1c:aa:66:41:41:4b:7c:7c:ef:2e:42", PrivateKey: pki.SigningKeyPEM(),
	})
	if err != nil {
		r.Fatal(err)
	}
	client, err := oci.New(oci.Options{Provider: principal, Transport: transport, Limits: oci.RateLimits{Disabled: true}})
	if err != nil {
		r.Fatal(err)
	}
	return client
}

// gone knows instances that the region shows as terminated.
func (r *rig) gone(id string) bool {
	i, ok := r.region.Instance(id)
	return ok && i.LifecycleState == "TERMINATED"
}

// node adds an instance and returns its Node.
func (r *rig) node(name string) *v1.Node {
	r.Helper()
	id := r.region.AddInstance(ocisim.Instance{
		Compartment: r.compartment, Name: name,
		VNIC: ocisim.VNIC{Subnet: "dual", IPv6: []string{ocisim.Auto}},
	})
	vnic := r.region.InstanceVNICs(id)[0]
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Spec:       v1.NodeSpec{ProviderID: "oci://" + id},
		Status: v1.NodeStatus{Addresses: []v1.NodeAddress{
			{Type: v1.NodeInternalIP, Address: *vnic.PrivateIp},
			{Type: v1.NodeInternalIP, Address: vnic.Ipv6Addresses[0]},
			{Type: v1.NodeHostName, Address: name},
		}},
	}
}

func (r *rig) nodes(n int) []*v1.Node {
	r.Helper()
	var out []*v1.Node
	for i := range n {
		out = append(out, r.node(fmt.Sprintf("node-%d", i+1)))
	}
	return out
}

// service adds a Service with one TCP port for each number; the node port is 30000 more.
func (r *rig) service(name string, kind oci.BalancerKind, ports ...int32) *v1.Service {
	return r.serviceUID(name, types.UID("uid-"+name), kind, ports...)
}

func (r *rig) serviceUID(name string, uid types.UID, kind oci.BalancerKind, ports ...int32) *v1.Service {
	svc := newService(name, kind, ports...)
	svc.UID = uid
	svc.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Second).Truncate(time.Second))
	r.cluster.put(svc)
	return svc
}

func newService(name string, kind oci.BalancerKind, ports ...int32) *v1.Service {
	svc := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Generation: 1, Finalizers: []string{finalizer},
			Annotations: map[string]string{prefixCommon + "load-balancer-type": string(kind)},
		},
		Spec: v1.ServiceSpec{
			Type: v1.ServiceTypeLoadBalancer, SessionAffinity: v1.ServiceAffinityNone,
			ExternalTrafficPolicy: v1.ServiceExternalTrafficPolicyCluster, IPFamilies: []v1.IPFamily{v1.IPv4Protocol},
		},
	}
	for _, p := range ports {
		svc.Spec.Ports = append(svc.Spec.Ports, v1.ServicePort{
			Name: fmt.Sprintf("p%d", p), Protocol: v1.ProtocolTCP, Port: p, NodePort: 30000 + p%10000,
		})
	}
	return svc
}

// sync does what the service controller and the adapter around the manager do until the Service is synced: wait for what
// is pending, pause after a refusal. It gives up after the given time.
func (r *rig) sync(svc *v1.Service, nodes []*v1.Node, limit time.Duration) error {
	r.Helper()
	return drive(r.Context(), r.m, r.cluster, svc, nodes, limit)
}

func drive(ctx context.Context, m *loadbalancer.Manager, c *cluster, svc *v1.Service, nodes []*v1.Node, limit time.Duration) error {
	end := time.Now().Add(limit)
	for {
		status, err := m.Ensure(ctx, c.get(svc.UID), nodes)
		if err == nil {
			c.setStatus(svc.UID, status)
			return nil
		}
		if !time.Now().Before(end) || errors.Is(err, loadbalancer.ErrServiceGone) {
			return err
		}
		var pending *loadbalancer.Pending
		var refusal *loadbalancer.Refusal
		switch {
		case errors.As(err, &pending):
			waitCtx, cancel := context.WithDeadline(ctx, end)
			waitErr := pending.Wait(waitCtx)
			cancel()
			if waitErr != nil && ctx.Err() != nil {
				return err
			}
		case errors.As(err, &refusal) && refusal.RetryAfter > 0:
			time.Sleep(min(refusal.RetryAfter, time.Until(end)))
		default:
			return err
		}
	}
}

// mustSync syncs a Service within ten minutes.
func (r *rig) mustSync(svc *v1.Service, nodes []*v1.Node) *v1.Service {
	r.Helper()
	if err := r.sync(svc, nodes, 10*time.Minute); err != nil {
		r.Fatalf("sync of %s: %v", svc.Name, err)
	}
	return r.cluster.get(svc.UID)
}

// updateBackends does what the service controller and the adapter do after a change of nodes.
func (r *rig) updateBackends(svc *v1.Service, nodes []*v1.Node) error {
	r.Helper()
	for {
		err := r.m.UpdateBackends(r.Context(), r.cluster.get(svc.UID), nodes)
		var pending *loadbalancer.Pending
		if !errors.As(err, &pending) {
			return err
		}
		if err := pending.Wait(r.Context()); err != nil {
			return err
		}
	}
}

func (r *rig) mustUpdateBackends(svc *v1.Service, nodes []*v1.Node) {
	r.Helper()
	if err := r.updateBackends(svc, nodes); err != nil {
		r.Fatalf("update the backends of %s: %v", svc.Name, err)
	}
}

// unchanged syncs once more and fails on any write.
func (r *rig) unchanged(svc *v1.Service, nodes []*v1.Node) {
	r.Helper()
	r.region.ResetCalls()
	r.mustSync(svc, nodes)
	for _, c := range r.region.Calls() {
		if c.Write {
			r.Errorf("a second sync wrote: %s %s", c.Operation, c.Path)
		}
	}
	if n := len(r.region.Calls()); n > 1 {
		r.Errorf("a second sync took %d calls, want one read: %v", n, operations(r.region.Calls()))
	}
}

// interrupted begins a sync and ends its process, so to speak, after the given time.
func (r *rig) interrupted(after time.Duration, svc *v1.Service, nodes []*v1.Node) {
	r.Helper()
	ctx, kill := context.WithCancel(r.Context())
	defer time.AfterFunc(after, kill).Stop()
	if _, err := r.m.Ensure(ctx, r.cluster.get(svc.UID), nodes); err == nil {
		r.Fatal("the sync was through before it could be interrupted")
	}
}

// edit changes a Service as its user would.
func (r *rig) edit(svc *v1.Service, change func(*v1.Service)) {
	r.cluster.mu.Lock()
	defer r.cluster.mu.Unlock()
	s := r.cluster.services[svc.UID]
	change(s)
	s.Generation++
}

func annotate(key, value string) func(*v1.Service) {
	return func(s *v1.Service) { s.Annotations[key] = value }
}

func (r *rig) equal(what string, got, want any) {
	r.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.Errorf("%s: got %v, want %v", what, got, want)
	}
}
