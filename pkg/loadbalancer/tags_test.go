// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	nlbsdk "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func freeformKey(kind oci.BalancerKind) string {
	if kind == oci.KindNLB {
		return prefixNLB + "initial-freeform-tags-override"
	}
	return prefixCommon + "initial-freeform-tags-override"
}

// C056: tags are those of the creation. Edits in OCI stay, and neither nodes, nor other tags in the annotation, nor its end touch
// them.
func TestTagsAreThoseOfTheCreation(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 124}, func(r *rig, kind oci.BalancerKind) {
		r.cfg.Tags = oci.Tags{Freeform: map[string]string{"from": "config"}}
		r.restart()
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		r.edit(svc, annotate(freeformKey(kind), `{"team":"a","cost":"1"}`))
		r.mustSync(svc, nodes)
		want := map[string]string{"team": "a", "cost": "1", loadbalancer.TagOwner: "uid-web", loadbalancer.TagCluster: clusterID}
		r.equal("tags after the creation", r.only().Freeform, want)
		nodes = append(nodes, r.node("node-2"))
		r.mustUpdateBackends(svc, nodes)
		r.mustSync(svc, nodes)
		r.equal("tags after a new node", r.only().Freeform, want)

		delete(want, "cost")
		want["team"], want["by"] = "b", "hand"
		edit := func(tags *map[string]string) { *tags = maps.Clone(want) }
		parts := &partsOf{r, r.only().ID}
		parts.change(func(v *lbsdk.LoadBalancer) { edit(&v.FreeformTags) }, func(v *nlbsdk.NetworkLoadBalancer) { edit(&v.FreeformTags) })
		for what, change := range map[string]func(*v1.Service){
			"other tags in the annotation": annotate(freeformKey(kind), `{"team":"c"}`),
			"another port":                 func(s *v1.Service) { s.Spec.Ports[0].NodePort++ },
			"the annotation is removed":    func(s *v1.Service) { delete(s.Annotations, freeformKey(kind)) },
		} {
			r.edit(svc, change)
			r.mustSync(svc, nodes)
			r.equal("tags: "+what, r.only().Freeform, want)
			r.unchanged(svc, nodes)
		}
		r.noEvents()
	})
}

// C056: tags that cannot be are told, and no balancer is made: what is no JSON before any call, what only the API knows with its
// answer.
func TestTagsThatCannotBe(t *testing.T) {
	seventy := map[string]string{}
	for i := range 70 {
		seventy[fmt.Sprintf("key-%d", i)] = "value"
	}
	many, err := json.Marshal(seventy)
	if err != nil {
		t.Fatal(err)
	}
	onBothKinds(t, ocisim.Options{Seed: 125}, func(r *rig, kind oci.BalancerKind) {
		defined := strings.Replace(freeformKey(kind), "freeform", "defined", 1)
		nodes := r.nodes(1)
		for name, test := range map[string]struct{ key, value, reason, text string }{
			"no JSON":           {freeformKey(kind), "team=a", loadbalancer.ReasonInvalidAnnotation, "JSON"},
			"a number":          {freeformKey(kind), `{"n.s":1}`, loadbalancer.ReasonInvalidAnnotation, "JSON"},
			"a dot":             {freeformKey(kind), `{"n.s":"1"}`, loadbalancer.ReasonCloudError, "n.s"},
			"seventy":           {freeformKey(kind), string(many), loadbalancer.ReasonCloudError, "tags"},
			"unknown namespace": {defined, `{"nowhere":{"a":"b"}}`, loadbalancer.ReasonCloudError, "nowhere"},
		} {
			r.cluster.events = nil
			r.region.ResetCalls()
			svc := r.service("web-"+strings.ReplaceAll(name, " ", ""), kind, 80)
			r.edit(svc, annotate(test.key, test.value))
			r.refused(svc, nodes, test.reason)
			r.oneSeries(test.reason, test.text)
			r.equal(name+": balancers", len(r.live()), 0)
			if test.reason == loadbalancer.ReasonInvalidAnnotation {
				r.equal(name+": writes", written(r.region.Calls()), []string{})
			}
		}
	})
}

// C057: whatever characters the identity of a cluster has, marks and rules are legal, are found again by the next process, and are
// told from those of a cluster whose identity begins with the same text.
func TestIdentitiesOfClusters(t *testing.T) {
	for name, identity := range map[string]string{
		"slash and dot": "prod.eu/1", "umlaut": "ü", "blank within": "prod eu", "long": strings.Repeat("a", 120), "longest": strings.Repeat("é", 256),
	} {
		t.Run(name, func(t *testing.T) {
			withRulesOnBoth(t, ocisim.Options{Seed: 126}, func(r *rig, kind oci.BalancerKind) {
				nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
				r.ruled.identity = identity
				r.cfg.ClusterID = identity
				r.restart()
				svc := r.service("web", kind, 80)
				r.edit(svc, annotate(ruleMode, "SL-All"))
				svc = r.mustSync(svc, nodes)
				r.equal("mark", r.only().Freeform[loadbalancer.TagCluster], identity)
				r.equal("rules", len(r.added(r.ruled.workList)), 2)

				// Another cluster, which has the same Service, as after a restore of its backup.
				r.ruled.identity = identity[:len(identity)-1]
				if name == "umlaut" || name == "longest" {
					r.ruled.identity = "other"
				}
				r.cfg.ClusterID = r.ruled.identity
				r.restart()
				r.edit(svc, func(s *v1.Service) { delete(s.Annotations, loadbalancer.AnnotationOCID) })
				twin := r.mustSync(svc, nodes)
				r.equal("balancers", len(r.live()), 2)
				r.equal("rules of both", len(r.added(r.ruled.workList)), 4)
				r.remove(twin)
				r.equal("balancers", len(r.live()), 1)
				r.equal("rules of the first", len(r.added(r.ruled.workList)), 2)

				// The first one again, in a new process.
				r.ruled.identity, r.cfg.ClusterID = identity, identity
				r.cluster.put(svc)
				r.restart()
				svc = r.mustSync(svc, nodes)
				r.equal("balancers", len(r.live()), 1)
				r.unchanged(svc, nodes)
				r.remove(svc)
				r.equal("balancers", len(r.live()), 0)
				r.asAtStart()
			})
		})
	}
}
