// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// C029: an untouched port's listener is never deleted, whatever happens to the others.
func TestUntouchedPortsStay(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 3}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(2)
		svc := r.service("web", kind, 80, 443, 8080)
		r.mustSync(svc, nodes)
		r.region.ResetCalls()
		for _, ports := range [][]int32{{81, 443, 8080}, {443, 81}, {443}, {9000, 443, 80}} {
			r.edit(svc, func(s *v1.Service) { s.Spec.Ports = newService("x", kind, ports...).Spec.Ports })
			r.mustSync(svc, nodes)
			var listeners []int
			for _, l := range r.only().Listeners {
				listeners = append(listeners, l.Port)
			}
			slices.Sort(listeners)
			want := slices.Clone(ports)
			slices.Sort(want)
			r.equal("ports", listeners, want)
			r.equal("backend sets", len(r.only().BackendSets), len(ports))
		}
		for _, c := range r.region.Calls() {
			if c.Write && c.Status >= 400 {
				r.Errorf("%s %s was refused: %d", c.Operation, c.Path, c.Status)
			}
			if c.Operation == "DeleteListener" && c.Path[len(c.Path)-3:] == "443" {
				r.Error("the listener of port 443 was deleted")
			}
		}
		r.noEvents()
	})
}

// C032: one writer per network load balancer; while somebody else changes it, changes wait.
func TestBusyNLB(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 4}, func(r *rig) {
		nodes := r.nodes(2)
		svc := r.service("web", oci.KindNLB, 80)
		r.mustSync(svc, nodes)
		r.region.ResetCalls()
		r.edit(svc, func(s *v1.Service) {
			s.Spec.Ports = append(s.Spec.Ports, newService("x", oci.KindNLB, 81, 82, 83, 84, 85).Spec.Ports...)
		})
		r.mustSync(svc, nodes)
		for _, c := range r.region.Calls() {
			if c.Status == 409 {
				r.Errorf("%s was refused as busy", c.Operation)
			}
		}
		writes, calls := len(written(r.region.Calls())), len(r.region.Calls())
		r.equal("writes", writes, 10)
		if calls > 60*writes { // each takes up to 30 s, and is looked at twice a second
			r.Errorf("%d calls for %d writes", calls, writes)
		}

		// Somebody else's change is open.
		client := r.connect(r.region.Transport()).NetworkLoadBalancers()
		b, err := client.Get(r.Context(), r.only().ID)
		if err != nil {
			r.Fatal(err)
		}
		if _, err := client.UpdateTags(r.Context(), b.ID, oci.Tags{Freeform: map[string]string{"by": "hand"}}, b.ETag); err != nil {
			r.Fatal(err)
		}
		r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 31234 })
		r.mustSync(svc, nodes)
		r.noEvents()
	})
}

// A change that had to wait for somebody else's until the caller was released was never sent: that it is still to be made is
// no sign that the service does not keep it.
func TestHeldBeforeSent(t *testing.T) {
	options := ocisim.Options{Durations: map[string]ocisim.Range{"networkloadbalancer.update": {Min: 50 * time.Second}}}
	simulate(t, options, func(r *rig) {
		nodes := r.nodes(2)
		svc := r.service("web", oci.KindNLB, 80)
		r.mustSync(svc, nodes)
		client := r.connect(r.region.Transport()).NetworkLoadBalancers()
		b, err := client.Get(r.Context(), r.only().ID)
		if err != nil {
			r.Fatal(err)
		}
		tags := oci.Tags{Freeform: map[string]string{"by": "hand"}, Defined: b.Defined}
		maps.Copy(tags.Freeform, b.Freeform) // our marks stay, so that the plan stays the same
		if _, err := client.UpdateTags(r.Context(), b.ID, tags, b.ETag); err != nil {
			r.Fatal(err)
		}
		r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 31234 })
		r.mustSync(svc, nodes)
		r.noEvents()
	})
}

// A load balancer that refuses changes while one runs (it is not established that it takes them) is waited for too.
func TestBusyLB(t *testing.T) {
	behaviour := ocisim.DefaultBehaviour()
	busy := behaviour.Rulings[ocisim.LoadBalancerBusy]
	busy.Allow = false
	behaviour.Rulings[ocisim.LoadBalancerBusy] = busy
	simulate(t, ocisim.Options{Seed: 5, Behaviour: behaviour}, func(r *rig) {
		nodes := r.nodes(2)
		svc := r.service("web", oci.KindLB, 80, 81, 82)
		r.mustSync(svc, nodes)
		r.edit(svc, func(s *v1.Service) { s.Spec.Ports = newService("x", oci.KindLB, 80, 83, 84, 85).Spec.Ports })
		r.mustSync(svc, nodes)
		r.equal("listeners", len(r.only().Listeners), 4)
		r.noEvents()
	})
}

