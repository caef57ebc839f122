// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	servicehelper "k8s.io/cloud-provider/service/helpers"

	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// withBalancers offers load balancers, made by the real domain in the simulated region.
func (b *bed) withBalancers(client *oci.Client) {
	b.t.Helper()
	var subnet string
	for _, s := range b.region.Subnets() {
		if *s.DisplayName == "balancers" {
			subnet = *s.Id
		}
	}
	b.options.NewBalancers = func(s *cloudprovider.ServiceSupport) cloudprovider.Balancers {
		return loadbalancer.New(loadbalancer.Config{
			ClusterID: "cluster-1", CompartmentID: b.compartment, Subnet1: subnet, OperationTimeout: cloudprovider.OperationTimeout,
		}, loadbalancer.Deps{
			LB: client.LoadBalancers(), NLB: client.NetworkLoadBalancers(), Subnets: client.Network(), PublicIPs: client.Network(),
			Events: s.Event, Records: s, Conditions: s, Fresh: s.Fresh, Nodes: s.Nodes, Secret: s.Secret,
		})
	}
}

// addService makes a Service of type LoadBalancer.
func (b *bed) addService(name string, change ...func(*v1.Service)) {
	b.t.Helper()
	s := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.Now()},
		Spec: v1.ServiceSpec{
			Type: v1.ServiceTypeLoadBalancer, SessionAffinity: v1.ServiceAffinityNone,
			IPFamilies: []v1.IPFamily{v1.IPv4Protocol}, ExternalTrafficPolicy: v1.ServiceExternalTrafficPolicyCluster,
			Ports: []v1.ServicePort{{Name: "http", Protocol: v1.ProtocolTCP, Port: 80, NodePort: 30080}},
		},
	}
	for _, f := range change {
		f(s)
	}
	if _, err := b.client.CoreV1().Services(s.Namespace).Create(b.ctx, s, metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) service(name string) *v1.Service {
	b.t.Helper()
	s, err := b.client.CoreV1().Services("default").Get(b.ctx, name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bed) updateService(name string, change func(*v1.Service)) {
	b.t.Helper()
	s := b.service(name)
	change(s)
	if _, err := b.client.CoreV1().Services("default").Update(b.ctx, s, metav1.UpdateOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

func networkLoadBalancer(s *v1.Service) {
	s.Annotations = with(s.Annotations, "oci.oraclecloud.com/load-balancer-type", "nlb")
}

// addWorker makes an instance and its Node, which is initialised already.
func (b *bed) addWorker(name, ip string, change ...func(*v1.Node)) {
	b.t.Helper()
	id := b.region.AddInstance(ocisim.Instance{Name: name, VNIC: ocisim.VNIC{Subnet: "nodes", PrivateIP: ip}})
	b.addNode(name, id, append([]func(*v1.Node){initialized, func(n *v1.Node) {
		n.Status.Addresses = append(n.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip})
	}}, change...)...)
}

// backends returns the addresses behind the only load balancer, by backend set.
func (b *bed) backends() map[string][]string {
	b.t.Helper()
	all := b.region.LoadBalancers()
	all = slices.DeleteFunc(all, func(l sdk.LoadBalancer) bool { return l.LifecycleState == sdk.LoadBalancerLifecycleStateDeleted })
	if len(all) != 1 {
		b.t.Fatalf("%d load balancers", len(all))
	}
	sets := map[string][]string{}
	for name, set := range all[0].BackendSets {
		sets[name] = []string{}
		for _, backend := range set.Backends {
			sets[name] = append(sets[name], *backend.IpAddress)
		}
		slices.Sort(sets[name])
	}
	return sets
}

// cloudWrites counts the writes to the region, by operation.
func (b *bed) cloudWrites() map[string]int {
	counts := map[string]int{}
	for _, c := range b.region.Calls() {
		if c.Write {
			counts[c.Name()]++
		}
	}
	return counts
}

// warnings returns the reasons and messages of all Warning events.
func (b *bed) warnings() []string {
	list, err := b.client.CoreV1().Events("").List(b.ctx, metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	var found []string
	for _, e := range list.Items {
		if e.Type == v1.EventTypeWarning {
			found = append(found, fmt.Sprintf("%s/%s %s x%d: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Count, e.Message))
		}
	}
	return found
}

func synced(s *v1.Service) bool {
	return meta.IsStatusConditionTrue(s.Status.Conditions, loadbalancer.ConditionType)
}

// A Service gets its balancer while no worker waits for it, without a Warning, and promptly; then there is peace: framework
// traps 5, 7 and 8.
func TestServiceGetsItsBalancer(t *testing.T) {
	for name, change := range map[string]func(*v1.Service){"LB": func(*v1.Service) {}, "NLB": networkLoadBalancer} {
		t.Run(name, func(t *testing.T) {
			minute := ocisim.Range{Min: time.Minute, Max: time.Minute}
			inBubble(t, ocisim.Options{Durations: map[string]ocisim.Range{
				"loadbalancer.create": minute, "networkloadbalancer.create": minute,
			}}, func(t *testing.T, b *bed) {
				b.withBalancers(b.oci)
				b.addWorker("w-1", "10.0.1.1")
				b.startServices()
				b.addService("web", change)
				b.hold(50 * time.Second)
				s := b.service("web")
				if c := meta.FindStatusCondition(s.Status.Conditions, loadbalancer.ConditionType); c == nil || c.Status != metav1.ConditionFalse || c.Reason != loadbalancer.ReasonInProgress {
					t.Errorf("condition while the balancer is made: %+v", c)
				}
				if len(s.Status.LoadBalancer.Ingress) != 0 || !servicehelper.HasLBFinalizer(s) {
					t.Errorf("while the balancer is made: status %+v, finalizers %v", s.Status.LoadBalancer, s.Finalizers)
				}
				// A minute for the cloud, and as long as the waiter may sleep between two looks.
				b.hold(10*time.Second + 6*time.Second)
				s = b.service("web")
				if len(s.Status.LoadBalancer.Ingress) == 0 || !synced(s) {
					t.Fatalf("status %+v, conditions %+v", s.Status.LoadBalancer, s.Status.Conditions)
				}
				if s.Annotations[loadbalancer.AnnotationOCID] == "" || s.Annotations[loadbalancer.AnnotationLastApplied] == "" {
					t.Errorf("annotations %v", s.Annotations)
				}
				if w := b.warnings(); len(w) != 0 {
					t.Errorf("warnings: %q", w)
				}

				// The change of the annotations queues the Service once more. Nothing is written by that, and nothing by the
				// periodic passes.
				b.hold(time.Second)
				b.client.ClearActions()
				b.region.ResetCalls()
				b.hold(time.Hour)
				if w := b.writes(); len(w) != 0 {
					t.Errorf("writes to the API server in an hour without changes: %v", w)
				}
				if w := b.cloudWrites(); len(w) != 0 {
					t.Errorf("writes to the cloud in an hour without changes: %v", w)
				}
				if n := len(b.region.Calls()); n > 2*7 {
					t.Errorf("%d calls in an hour; want at most a list of each kind for each pass: %v", n, b.region.Counts())
				}
			})
		})
	}
}

// A worker is not held while the cloud works: with one worker, many balancers are made at the same time.
func TestWorkersAreNotHeld(t *testing.T) {
	minute := ocisim.Range{Min: time.Minute, Max: time.Minute}
	inBubble(t, ocisim.Options{Durations: map[string]ocisim.Range{"loadbalancer.create": minute}}, func(t *testing.T, b *bed) {
		b.withBalancers(b.oci)
		b.addWorker("w-1", "10.0.1.1")
		b.startServices()
		for i := range 12 {
			b.addService(fmt.Sprintf("web-%d", i))
		}
		// Four workers hold for 15 s each at most, so the last create is sent after 45 s.
		b.hold(45*time.Second + time.Minute + 5*time.Second)
		for i := range 12 {
			if s := b.service(fmt.Sprintf("web-%d", i)); !synced(s) {
				t.Errorf("%s: %+v", s.Name, s.Status)
			}
		}
		if w := b.warnings(); len(w) != 0 {
			t.Errorf("warnings: %q", w)
		}
	})
}

func TestServiceIsDeleted(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.withBalancers(b.oci)
		b.addWorker("w-1", "10.0.1.1")
		before := b.region.Snapshot()
		b.startServices()
		b.addService("web")
		b.hold(5 * time.Minute)
		b.updateService("web", func(s *v1.Service) { s.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
		b.hold(5 * time.Minute)
		if s := b.service("web"); servicehelper.HasLBFinalizer(s) {
			t.Errorf("finalizers %v, warnings %q", s.Finalizers, b.warnings())
		}
		b.hold(24 * time.Hour) // terminated resources stay visible for a time
		if diff := cmp.Diff(string(before), string(b.region.Snapshot())); diff != "" {
			t.Errorf("the region is not as before (-before +after):\n%s", diff)
		}
	})
}

// A Service that stops to want a balancer keeps nothing of ours.
func TestServiceChangesItsType(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.withBalancers(b.oci)
		b.addWorker("w-1", "10.0.1.1")
		b.startServices()
		b.addService("web", func(s *v1.Service) { s.Annotations = map[string]string{"theirs": "stays"} })
		b.hold(5 * time.Minute)
		b.updateService("web", func(s *v1.Service) { s.Spec.Type = v1.ServiceTypeClusterIP })
		b.hold(5 * time.Minute)
		s := b.service("web")
		if diff := cmp.Diff(map[string]string{"theirs": "stays"}, s.Annotations); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
		if len(s.Status.Conditions)+len(s.Status.LoadBalancer.Ingress)+len(s.Finalizers) != 0 {
			t.Errorf("status %+v, finalizers %v", s.Status, s.Finalizers)
		}
	})
}

// A 404 for lack of a policy must not drop the finalizer: framework trap 4, case C027 (b).
func TestMissingPolicyKeepsTheFinalizer(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.withBalancers(b.oci)
		b.addWorker("w-1", "10.0.1.1")
		b.startServices()
		b.addService("web")
		b.hold(5 * time.Minute)
		restore := b.region.Deny(ocisim.Policy{ResourceType: "load-balancers"})
		b.updateService("web", func(s *v1.Service) { s.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
		b.hold(10 * time.Minute)
		if !servicehelper.HasLBFinalizer(b.service("web")) {
			t.Fatal("the finalizer was dropped while the balancer lives")
		}
		events := b.eventsOf("Service", "SyncLoadBalancerFailed")
		if len(events) != 1 || events[0].Count < 3 || !strings.Contains(events[0].Message, "404") ||
			!strings.Contains(events[0].Message, "opc-request-id") || !strings.Contains(events[0].Message, "manage load-balancers") {
			t.Errorf("events %q; want one series with code, request ID and policy", b.warnings())
		}
		if n := len(b.warnings()); n != 1 {
			t.Errorf("%d kinds of warnings; want one series: %q", n, b.warnings())
		}
		restore()
		b.hold(10 * time.Minute)
		if servicehelper.HasLBFinalizer(b.service("web")) {
			t.Errorf("the finalizer stays: %q", b.warnings())
		}
	})
}

// A balancer that was removed or changed by others is found without any trigger: case C024.
func TestPassFindsWhatOthersDid(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.withBalancers(b.oci)
		b.addWorker("w-1", "10.0.1.1")
		b.startServices()
		b.addService("web")
		b.hold(5 * time.Minute)
		first := b.service("web").Annotations[loadbalancer.AnnotationOCID]
		if err := b.region.Foreign().Delete(first); err != nil {
			t.Fatal(err)
		}
		b.hold(15 * time.Minute)
		s := b.service("web")
		second := s.Annotations[loadbalancer.AnnotationOCID]
		if second == first || !synced(s) {
			t.Fatalf("not made again: OCID %s, conditions %+v, warnings %q", second, s.Status.Conditions, b.warnings())
		}
		if err := b.region.Foreign().LoadBalancer(second, func(l *sdk.LoadBalancer) {
			for name, set := range l.BackendSets {
				set.Backends = nil
				l.BackendSets[name] = set
			}
		}); err != nil {
			t.Fatal(err)
		}
		b.hold(15 * time.Minute)
		for name, addresses := range b.backends() {
			if !slices.Equal(addresses, []string{"10.0.1.1"}) {
				t.Errorf("backend set %s: %v", name, addresses)
			}
		}
	})
}

// With the policy gone the balancer only looks gone: no second one, neither then nor after (case C024, variant S1).
func TestPassWithoutPolicyMakesNoSecondBalancer(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.withBalancers(b.oci)
		b.addWorker("w-1", "10.0.1.1")
		b.startServices()
		b.addService("web")
		b.hold(5 * time.Minute)
		b.region.ResetCalls()
		restore := b.region.Deny(ocisim.Policy{ResourceType: "load-balancers", Verb: ocisim.Read})
		b.hold(30 * time.Minute)
		restore()
		restore = b.region.Deny(ocisim.Policy{ResourceType: "load-balancers"})
		b.hold(30 * time.Minute)
		restore()
		b.hold(30 * time.Minute)
		if n := b.region.Counts()["loadbalancer.CreateLoadBalancer"]; n != 0 {
			t.Errorf("%d creates", n)
		}
	})
}

