// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// C053: keys that do not exist are named, each once however often the Service is synced, together with one that does, and nothing
// else comes of them; what is under somebody else's prefix is nobody's business; values are taken in any case.
func TestUnknownAnnotationsAreToldOnce(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 121}, func(r *rig, kind oci.BalancerKind) {
		unknown := map[string]string{
			prefixLB + "enable-proxy-protocol":    "connection-proxy-protocol-version",
			prefixCommon + "health-checks-port":   "health-check-",
			prefixNLB + "oci-load-balancer-shape": "shape",
		}
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		internal := prefixLB + "internal"
		if kind == oci.KindNLB {
			internal = prefixNLB + "internal"
		}
		r.edit(svc, func(s *v1.Service) {
			for key := range unknown {
				s.Annotations[key] = "1"
			}
			s.Annotations["service.beta.kubernetes.io/aws-load-balancer-internal"] = "yes"
			s.Annotations[internal] = "TRUE"
			s.Annotations[listModeOf(kind)] = "none"
		})
		for range 10 {
			svc = r.mustSync(svc, nodes)
		}
		r.equal("private", r.only().Private, true)
		all := r.cluster.series(loadbalancer.ReasonUnknownAnnotation)
		if len(all) != len(unknown) || len(r.cluster.events) != len(unknown) {
			r.Fatalf("events %v, want one for each of %d keys", r.cluster.events, len(unknown))
		}
		for key, known := range unknown {
			found := 0
			for _, e := range all {
				_, proposal, _ := strings.Cut(e.Message, "did you mean")
				if strings.Contains(e.Message, "annotation "+key+" ") && strings.Contains(proposal, known) {
					found += e.count
				}
			}
			r.equal("events about "+key, found, 1)
		}
		r.equal("condition", r.cluster.condition(svc.UID), "True Synced")
	})
}

// C052: groups under the prefix of the other kind are not sent, and an event says which key to use; more groups than a balancer can
// be in are refused before anything is made.
func TestGroupsUnderTheWrongPrefix(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 122}, func(r *rig, kind oci.BalancerKind) {
		right, wrong := prefixCommon+"oci-network-security-groups", prefixNLB+"oci-network-security-groups"
		if kind == oci.KindNLB {
			right, wrong = wrong, right
		}
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		r.edit(svc, annotate(wrong, r.groups[0]))
		svc = r.mustSync(svc, nodes)
		r.oneSeries(loadbalancer.ReasonAnnotationIgnored, wrong, "use "+right)
		r.equal("groups", len(r.only().NSGIDs), 0)
		if err := r.m.Delete(r.Context(), svc); err != nil {
			r.Fatal(err)
		}

		r.cluster.events = nil
		r.region.ResetCalls()
		many := r.service("many", kind, 80)
		r.edit(many, annotate(right, strings.Join(r.groups, ",")))
		r.refused(many, nodes, loadbalancer.ReasonInvalidAnnotation)
		r.oneSeries(loadbalancer.ReasonInvalidAnnotation, right, "6 groups", "at most 5")
		r.equal("writes", written(r.region.Calls()), []string{})
		r.edit(many, annotate(right, r.groups[1]+" ,, "+r.groups[0]+", "+r.groups[1]))
		r.mustSync(many, nodes)
		r.equal("groups", len(r.only().NSGIDs), 2)
	})
}

// Which shapes there are only the API knows: one that there is not is an event, and no balancer; on a live balancer it costs
// nothing but that event.
func TestUnknownShape(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 123, Durations: fixed(0)}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 80)
		r.edit(svc, annotate(prefixLB+"shape", "9Gbps"))
		r.refused(svc, nodes, loadbalancer.ReasonCloudError)
		r.oneSeries(loadbalancer.ReasonCloudError, "CreateLoadBalancer", "400", "9Gbps", "opc-request-id")
		r.equal("balancers", len(r.live()), 0)
		r.edit(svc, annotate(prefixLB+"shape", "100Mbps"))
		r.mustSync(svc, nodes)
		r.cluster.events = nil

		r.edit(svc, annotate(prefixLB+"shape", "9Gbps"))
		r.edit(svc, annotate(prefixLB+"health-check-retries", "5"))
		r.refused(svc, nodes, loadbalancer.ReasonCloudError)
		r.oneSeries(loadbalancer.ReasonCloudError, "UpdateLoadBalancerShape", "9Gbps")
		b := r.only()
		r.equal("shape", b.Shape.Name, "100Mbps")
		r.equal("retries", b.BackendSets["TCP-80"].Checker.Retries, 5)
		if !r.drop(r.Context(), r.condemn(svc)) {
			r.Error("not deleted")
		}
	})
}