// Legacy spellings of listener names are the listeners of their ports (C030, contract §3.2), and stay as they are.
func TestLegacyListenerNames(t *testing.T) {
	for _, name := range []string{"http-80", "HTTP-80", "TCP-80", "TCP-80-web-tls", "HTTP-80-old.secret"} {
		t.Run(name, func(t *testing.T) {
			simulate(t, ocisim.Options{Seed: 10}, func(r *rig) {
				nodes := r.nodes(1)
				svc := r.service("web", oci.KindLB, 80)
				id := r.legacyBalancer(svc, oci.KindLB)
				err := r.region.Foreign().LoadBalancer(id, func(v *lbsdk.LoadBalancer) {
					l := v.Listeners["TCP-80"]
					delete(v.Listeners, "TCP-80")
					l.Name = &name
					v.Listeners[name] = l
				})
				if err != nil {
					r.Fatal(err)
				}
				r.mustSync(svc, nodes)
				r.edit(svc, annotate(prefixLB+"backend-protocol", "http"))
				r.mustSync(svc, nodes)
				b := r.only()
				r.equal("listeners", len(b.Listeners), 1)
				r.equal("protocol", b.Listeners[name].Protocol, "HTTP")
				r.equal("deletions", r.count("DeleteListener")+r.count("CreateListener"), 0)
				r.edit(svc, func(s *v1.Service) { s.Spec.Ports = newService("x", oci.KindLB, 81).Spec.Ports })
				r.mustSync(svc, nodes)
				b = r.only()
				r.equal("listeners after the port is gone", len(b.Listeners), 1)
				r.equal("backend sets", len(b.BackendSets), 1)
			})
		})
	}
}

// C046: TCP and UDP on one port, from one to both and back, without two listeners on a port and without a gap for TCP.
func TestMergedListener(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 11}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("dns", oci.KindNLB, 53)
		r.mustSync(svc, nodes)
		tcp := svc.Spec.Ports[0]
		udp := tcp
		udp.Name, udp.Protocol = "udp", v1.ProtocolUDP
		r.region.ResetCalls()
		for _, step := range []struct {
			ports    []v1.ServicePort
			protocol string
		}{
			{[]v1.ServicePort{tcp, udp}, "TCP_AND_UDP"},
			{[]v1.ServicePort{udp, tcp}, "TCP_AND_UDP"},
			{[]v1.ServicePort{tcp}, "TCP"},
			{[]v1.ServicePort{udp}, "UDP"},
			{[]v1.ServicePort{tcp, udp}, "TCP_AND_UDP"},
		} {
			r.edit(svc, func(s *v1.Service) { s.Spec.Ports = step.ports })
			r.mustSync(svc, nodes)
			b := r.only()
			r.equal("listeners", len(b.Listeners), 1)
			for _, l := range b.Listeners {
				r.equal("protocol", l.Protocol, step.protocol)
				r.equal("backend port", b.BackendSets[l.BackendSetName].Backends[0].Port, int(tcp.NodePort))
			}
			r.equal("backend sets", len(b.BackendSets), 1)
		}
		r.equal("deleted listeners", r.count("DeleteListener"), 0)
		r.noEvents()

		udp.NodePort++
		r.edit(svc, func(s *v1.Service) { s.Spec.Ports = []v1.ServicePort{tcp, udp} })
		if _, err := r.m.Ensure(r.Context(), svc, nodes); err == nil {
			r.Error("different node ports were merged")
		}
		r.oneSeries(loadbalancer.ReasonUnsupportedService, "port 53 is TCP and UDP with the node ports 30053 and 30054")
	})
}

