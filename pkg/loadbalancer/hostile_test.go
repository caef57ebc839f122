// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	nlbsdk "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Optional fields are missing from answers by chance: nothing is lost, and nothing of ours is deleted for it.
func TestMissingFields(t *testing.T) {
	for seed := range uint64(3) {
		onBothKinds(t, ocisim.Options{Seed: 50 + seed, DropOptional: 0.3}, func(r *rig, kind oci.BalancerKind) {
			r.cfg.Subnet1 = r.dual
			r.restart()
			nodes := r.nodes(3)
			svc := r.service("web", kind, 80, 443)
			if kind == oci.KindNLB {
				r.edit(svc, func(s *v1.Service) {
					s.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
					s.Annotations[prefixNLB+"internal"] = "true"
				})
			}
			r.mustSync(svc, nodes)
			for range 3 {
				r.restart()
				r.mustSync(svc, nodes)
			}
			nodes = append(nodes, r.node("node-4"))
			r.mustUpdateBackends(svc, nodes)
			if n := r.count("DeleteListener") + r.count("DeleteBackendSet"); n > 0 {
				r.Errorf("%d listeners and backend sets were deleted", n)
			}
			r.equal("creates", r.count(creation(kind)), 1)
			if err := r.m.Delete(r.Context(), svc); err != nil {
				r.Error(err)
			}
			r.equal("deletions", r.count(deletion(kind)), 1)
		})
	}
}

// A service that throttles slows things down, and that is all.
func TestThrottled(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 53, Read: ocisim.Rate{PerSecond: 10, Burst: 5}, Write: ocisim.Rate{PerSecond: 3, Burst: 2}}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(2)
		var group sync.WaitGroup
		for i := range 15 {
			svc := r.service(fmt.Sprintf("web-%d", i), kind, 80)
			group.Go(func() {
				if err := r.sync(svc, nodes, 20*time.Minute); err != nil {
					r.Error(err)
				}
			})
		}
		group.Wait()
		counts := map[int]int{}
		for _, c := range r.region.Calls() {
			counts[c.Status]++
		}
		if counts[429] == 0 {
			r.Error("nothing was throttled: the test did not meet its case")
		}
		r.noEvents()
		created := map[string]bool{}
		for _, c := range r.region.Calls() {
			if c.Operation == creation(kind) && c.Created != "" {
				created[c.Created] = true
			}
		}
		r.equal("balancers", len(created), 15)
	})
}

// C057: two clusters in one compartment, one a clone of the other with the same UIDs, keep out of each other's way.
func TestTwoClusters(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 54}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.mustSync(r.service("web", kind, 80), nodes)
		first := r.only()

		original, clone := r.m, &cluster{t: r.T, services: map[types.UID]*v1.Service{}}
		r.cluster, r.cfg.ClusterID = clone, "prod.eu/1 ü"
		copied := svc.DeepCopy() // with the record of the other cluster's balancer
		clone.put(copied)
		r.restart()
		r.mustSync(copied, nodes)
		r.equal("balancers", len(r.live()), 2)
		_, exists, err := r.m.Exists(r.Context(), clone.get(copied.UID))
		if !exists || err != nil {
			r.Errorf("clone: exists %t, %v", exists, err)
		}
		if err := r.m.Delete(r.Context(), clone.get(copied.UID)); err != nil {
			r.Error(err)
		}
		r.equal("what is left", r.only().ID, first.ID)
		if err := original.Delete(r.Context(), svc); err != nil {
			r.Error(err)
		}
		r.equal("balancers", len(r.live()), 0)
	})
}

// A Node that outlived its machine has the address of a new one: one backend, of the new machine.
func TestNodesWithOneAddress(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 55}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(2)
		stale := nodes[0].DeepCopy()
		stale.Name = "z-stale"
		stale.Spec.ProviderID = "oci://ocid1.instance.oc1.iad.old"
		nodes[0].CreationTimestamp = metav1.Now()
		svc := r.service("web", kind, 80)
		r.mustSync(svc, append(nodes, stale))
		r.equal("backends", r.backends("TCP-80"), addressesOf(nodes...))
		r.oneSeries(loadbalancer.ReasonNodesSkipped, "z-stale: node node-1 has the same address")
		if kind == oci.KindNLB {
			for _, b := range r.only().BackendSets["TCP-80"].Backends {
				if strings.HasSuffix(b.TargetID, ".old") {
					r.Error("the backend is the old machine")
				}
			}
		}
	})
}

// A balancer of the existing implementation whose creation failed is replaced: it never served.
func TestLegacyFailedBalancer(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 56}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 80)
		id := r.legacyBalancer(svc, oci.KindLB)
		r.setState(id, "FAILED")
		r.mustSync(svc, nodes)
		if b := r.only(); b.ID == id || b.State != "ACTIVE" {
			r.Errorf("balancer %s is %s", b.ID, b.State)
		}
		r.oneSeries(loadbalancer.ReasonBalancerFailed, id)
	})
}

