// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e_test runs the real binaries as processes against a real control plane and the simulated region, as the
// ServiceAccount of the manifests. The names of the cases (C001, …) are those of the project's case log.
package e2e_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// waitLimit bounds every wait for something that must happen. A machine under load needs a fraction of it.
const waitLimit = 3 * time.Minute

// observe is how long something that must not happen is given to happen.
const observe = 6 * time.Second

// lab is a test bed with a running cloud-controller-manager.
type lab struct {
	*testbed.Bed

	t      *testing.T
	ctx    context.Context
	ccm    *testbed.CCM
	before []byte // snapshot of the region that the bed starts with
}

// newLab starts a bed; the region's state changes take moments. Beds share nothing, so tests run beside each other.
func newLab(t *testing.T, options testbed.Options) *lab {
	t.Helper()
	t.Parallel()
	if options.Region.Durations == nil {
		options.Region.Durations = testbed.QuickDurations()
	}
	options.Region.Seed = 1
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	bed := testbed.New(t, options)
	return &lab{Bed: bed, t: t, ctx: ctx, before: bed.Region.Snapshot()}
}

// run starts the cloud-controller-manager; it must not end by itself before the test does.
func (l *lab) run(flags ...string) *lab {
	l.t.Helper()
	var err error
	if l.ccm, err = l.StartCCM(l.ctx, flags...); err != nil {
		l.t.Fatal(err)
	}
	return l.watch()
}

// watch makes a failure of the test of an end that nobody asked for, and of a panic.
func (l *lab) watch() *lab {
	l.t.Helper()
	ccm := l.ccm
	l.t.Cleanup(func() {
		select {
		case <-ccm.Done():
			if !ccm.Asked() {
				l.t.Errorf("the cloud-controller-manager ended by itself: %v", ccm.Err())
			}
		default:
		}
		l.oracle()
		if text := l.log(ccm); panicked.MatchString(text) {
			l.t.Errorf("panic in the log: %s", panicked.FindString(text))
		}
	})
	return l
}

var panicked = regexp.MustCompile(`(?m)^panic: .*|Observed a panic.*`)

// ready is run and then the wait for all nodes.
func (l *lab) ready(flags ...string) *lab {
	l.t.Helper()
	l.run(flags...)
	l.eventually("nodes initialised", l.NodesInitialized)
	return l
}

func (l *lab) log(ccm *testbed.CCM) string {
	l.t.Helper()
	text, err := os.ReadFile(ccm.Log)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

func (l *lab) patience() testbed.Patience {
	return testbed.Patience{T: l.t, Ctx: l.ctx, Limit: waitLimit}
}

// eventually waits for something that must happen.
func (l *lab) eventually(what string, wait func(context.Context) error) {
	l.t.Helper()
	l.patience().Eventually(what, wait)
}

// until is eventually for a condition that says what it saw.
func (l *lab) until(what string, done func() (bool, string)) {
	l.t.Helper()
	l.patience().Until(what, done)
}

// never checks for a while that something does not happen.
func (l *lab) never(what string, happened func() (bool, string)) {
	l.t.Helper()
	for end := time.Now().Add(observe); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if yes, seen := happened(); yes {
			l.t.Fatalf("%s: %s", what, seen)
		}
	}
}

// service creates a Service of type LoadBalancer.
func (l *lab) service(name, kind string, change func(*v1.Service)) *v1.Service {
	l.t.Helper()
	svc := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}},
		Spec: v1.ServiceSpec{
			Type: v1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": name},
			Ports: []v1.ServicePort{{Name: "http", Port: 80}},
		},
	}
	if kind != "" {
		svc.Annotations["oci.oraclecloud.com/load-balancer-type"] = kind
	}
	if change != nil {
		change(svc)
	}
	svc, err := l.Cluster.Client().CoreV1().Services(v1.NamespaceDefault).Create(l.ctx, svc, metav1.CreateOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return svc
}

// served waits for the address of a Service.
func (l *lab) served(name string) *v1.Service {
	l.t.Helper()
	var svc *v1.Service
	l.eventually(name+" has an address", func(ctx context.Context) error {
		var err error
		svc, err = l.ServiceReady(ctx, v1.NamespaceDefault, name)
		return err
	})
	return svc
}

