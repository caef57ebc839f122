// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/legacy"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// inherited is a Service that release v1.35 has looked after.
type inherited struct {
	name  string
	kind  oci.BalancerKind
	ports []string // "80", or "UDP 53"; by default 80 and 443
	local bool     // externalTrafficPolicy
	dual  bool     // of both address families
	set   []string // annotations, key and value in turn
	from  []string // spec.loadBalancerSourceRanges
	// since is what has happened since the release has last worked on it.
	since func(r *rig, id string, svc *v1.Service)

	writes []string // of the first pass
	events []string // reasons of events
}

// former is release v1.35 in the cluster of the rig.
func (r *rig) former(nodes []*v1.Node) *legacy.Release {
	r.Helper()
	o := r.region.Options()
	return &legacy.Release{
		Region: r.region, Compartment: r.compartment, VCN: r.ruled.vcn, Subnets: []string{r.ruled.front}, Nodes: nodes,
		Credentials: common.NewRawConfigurationProvider(o.Tenancy, "ocid1.user.oc1..former", o.Region, "20:3b:97:13:55:1c:aa:66:41:41:4b:7c:7c:ef:2e:43", pki.SigningKeyPEM(), nil),
		Services:    r.cluster.all,
		Secrets:     map[string]legacy.Secret{},
	}
}

// all are the Services of the cluster, by name.
func (c *cluster) all() []*v1.Service {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*v1.Service
	for _, svc := range c.services {
		out = append(out, svc.DeepCopy())
	}
	slices.SortFunc(out, func(a, b *v1.Service) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// declare makes a Service; its node ports are unique, as they are in a cluster.
func (r *rig) declare(i int, x inherited) *v1.Service {
	r.Helper()
	svc := r.service(x.name, x.kind)
	words := strings.NewReplacer("$backends", r.ruled.backends, "$group", r.groups[0], "$dual", r.dual, "$private", r.private, "$public", r.public)
	if len(x.ports) == 0 {
		x.ports = []string{"80", "443"}
	}
	r.edit(svc, func(s *v1.Service) {
		for key, value := range pairs(x.set) {
			s.Annotations[key] = words.Replace(value)
		}
		for _, text := range x.ports {
			protocol, number, both := strings.Cut(text, " ")
			if !both {
				protocol, number = "TCP", text
			}
			p := v1.ServicePort{Name: fmt.Sprintf("p%d", len(s.Spec.Ports)), Protocol: v1.Protocol(protocol), NodePort: int32(31000 + 10*i + len(s.Spec.Ports))}
			if _, err := fmt.Sscan(number, &p.Port); err != nil {
				r.Fatal(err)
			}
			for _, other := range s.Spec.Ports {
				if other.Port == p.Port {
					p.NodePort = other.NodePort
				}
			}
			s.Spec.Ports = append(s.Spec.Ports, p)
		}
		if x.local {
			s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, int32(31009+10*i)
		}
		if x.dual {
			policy := v1.IPFamilyPolicyPreferDualStack
			s.Spec.IPFamilies, s.Spec.IPFamilyPolicy = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}, &policy
		}
		s.Spec.LoadBalancerSourceRanges = x.from
	})
	for _, secret := range []string{"web-tls", "backends"} {
		r.secrets.put("shop", secret, r.secrets.pair(r.T, secret))
	}
	return r.cluster.get(svc.UID)
}

// inherit makes a Service and what release v1.35 makes of it.
func (r *rig) inherit(former *legacy.Release, i int, x inherited) *v1.Service {
	r.Helper()
	svc := r.declare(i, x)
	for _, secret := range []string{"web-tls", "backends"} { // what the Secrets hold
		pair := r.secrets.pair(r.T, secret)
		former.Secrets["shop/"+secret] = legacy.Secret{Certificate: pair.Certificate, Key: string(pair.Key)}
	}
	id, err := former.Make(r.Context(), r.cluster.get(svc.UID))
	if err != nil {
		r.Fatalf("%s: %v", x.name, err)
	}
	for _, b := range r.live() {
		if b.ID == id {
			status := &v1.LoadBalancerStatus{}
			for _, a := range b.Addresses { // private ones too
				status.Ingress = append(status.Ingress, v1.LoadBalancerIngress{IP: a.IP})
			}
			r.cluster.setStatus(svc.UID, status)
		}
	}
	if unfound := former.Unfound(r.cluster.get(svc.UID)); len(unfound) > 0 {
		r.Fatalf("%s: the model does not find what it has made: %v", x.name, unfound)
	}
	if x.since != nil {
		x.since(r, id, svc)
	}
	return r.cluster.get(svc.UID)
}

// pairs are the elements of a list by twos.
func pairs(list []string) map[string]string {
	out := map[string]string{}
	for pair := range slices.Chunk(list, 2) {
		out[pair[0]] = pair[1]
	}
	return out
}

// aged makes the Services older than the process, as they are at an upgrade.
func (r *rig) aged() {
	time.Sleep(time.Hour)
}

// balancerIDs are the balancers that there are, in a fixed order.
func (r *rig) balancerIDs() []string {
	r.Helper()
	var ids []string
	for _, b := range r.live() {
		ids = append(ids, b.ID)
	}
	slices.Sort(ids)
	return ids
}

// reasons are those of the events of a Service.
func (c *cluster) reasons(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, e := range c.events {
		if e.service == name {
			out = append(out, e.Reason)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// quiet runs the pass over all balancers, and fails if it finds something to do.
func (r *rig) quiet(nodes []*v1.Node) {
	r.Helper()
	r.region.ResetCalls()
	wanting, err := r.m.Audit(r.Context(), r.cluster.all(), nodes)
	if err != nil {
		r.Error(err)
	}
	if len(wanting) > 0 {
		r.Errorf("the pass over all balancers finds something to do for %v", wanting)
	}
	r.equal("writes of the pass over all balancers", written(r.region.Calls()), []string{})
}

// documentedWrites are the operations in the table of docs/upgrade.md about the first pass.
func documentedWrites(t *testing.T) []string {
	t.Helper()
	documented, err := legacy.FirstPassWrites("../../docs/upgrade.md")
	if err != nil {
		t.Fatal(err)
	}
	return documented
}