// A bad annotation stops changes by the Service, but its backends follow the nodes.
func TestNodesFollowInSpiteOfBadAnnotations(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 57}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		r.mustSync(svc, nodes)
		r.edit(svc, func(s *v1.Service) {
			s.Annotations[prefixLB+"shape-flex-min"] = "5"
			s.Annotations[prefixNLB+"backend-policy"] = "FASTEST"
			s.Annotations[prefixCommon+"load-balancer-type"] = "classic"
			s.Spec.SessionAffinity = v1.ServiceAffinityClientIP
		})
		nodes = append(nodes, r.node("node-2"))
		r.mustUpdateBackends(svc, nodes)
		r.equal("backends", r.backends("TCP-80"), addressesOf(nodes...))
		var refusal *loadbalancer.Refusal
		if _, err := r.m.Ensure(r.Context(), svc, nodes); !errors.As(err, &refusal) {
			r.Errorf("ensure: %v, want a refusal", err)
		}
	})
}

// A compartment that does not exist, named after the balancer was made, does not stop the deletion.
func TestDeleteWithWrongCompartment(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 58}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		r.mustSync(svc, nodes)
		r.edit(svc, annotate(prefixCommon+"compartment-id", "ocid1.compartment.oc1..nowhere"))
		r.mustSync(svc, nodes)
		r.oneSeries(loadbalancer.ReasonImmutable, "nowhere")
		r.restart()
		if !r.drop(r.Context(), r.condemn(svc)) {
			r.Error("not deleted")
		}
		r.equal("balancers", len(r.live()), 0)
	})
}

// C034, C161: the same failure is one event, counted, whatever the request IDs are; the returned error is as stable.
func TestFailuresAggregate(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 59}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		r.region.Fault(ocisim.Fault{Operation: creation(kind), Status: 400, Code: "RelatedResourceNotAuthorizedOrNotFound", Message: "no such subnet"})
		texts := map[string]bool{}
		var pauses []time.Duration
		for range 9 {
			_, err := r.m.Ensure(r.Context(), svc, nodes)
			var refusal *loadbalancer.Refusal
			if !errors.As(err, &refusal) {
				r.Fatalf("got %v, want a refusal", err)
			}
			texts[err.Error()] = true
			pauses = append(pauses, refusal.RetryAfter)
			time.Sleep(refusal.RetryAfter)
		}
		r.equal("texts of errors", len(texts), 1)
		r.equal("back-off", pauses, "[5s 10s 20s 40s 1m20s 2m40s 5m0s 5m0s 5m0s]")
		series := r.oneSeries(loadbalancer.ReasonCloudError, "create the balancer", "400 RelatedResourceNotAuthorizedOrNotFound", "no such subnet", "opc-request-id", "use virtual-network-family")
		r.equal("count", series.count, 9)
		r.equal("conditions written", r.cluster.conditions, 1)
	})
}

// Somebody removes, or makes, just what is about to be changed, between our read and our write.
func TestForeignHandOnTheSameObject(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing runs at the same time in it: in make test-long")
	}
	tests := map[string]func(p *partsOf){
		"listener removed":      func(p *partsOf) { p.removeListener("TCP-80") },
		"backend set removed":   func(p *partsOf) { p.removeListener("TCP-80"); p.removeSet("TCP-80") },
		"new listener is there": func(p *partsOf) { p.copyListener("TCP-80", "TCP-81", 81) },
		"old port is gone":      func(p *partsOf) { p.removeListener("TCP-82"); p.removeSet("TCP-82") },
	}
	for name, meddle := range tests {
		t.Run(name, func(t *testing.T) {
			onBothKinds(t, ocisim.Options{Seed: 60}, func(r *rig, kind oci.BalancerKind) {
				nodes := r.nodes(1)
				svc := r.service("web", kind, 80, 82)
				r.mustSync(svc, nodes)
				id, done := r.only().ID, false
				r.edit(svc, func(s *v1.Service) {
					s.Spec.Ports = newService("x", kind, 80, 81).Spec.Ports
					s.Spec.Ports[0].NodePort = 31234
				})
				r.region.OnCall(func(c ocisim.Call) {
					if !done && c.Method == http.MethodGet && c.Resource == id {
						done = true
						meddle(&partsOf{r, id})
					}
				})
				r.mustSync(svc, nodes)
				b := r.only()
				var ports []int
				for _, l := range b.Listeners {
					ports = append(ports, l.Port)
					r.equal("backend port of "+l.Name, b.BackendSets[l.BackendSetName].Backends[0].Port, map[int]int{80: 31234, 81: 30081}[l.Port])
				}
				slices.Sort(ports)
				r.equal("ports", ports, []int{80, 81})
				r.equal("backend sets", len(b.BackendSets), 2)
				r.unchanged(svc, nodes)
			})
		})
	}
}

// partsOf changes parts of a balancer of either kind as a person would.
type partsOf struct {
	r  *rig
	id string
}