// TestNodesComeLate is case C020: nodes without usable identity are an event, and the balancer is repaired when they get
// one.
func TestNodesComeLate(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.withBalancers(b.oci)
		ids := map[string]string{}
		for i, name := range []string{"n1", "n2"} {
			ip := fmt.Sprintf("10.0.1.%d", i+1)
			ids[name] = b.region.AddInstance(ocisim.Instance{Name: name, VNIC: ocisim.VNIC{Subnet: "nodes", PrivateIP: ip}})
			b.addNode(name, "")
		}
		b.startServices()
		b.addService("web")
		b.hold(30 * time.Second)
		if w := b.warnings(); len(w) == 0 {
			t.Error("no warning")
		}
		if synced(b.service("web")) {
			t.Error("success was said before there were backends")
		}
		for i, name := range []string{"n1", "n2"} {
			b.update(name, func(n *v1.Node) {
				initialized(n)
				n.Spec.ProviderID = ids[name]
				n.Status.Addresses = append(n.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: fmt.Sprintf("10.0.1.%d", i+1)})
			})
		}
		b.hold(5 * time.Minute)
		for name, addresses := range b.backends() {
			if !slices.Equal(addresses, []string{"10.0.1.1", "10.0.1.2"}) {
				t.Errorf("backend set %s: %v", name, addresses)
			}
		}
		if !synced(b.service("web")) {
			t.Errorf("conditions %+v", b.service("web").Status.Conditions)
		}
	})
}