func (l *lab) get(name string) *v1.Service {
	l.t.Helper()
	svc, err := l.Cluster.Client().CoreV1().Services(v1.NamespaceDefault).Get(l.ctx, name, metav1.GetOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return svc
}

func (l *lab) edit(name string, change func(*v1.Service)) {
	l.t.Helper()
	services := l.Cluster.Client().CoreV1().Services(v1.NamespaceDefault)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		svc, err := services.Get(l.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(svc)
		_, err = services.Update(l.ctx, svc, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// poke makes the framework look at a Service now, whatever back-off it is in: any change of an annotation does.
func (l *lab) poke(name string) {
	l.t.Helper()
	l.edit(name, func(svc *v1.Service) {
		metav1.SetMetaDataAnnotation(&svc.ObjectMeta, "example.com/poke", time.Now().String())
	})
}

func (l *lab) delete(name string) {
	l.t.Helper()
	if err := l.Cluster.Client().CoreV1().Services(v1.NamespaceDefault).Delete(l.ctx, name, metav1.DeleteOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// gone deletes a Service and waits until it has left the API.
func (l *lab) gone(name string) {
	l.t.Helper()
	l.delete(name)
	l.eventually(name+" is gone", func(ctx context.Context) error { return l.ServiceGone(ctx, v1.NamespaceDefault, name) })
}

// event waits for an event on an object whose reason is the given one and whose message contains all the texts.
func (l *lab) event(namespace, object, reason string, texts ...string) {
	l.t.Helper()
	l.until(fmt.Sprintf("event %s on %s with %q", reason, object, texts), func() (bool, string) {
		list, err := l.Cluster.Client().CoreV1().Events(namespace).List(l.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + object})
		if err != nil {
			return false, err.Error()
		}
		for _, e := range list.Items {
			if (reason == "" || e.Reason == reason) && !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(e.Message, s) }) {
				return true, ""
			}
		}
		return false, l.Events(l.ctx, namespace, object)
	})
}

func (l *lab) node(i int) *v1.Node {
	l.t.Helper()
	n, err := l.Cluster.Client().CoreV1().Nodes().Get(l.ctx, testbed.NodeName(i), metav1.GetOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

func (l *lab) patchNode(name, patch string) {
	l.t.Helper()
	if _, err := l.Cluster.Client().CoreV1().Nodes().Patch(l.ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) nodeNames() []string {
	l.t.Helper()
	list, err := l.Cluster.Client().CoreV1().Nodes().List(l.ctx, metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	names := make([]string, 0, len(list.Items))
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return names
}

// calls counts the calls to an operation ("CreateLoadBalancer") that were answered, whatever the answer.
func (l *lab) calls(match func(ocisim.Call) bool) int {
	n := 0
	for _, c := range l.Region.Calls() {
		if match(c) {
			n++
		}
	}
	return n
}

func operation(name string) func(ocisim.Call) bool {
	return func(c ocisim.Call) bool { return c.Operation == name }
}

func writes(c ocisim.Call) bool { return c.Write }

// settled waits until nothing has been written to the region for a while.
func (l *lab) settled() {
	l.t.Helper()
	before := -1
	l.until("no more writes", func() (bool, string) {
		now := l.calls(writes)
		if now == before {
			return true, ""
		}
		before = now
		time.Sleep(2 * time.Second)
		return false, fmt.Sprintf("%d writes", now)
	})
}

// backends lists "listener port: backend addresses" of all balancers, sorted.
func (l *lab) backends() []string {
	var rows []string
	for _, lb := range l.Region.LoadBalancers() {
		for _, li := range lb.Listeners {
			var ips []string
			for _, b := range lb.BackendSets[*li.DefaultBackendSetName].Backends {
				ips = append(ips, *b.IpAddress)
			}
			rows = append(rows, backendRow("lb", *li.Port, ips))
		}
	}
	for _, nlb := range l.Region.NetworkLoadBalancers() {
		for _, li := range nlb.Listeners {
			var ips []string
			for _, b := range nlb.BackendSets[*li.DefaultBackendSetName].Backends {
				ips = append(ips, *b.IpAddress)
			}
			rows = append(rows, backendRow("nlb", *li.Port, ips))
		}
	}
	slices.Sort(rows)
	return rows
}

func backendRow(kind string, port int, ips []string) string {
	slices.Sort(ips)
	return fmt.Sprintf("%s %d: %s", kind, port, strings.Join(ips, " "))
}

// wantBackends waits for exactly these rows.
func (l *lab) wantBackends(rows ...string) {
	l.t.Helper()
	slices.Sort(rows)
	l.until("backends", func() (bool, string) {
		got := l.backends()
		return slices.Equal(got, rows), strings.Join(got, "; ")
	})
}

// ips are the addresses of nodes, by their index, as backends list them.
func ips(nodes ...int) string {
	list := make([]string, 0, len(nodes))
	for _, n := range nodes {
		list = append(list, testbed.NodeIP(n))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// empty checks that no balancer is left: the first question of the oracle.
func (l *lab) empty() {
	l.t.Helper()
	l.until("no balancer left", func() (bool, string) {
		n := 0
		for _, lb := range l.Region.LoadBalancers() {
			if lb.LifecycleState != "DELETED" {
				n++
			}
		}
		for _, nlb := range l.Region.NetworkLoadBalancers() {
			if nlb.LifecycleState != "DELETED" {
				n++
			}
		}
		return n == 0, fmt.Sprintf("%d balancers", n)
	})
}

type ctxT = context.Context

func itoa(n int) string { return strconv.Itoa(n) }