func (p *partsOf) change(lb func(*lbsdk.LoadBalancer), nlb func(*nlbsdk.NetworkLoadBalancer)) {
	err := p.r.region.Foreign().LoadBalancer(p.id, lb)
	if err != nil {
		err = p.r.region.Foreign().NetworkLoadBalancer(p.id, nlb)
	}
	if err != nil {
		p.r.Error(err)
	}
}

func (p *partsOf) removeListener(name string) {
	p.change(func(v *lbsdk.LoadBalancer) { delete(v.Listeners, name) }, func(v *nlbsdk.NetworkLoadBalancer) { delete(v.Listeners, name) })
}

func (p *partsOf) removeSet(name string) {
	p.change(func(v *lbsdk.LoadBalancer) { delete(v.BackendSets, name) }, func(v *nlbsdk.NetworkLoadBalancer) { delete(v.BackendSets, name) })
}

func (p *partsOf) copyListener(from, to string, port int) {
	p.change(func(v *lbsdk.LoadBalancer) {
		l := v.Listeners[from]
		l.Name, l.Port = &to, &port
		v.Listeners[to] = l
	}, func(v *nlbsdk.NetworkLoadBalancer) {
		l := v.Listeners[from]
		l.Name, l.Port = &to, &port
		v.Listeners[to] = l
	})
}

// The token of a balancer that was made and deleted before is not accepted any more: after a while, in which nothing
// shows up, another one is taken.
func TestBurntRetryToken(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 61}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.mustSync(r.service("web", kind, 80), nodes)
		if err := r.m.Delete(r.Context(), svc); err != nil {
			r.Fatal(err)
		}
		r.edit(svc, func(s *v1.Service) { // as when its type was something else meanwhile
			delete(s.Annotations, loadbalancer.AnnotationOCID)
			delete(s.Annotations, loadbalancer.AnnotationLastApplied)
			s.Status = v1.ServiceStatus{}
		})
		began := time.Now()
		r.mustSync(svc, nodes)
		r.only()
		r.equal("creates", r.count(creation(kind)), 3)
		if took := time.Since(began); took < 30*time.Second {
			r.Errorf("the second token was taken after %v", took)
		}
		r.noEvents()
	})
}

// The work request of a deletion cannot be read: the balancer itself shows the end.
func TestDeletionWithoutWorkRequest(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 62}, func(r *rig, kind oci.BalancerKind) {
		svc := r.mustSync(r.service("web", kind, 80), r.nodes(1))
		r.region.Deny(ocisim.Policy{Operation: "GetWorkRequest"})
		if !r.drop(r.Context(), r.condemn(svc)) {
			r.Error("not deleted")
		}
		r.equal("balancers", len(r.live()), 0)
	})
}

// Of two balancers the one whose address clients know stays in use.
func TestBalancerInStatusIsUsed(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 63}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		r.legacyBalancer(svc, kind)
		time.Sleep(time.Hour)
		younger := r.legacyBalancer(svc, kind)
		r.edit(svc, func(s *v1.Service) {
			for _, b := range r.live() {
				for _, a := range b.Addresses {
					if b.ID == younger && a.Public {
						s.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: a.IP}}
					}
				}
			}
		})
		svc = r.mustSync(svc, nodes)
		r.equal("used", svc.Annotations[loadbalancer.AnnotationOCID], younger)
	})
}

// A listener that has TLS already may speak HTTP2 and GRPC; its TLS stays.
func TestGRPCOnAListenerWithTLS(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 64}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 443)
		r.edit(svc, annotate(prefixLB+"backend-protocol", "GRPC"))
		var refusal *loadbalancer.Refusal
		if _, err := r.m.Ensure(r.Context(), svc, nodes); !errors.As(err, &refusal) {
			r.Errorf("without TLS: %v, want a refusal", err)
		}
		r.cluster.events = nil
		id := r.legacyBalancer(svc, oci.KindLB)
		tls := lbsdk.SslConfiguration{CertificateName: common.String("web"), CipherSuiteName: common.String("own"), VerifyDepth: common.Int(0), VerifyPeerCertificate: common.Bool(false)}
		err := r.region.Foreign().LoadBalancer(id, func(v *lbsdk.LoadBalancer) {
			l := v.Listeners["TCP-443"]
			l.SslConfiguration = &tls
			v.Listeners["TCP-443"] = l
			v.Certificates = map[string]lbsdk.Certificate{"web": {CertificateName: common.String("web")}}
			v.SslCipherSuites = map[string]lbsdk.SslCipherSuite{"own": {Name: common.String("own"), Ciphers: []string{"ECDHE-RSA-AES128-GCM-SHA256"}}}
		})
		if err != nil {
			r.Fatal(err)
		}
		r.restart()
		r.mustSync(svc, nodes)
		l := r.only().Listeners["TCP-443"]
		r.equal("protocol", l.Protocol, "GRPC")
		if l.SSL == nil || l.SSL.CipherSuiteName != "own" {
			r.Errorf("TLS is %+v", l.SSL)
		}
		r.noEvents()
	})
}