// TestReadinessChangesNothing is case C022: readiness is left to health checks.
func TestReadinessChangesNothing(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.withBalancers(b.oci)
		for i := range 5 {
			b.addWorker(fmt.Sprintf("w-%d", i), fmt.Sprintf("10.0.1.%d", i+1))
		}
		b.startServices()
		b.addService("web")
		b.hold(5 * time.Minute)
		b.region.ResetCalls()
		for i := range 5 {
			b.ready(fmt.Sprintf("w-%d", i), v1.ConditionUnknown)
			b.hold(10 * time.Second)
		}
		b.hold(10 * time.Minute)
		for i := range 5 {
			b.ready(fmt.Sprintf("w-%d", i), v1.ConditionTrue)
		}
		b.hold(time.Minute)
		if w := b.cloudWrites(); len(w) != 0 {
			t.Errorf("writes: %v", w)
		}
	})
}

// What the framework does not look at, we do: a changed address, and a label that a selector is about.
func TestNodeChangesReachTheBalancer(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.withBalancers(b.oci)
		b.addWorker("w-1", "10.0.1.1", func(n *v1.Node) { label(n, "pool", "a") })
		b.addWorker("w-2", "10.0.1.2", func(n *v1.Node) { label(n, "pool", "b") })
		b.startServices()
		b.addService("web", func(s *v1.Service) {
			s.Annotations = map[string]string{"oci.oraclecloud.com/node-label-selector": "pool=a"}
		})
		b.hold(5 * time.Minute)
		expect := func(when string, want ...string) {
			t.Helper()
			b.hold(time.Minute)
			for name, addresses := range b.backends() {
				if !slices.Equal(addresses, want) {
					t.Errorf("%s: backend set %s: %v; want %v", when, name, addresses, want)
				}
			}
		}
		expect("first", "10.0.1.1")
		b.update("w-2", func(n *v1.Node) { label(n, "pool", "a") })
		expect("label changed", "10.0.1.1", "10.0.1.2")
		b.update("w-1", func(n *v1.Node) { n.Status.Addresses[1].Address = "10.0.1.9" })
		expect("address changed", "10.0.1.2", "10.0.1.9")

		about := v1.Taint{Key: "ToBeDeletedByClusterAutoscaler", Effect: v1.TaintEffectNoSchedule}
		b.update("w-2", func(n *v1.Node) { n.Spec.Taints = append(n.Spec.Taints, about) })
		expect("node about to be deleted", "10.0.1.9")
		b.update("w-2", func(n *v1.Node) { n.Spec.Taints = nil })
		expect("node stays", "10.0.1.2", "10.0.1.9")
		b.update("w-2", func(n *v1.Node) { label(n, v1.LabelNodeExcludeBalancers, "true") })
		expect("node excluded", "10.0.1.9")

		b.client.ClearActions()
		b.region.ResetCalls()
		b.update("w-1", func(n *v1.Node) { label(n, "other", "label") })
		b.update("w-2", func(n *v1.Node) { annotate(n, "some", "annotation") })
		b.hold(time.Minute)
		if n := len(b.region.Calls()); n != 0 {
			t.Errorf("changes that concern no balancer cost calls: %v", b.region.Counts())
		}
	})
}

