// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// C061: a Service cannot be pointed at a balancer that somebody made by hand, in this VCN or in another one, nor can two Services be
// pointed at one: each gets its own, an event says so, and what was named is not written to, not even when the Service is deleted.
func TestNoTakeover(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 127}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		vcn := r.region.AddVCN(ocisim.VCN{Compartment: r.other, Name: "theirs", CIDRs: []string{"10.7.0.0/16"}})
		theirs := r.region.AddSubnet(ocisim.Subnet{VCN: vcn, Name: "theirs", CIDR: "10.7.0.0/24"})
		here, there := newService("by-hand", kind, 80), newService("elsewhere", kind, 80)
		ids := []string{r.legacyBalancer(here, kind)}
		public := r.public
		r.public = theirs
		ids = append(ids, r.legacyBalancer(there, kind))
		r.public = public
		for _, id := range ids {
			r.rename(id, "made by hand")
		}
		etags := []string{r.region.ETag(ids[0]), r.region.ETag(ids[1])}

		var services []*v1.Service
		for i, id := range []string{ids[0], ids[1], ids[0]} {
			svc := r.service(fmt.Sprintf("web-%d", i), kind, []int32{80, 443, 80}[i])
			r.edit(svc, annotate(loadbalancer.AnnotationOCID, id))
			svc = r.mustSync(svc, nodes)
			if used := svc.Annotations[loadbalancer.AnnotationOCID]; used == id || used == "" {
				r.Errorf("%s uses %q", svc.Name, used)
			}
			services = append(services, svc)
		}
		r.equal("balancers", len(r.live()), 5)
		r.equal("events", len(r.cluster.series(loadbalancer.ReasonNotOurs)), 3)
		r.equal("all events", len(r.cluster.events), 3)
		for i, svc := range services {
			r.edit(svc, annotate(loadbalancer.AnnotationOCID, ids[i%2]))
			if !r.drop(r.Context(), r.condemn(svc)) {
				r.Errorf("%s is not deleted", svc.Name)
			}
		}
		r.equal("balancers in the end", len(r.live()), 2)
		for i, id := range ids {
			r.equal("version of what is not ours", r.region.ETag(id), etags[i])
		}
	})
}

// C033: a balancer that takes long does not hold up another Service; its own goes on when it is ready.
func TestSlowBalancerHoldsUpNobody(t *testing.T) {
	slow := ocisim.Range{Min: 90 * time.Second, Max: 90 * time.Second}
	quick := ocisim.Range{Min: time.Second, Max: time.Second}
	simulate(t, ocisim.Options{Seed: 128, Durations: map[string]ocisim.Range{"loadbalancer.create": slow, "networkloadbalancer.create": quick}}, func(r *rig) {
		nodes := r.nodes(1)
		first, second := r.service("slow", oci.KindLB, 80), r.service("quick", oci.KindNLB, 80)
		began := time.Now()
		r.interrupted(time.Second, first, nodes) // the process dies 1 s after the create
		r.restart()
		var pending *loadbalancer.Pending
		if _, err := r.m.Ensure(r.Context(), r.cluster.get(first.UID), nodes); !errors.As(err, &pending) {
			r.Fatalf("got %v, want Pending", err)
		}
		r.mustSync(second, nodes)
		if took := time.Since(began); took > time.Minute {
			r.Errorf("the second Service was ready after %v", took)
		}
		r.equal("creates of the first", r.count("CreateLoadBalancer"), 1)
		r.mustSync(first, nodes)
		r.equal("creates of the first", r.count("CreateLoadBalancer"), 1)
		r.noEvents()
	})
}