// Three-way update: an annotation that goes takes its value along, unless somebody else has set another one.
func TestAnnotationRemoved(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 12}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 80)
		for key, value := range map[string]string{
			prefixCommon + "loadbalancer-policy": "ip_hash", prefixLB + "health-check-retries": "7",
			prefixLB + "health-check-interval": "20000 ms", prefixLB + "health-check-timeout": "4000",
			prefixLB + "connection-idle-timeout": "600", prefixLB + "connection-proxy-protocol-version": "2",
			prefixCommon + "oci-network-security-groups": r.groups[0] + ", " + r.groups[1] + ",",
		} {
			r.edit(svc, annotate(key, value))
		}
		r.mustSync(svc, nodes)
		b := r.only()
		r.equal("policy", b.BackendSets["TCP-80"].Policy, "IP_HASH")
		r.equal("checker", b.BackendSets["TCP-80"].Checker, oci.HealthChecker{
			Protocol: "HTTP", Port: 10256, URLPath: "/healthz", ReturnCode: 200, Retries: 7, IntervalMillis: 20000, TimeoutMillis: 4000,
			ForcePlainText: b.BackendSets["TCP-80"].Checker.ForcePlainText,
		})
		r.equal("idle timeout", *b.Listeners["TCP-80"].IdleTimeoutSeconds, 600)
		r.equal("proxy protocol", *b.Listeners["TCP-80"].ProxyProtocolVersion, 2)
		r.equal("groups", len(b.NSGIDs), 2)

		err := r.region.Foreign().LoadBalancer(b.ID, func(v *lbsdk.LoadBalancer) { // by hand, while the annotation says 7
			v.BackendSets["TCP-80"].HealthChecker.Retries = common.Int(9)
			v.NetworkSecurityGroupIds = append(v.NetworkSecurityGroupIds, r.groups[2])
		})
		if err != nil {
			r.Fatal(err)
		}
		r.edit(svc, func(s *v1.Service) {
			for key := range s.Annotations {
				if key != loadbalancer.AnnotationOCID && key != loadbalancer.AnnotationLastApplied {
					delete(s.Annotations, key)
				}
			}
		})
		r.mustSync(svc, nodes)
		b = r.only()
		r.equal("policy", b.BackendSets["TCP-80"].Policy, "ROUND_ROBIN")
		r.equal("retries, which somebody else set", b.BackendSets["TCP-80"].Checker.Retries, 9)
		r.equal("interval", b.BackendSets["TCP-80"].Checker.IntervalMillis, 10000)
		r.equal("timeout", b.BackendSets["TCP-80"].Checker.TimeoutMillis, 3000)
		r.equal("groups", b.NSGIDs, []string{r.groups[2]})
		if l := b.Listeners["TCP-80"]; l.IdleTimeoutSeconds != nil && *l.IdleTimeoutSeconds != 300 || l.ProxyProtocolVersion != nil {
			r.Errorf("connection settings stay: %v %v", l.IdleTimeoutSeconds, l.ProxyProtocolVersion)
		}
		r.unchanged(svc, nodes)
	})
}

// A work request of an update that fails is told with its cause; the next sync finishes the work.
func TestUpdateFails(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 13}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		r.mustSync(svc, nodes)
		r.region.Fault(ocisim.Fault{Operation: "CreateBackendSet", Nth: 1, FailWork: true, Code: "INTERNAL_ERROR", Message: "disk on fire"})
		r.edit(svc, func(s *v1.Service) { s.Spec.Ports = newService("x", kind, 80, 81).Spec.Ports })
		r.mustSync(svc, nodes)
		r.oneSeries(loadbalancer.ReasonWorkRequestFailed, "create backend set TCP-81", "INTERNAL_ERROR: disk on fire")
		r.equal("listeners", len(r.only().Listeners), 2)
		r.equal("condition", r.cluster.condition(svc.UID), "True Synced")
	})
}

// A service that accepts a change and does not keep it is not written to for ever.
func TestNotConverging(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 14}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 80)
		r.mustSync(svc, nodes)
		id := r.only().ID
		r.region.OnCall(func(c ocisim.Call) {
			if c.Operation == "GetWorkRequest" { // of which the last one shows the end of the change
				_ = r.region.Foreign().LoadBalancer(id, func(v *lbsdk.LoadBalancer) {
					v.BackendSets["TCP-80"].HealthChecker.Retries = common.Int(3)
				})
			}
		})
		r.edit(svc, annotate(prefixLB+"health-check-retries", "5"))
		r.region.ResetCalls()
		if err := r.sync(svc, nodes, 5*time.Minute); err == nil {
			r.Fatal("no error")
		}
		r.equal("series", len(r.cluster.series(loadbalancer.ReasonNotConverging)), 1)
		if n := r.count("UpdateBackendSet"); n > 40 {
			r.Errorf("%d writes in 5 minutes", n)
		}
	})
}