// Each trouble is one event series on the Service, with operation, code, request ID and advice; its count grows, the number
// of objects does not (case C161).
func TestTroubleIsOneSeries(t *testing.T) {
	for name, test := range map[string]struct {
		fault ocisim.Fault
		words []string
	}{
		"limit":  {ocisim.Fault{Operation: "CreateLoadBalancer", Status: 400, Code: "LimitExceeded", Message: "lb-flexible-count"}, []string{"CreateLoadBalancer", "LimitExceeded", "opc-request-id"}},
		"policy": {ocisim.Fault{Operation: "CreateLoadBalancer", Status: 404}, []string{"CreateLoadBalancer", "404", "opc-request-id", "manage load-balancers"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
				b.withBalancers(b.oci)
				b.addWorker("w-1", "10.0.1.1")
				remove := b.region.Fault(test.fault)
				b.startServices()
				b.addService("web")
				b.hold(time.Hour)
				list, err := b.client.CoreV1().Events("").List(b.ctx, metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var series []v1.Event
				for _, e := range list.Items {
					if e.Type == v1.EventTypeWarning {
						series = append(series, e)
					}
				}
				if len(series) != 1 || series[0].InvolvedObject.Name != "web" || series[0].Count < 3 {
					t.Fatalf("want one series on the Service: %q", b.warnings())
				}
				for _, word := range test.words {
					if !strings.Contains(series[0].Message, word) {
						t.Errorf("%q lacks %q", series[0].Message, word)
					}
				}
				if c := meta.FindStatusCondition(b.service("web").Status.Conditions, loadbalancer.ConditionType); c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, test.words[1]) {
					t.Errorf("condition %+v", c)
				}
				remove()
				b.hold(15 * time.Minute)
				if !synced(b.service("web")) {
					t.Errorf("not repaired: %+v", b.service("web").Status)
				}
			})
		})
	}
}