// C029: two entries that swap their ports, or their node ports, need no listener to be made or deleted, and no call is refused; one
// that is renamed needs no call at all.
func TestSwappedPorts(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 129, Durations: fixed(time.Second)}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(2)
		svc := r.service("web", kind, 80, 81)
		svc = r.mustSync(svc, nodes)
		ports := func() map[int]int {
			out := map[int]int{}
			for _, l := range r.only().Listeners {
				for _, b := range r.only().BackendSets[l.BackendSetName].Backends {
					out[l.Port] = b.Port
				}
			}
			return out
		}
		r.region.ResetCalls()
		swap := func(what string, change func(a, b *v1.ServicePort), want map[int]int) {
			r.Helper()
			before := svc
			r.edit(svc, func(s *v1.Service) { change(&s.Spec.Ports[0], &s.Spec.Ports[1]) })
			stop := r.watchTraffic(r.only().ID, before, r.cluster.get(svc.UID), nodes)
			svc = r.mustSync(svc, nodes)
			stop()
			r.equal(what, ports(), want)
		}
		swap("ports", func(a, b *v1.ServicePort) { a.Port, b.Port = b.Port, a.Port }, map[int]int{80: 30081, 81: 30080})
		swap("node ports", func(a, b *v1.ServicePort) { a.NodePort, b.NodePort = b.NodePort, a.NodePort }, map[int]int{80: 30080, 81: 30081})
		for _, c := range r.region.Calls() {
			if c.Write && (c.Status >= 400 || c.Operation != "UpdateBackendSet") {
				r.Errorf("%s: %d", c.Operation, c.Status)
			}
		}
		r.region.ResetCalls()
		swap("names", func(a, b *v1.ServicePort) { a.Name, b.Name = b.Name, "renamed" }, map[int]int{80: 30080, 81: 30081})
		r.equal("writes for other names", written(r.region.Calls()), []string{})
		r.noEvents()
	})
}

// C055 for the ways that TestForeignSettingsSurviveLB does not go: while a certificate is renewed and the shape changes, what others
// have set stays on the listener and the backend set with TLS.
func TestForeignSettingsSurviveRotation(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 130}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 443)
		r.withTLS(svc, "443", "web", "one")
		r.edit(svc, annotate(prefixLB+"tls-backendset-secret", "web"))
		r.mustSync(svc, nodes)
		id := r.only().ID
		hostname, cookie, depth, connections := "shop", "sticky", 3, 512
		err := r.region.Foreign().LoadBalancer(id, func(v *lbsdk.LoadBalancer) {
			v.Hostnames = map[string]lbsdk.Hostname{"shop": {Name: &hostname, Hostname: &hostname}}
			l := v.Listeners["TCP-443"]
			l.HostnameNames = []string{"shop"}
			l.SslConfiguration.VerifyDepth = &depth
			v.Listeners["TCP-443"] = l
			set := v.BackendSets["TCP-443"]
			set.BackendMaxConnections = &connections
			set.LbCookieSessionPersistenceConfiguration = &lbsdk.LbCookieSessionPersistenceConfigurationDetails{CookieName: &cookie}
			set.SslConfiguration.VerifyDepth = &depth
			v.BackendSets["TCP-443"] = set
		})
		if err != nil {
			r.Fatal(err)
		}
		settings := func() string {
			v, _ := r.region.LoadBalancer(id)
			l, set := v.Listeners["TCP-443"], v.BackendSets["TCP-443"]
			l.SslConfiguration.CertificateName, set.SslConfiguration.CertificateName = nil, nil
			return fmt.Sprint(l, set, v.Hostnames)
		}
		before := settings()
		r.secrets.put("shop", "web", r.secrets.pair(r.T, "two"))
		r.mustSync(svc, nodes)
		r.equal("certificate", r.certificateOf("TCP-443"), r.secrets.pair(r.T, "two").Certificate)
		r.equal("after the renewal", settings(), before)
		r.edit(svc, annotate(prefixLB+"shape-flex-min", "20"))
		r.edit(svc, annotate(prefixLB+"shape-flex-max", "400"))
		r.mustSync(svc, nodes)
		r.equal("shape", *r.only().Shape, "{flexible 20 400}")
		r.equal("after another shape", settings(), before)
		r.noEvents()
	})
}