// Without a permission that old manifests lack, a feature is off, and one notice names the rule.
func TestMissingPermissions(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.server.missing = []string{"patch services", "patch services/status"}
		b.withBalancers(b.oci)
		b.addWorker("w-1", "10.0.1.1")
		b.startServices()
		b.addService("web")
		b.hold(5 * time.Minute)
		s := b.service("web")
		if len(s.Status.LoadBalancer.Ingress) == 0 {
			t.Errorf("no address: %q", b.warnings())
		}
		if len(s.Annotations)+len(s.Status.Conditions) != 0 {
			t.Errorf("annotations %v, conditions %v", s.Annotations, s.Status.Conditions)
		}
		events := b.eventsOf("Lease", "PermissionMissing")
		if len(events) != 2 || !strings.Contains(events[0].Message+events[1].Message, `resources: ["services/status"], verbs: ["patch"]`) {
			t.Errorf("events %q", b.warnings())
		}
	})
}

// TestPartsOff is case C159: what is off makes no calls.
func TestPartsOff(t *testing.T) {
	services := func(b *bed) []string {
		used := map[string]bool{}
		for name := range b.region.Counts() {
			service, _, _ := strings.Cut(name, ".")
			used[service] = true
		}
		return slices.Sorted(maps.Keys(used))
	}
	t.Run("service controller off", func(t *testing.T) {
		inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
			b.withBalancers(b.oci)
			b.region.Deny(ocisim.Policy{ResourceType: "load-balancers"})
			b.addService("web")
			b.addNode("w-1", b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"}}))
			b.startNodes()
			b.hold(time.Hour)
			if !b.isInitialized("w-1") {
				t.Error("the node is not initialised")
			}
			if diff := cmp.Diff([]string{"compute", "virtualnetwork"}, services(b)); diff != "" {
				t.Errorf("services used (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("load balancers disabled", func(t *testing.T) {
		inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
			b.initialize()
			if lb, offered := b.provider.LoadBalancer(); offered || lb != nil {
				t.Error("load balancers are offered")
			}
		})
	})
}

// TestTightBudget is case C158: a budget of one call per second delays a hundred Services and fails none.
func TestTightBudget(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		principal, err := oci.UserPrincipal(oci.UserCredentials{
			Tenancy: b.region.Options().Tenancy, User: "ocid1.user.oc1..u", Region: b.region.Options().Region,
			Fingerprint: "20:3b:97:13:55:1c:aa:66:41:41:4b:7c:7c:ef:2e:42", PrivateKey: pki.SigningKeyPEM(),
		})
		if err != nil {
			t.Fatal(err)
		}
		limit := oci.RateLimit{QPS: 1, Burst: 1}
		client, err := oci.New(oci.Options{Provider: principal, Transport: b.region.Transport(), Limits: oci.RateLimits{Read: limit, Write: limit}})
		if err != nil {
			t.Fatal(err)
		}
		b.withBalancers(client)
		b.addWorker("w-1", "10.0.1.1")
		b.startServices()
		const services = 100
		for i := range services {
			b.addService(fmt.Sprintf("web-%d", i), networkLoadBalancer)
		}
		done := func() int {
			n := 0
			list, err := b.client.CoreV1().Services("default").List(b.ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range list.Items {
				if synced(&list.Items[i]) {
					n++
				}
			}
			return n
		}
		began := time.Now()
		for done() < services && time.Since(began) < 2*time.Hour {
			b.hold(10 * time.Second)
		}
		took := time.Since(began)
		if n := done(); n < services {
			t.Fatalf("%d of %d Services after %s: %q", n, services, took, b.warnings())
		}
		// Reads and writes have a budget each; the longer queue decides.
		var reads, writes int
		for _, c := range b.region.Calls() {
			if c.Service != ocisim.ServiceNetworkLoadBalancer {
				continue
			}
			if c.Write {
				writes++
			} else {
				reads++
			}
		}
		longest := time.Duration(max(reads, writes)) * time.Second
		if took > longest*12/10+time.Minute {
			t.Errorf("took %s for %d reads and %d writes at one per second", took, reads, writes)
		}
		if w := b.warnings(); len(w) != 0 {
			t.Errorf("warnings: %q", w)
		}
	})
}
