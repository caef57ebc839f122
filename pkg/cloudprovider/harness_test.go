// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:debug rsa1024min=0

package cloudprovider_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	restclient "k8s.io/client-go/rest"
	cloudproviderapi "k8s.io/cloud-provider/api"
	nodecontroller "k8s.io/cloud-provider/controllers/node"
	"k8s.io/cloud-provider/controllers/nodelifecycle"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"

	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// bed is a simulated region, an API server, and the provider under the framework's own controllers. It lives in a
// synctest bubble, so that minutes take milliseconds.
type bed struct {
	t        *testing.T
	ctx      context.Context
	region   *ocisim.Region
	server   *apiServer
	client   *fake.Clientset
	provider *cloudprovider.Provider
	factory  informers.SharedInformerFactory
	options  cloudprovider.Options
	oci      *oci.Client

	compartment, vcn string
	nodes            string // subnet
	uids             atomic.Int64
}

// inBubble runs a test on virtual time.
func inBubble(t *testing.T, options ocisim.Options, test func(t *testing.T, b *bed)) {
	t.Helper()
	pki.SigningKeyPEM() // outside of the bubble: the first caller makes it
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := newBed(ctx, t, options)
		defer func() {
			cancel()
			if b.provider != nil { // as the command does after a signal
				b.provider.Shutdown(context.WithoutCancel(ctx))
			}
			b.factory.Shutdown()
			synctest.Wait()
		}()
		test(t, b)
	})
}

func newBed(ctx context.Context, t *testing.T, options ocisim.Options) *bed {
	t.Helper()
	b := &bed{t: t, ctx: ctx, region: ocisim.New(options), server: newAPIServer()}
	b.client = b.server.client
	b.compartment = b.region.AddCompartment(ocisim.Compartment{Name: "cluster"})
	b.vcn = b.region.AddVCN(ocisim.VCN{Name: "vcn", IPv6CIDRs: []string{"fd00:10::/56", "2001:db8::/56"}})
	b.nodes = b.region.AddSubnet(ocisim.Subnet{VCN: b.vcn, Name: "nodes", CIDR: "10.0.0.0/20", IPv6CIDR: "2001:db8::/64"})
	b.region.AddSubnet(ocisim.Subnet{VCN: b.vcn, Name: "balancers", CIDR: "10.0.32.0/24"})

	b.factory = informers.NewSharedInformerFactory(b.client, 12*time.Hour)
	b.oci = b.connect()
	b.options = cloudprovider.Options{
		Inventory:     inventory.New(inventory.Config{CompartmentID: b.compartment, VCNID: b.vcn}, b.oci.Compute(), b.oci.Network()),
		CompartmentID: b.compartment,
		Process:       &v1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: "kube-system", Name: "cloud-controller-manager"},
	}
	return b
}

func (b *bed) connect() *oci.Client {
	b.t.Helper()
	principal, err := oci.UserPrincipal(oci.UserCredentials{
		Tenancy: b.region.Options().Tenancy, User: "ocid1.user.oc1..u", Region: b.region.Options().Region,
		Fingerprint: "20:3b:97:13:55:1c:aa:66:41:41:4b:7c:7c:ef:2e:42", PrivateKey: pki.SigningKeyPEM(),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	c, err := oci.New(oci.Options{Provider: principal, Transport: b.region.Transport()})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// clients implements cloudprovider.ControllerClientBuilder of the framework.
type clients struct{ client kubernetes.Interface }

func (c clients) Config(string) (*restclient.Config, error)   { return &restclient.Config{}, nil }
func (c clients) ConfigOrDie(string) *restclient.Config       { return &restclient.Config{} }
func (c clients) Client(string) (kubernetes.Interface, error) { return c.client, nil }
func (c clients) ClientOrDie(string) kubernetes.Interface     { return c.client }

// initialize makes the provider, as the framework does when the process becomes the leader.
func (b *bed) initialize() {
	b.provider = cloudprovider.New(b.options)
	b.provider.Initialize(clients{b.client}, b.ctx.Done())
	b.provider.SetInformers(b.factory)
}

func (b *bed) run() {
	b.factory.Start(b.ctx.Done())
	b.factory.WaitForCacheSync(b.ctx.Done())
}

// hold lets time pass, and what is due then happen.
func (b *bed) hold(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// ready sets the Ready condition of a node.
func (b *bed) ready(name string, status v1.ConditionStatus) {
	b.t.Helper()
	b.update(name, func(n *v1.Node) { setReady(n, status) })
}

// event returns the first event of a reason about an object of a kind, nil if there is none.
func (b *bed) event(kind, reason string) *v1.Event {
	b.t.Helper()
	for _, e := range b.eventsOf(kind, reason) {
		return e
	}
	return nil
}

func newMetrics() *controllersmetrics.ControllerManagerMetrics {
	return controllersmetrics.NewControllerManagerMetrics("test")
}

func setReady(n *v1.Node, status v1.ConditionStatus) {
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: status}}
}

func annotate(n *v1.Node, key, value string) { n.Annotations = with(n.Annotations, key, value) }
func label(n *v1.Node, key, value string)    { n.Labels = with(n.Labels, key, value) }

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// startNodes starts the framework's node and lifecycle controllers, and the one of labels and annotations.
func (b *bed) startNodes() {
	b.t.Helper()
	lifecycle := b.prepareNodes()
	b.run()
	go lifecycle.Run(b.ctx, newMetrics())
}

// startNodesOnly is startNodes without the lifecycle controller, which looks every five seconds, for tests of many hours.
func (b *bed) startNodesOnly() {
	b.t.Helper()
	b.prepareNodes()
	b.run()
}

func (b *bed) prepareNodes() *nodelifecycle.CloudNodeLifecycleController {
	b.t.Helper()
	if b.provider == nil {
		b.initialize()
	}
	informer := b.factory.Core().V1().Nodes()
	period := cmp.Or(b.options.StatusPeriod, cloudprovider.DefaultStatusPeriod)
	nodes, err := nodecontroller.NewCloudNodeController(informer, b.client, b.provider, period, 16, 16)
	if err != nil {
		b.t.Fatal(err)
	}
	lifecycle, err := nodelifecycle.NewCloudNodeLifecycleController(informer, b.client, b.provider, 5*time.Second, 8)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.provider.StartNodeInfo(b.ctx, b.factory); err != nil {
		b.t.Fatal(err)
	}
	go nodes.RunWithContext(b.ctx, newMetrics())
	return lifecycle
}

// startServices starts the framework's service controller with ours beside it.
func (b *bed) startServices() {
	b.t.Helper()
	if b.provider == nil {
		b.initialize()
	}
	err := b.provider.StartServiceController(b.ctx, cloudprovider.ServiceControllerOptions{
		Client: b.client, Informers: b.factory, ClusterName: "kubernetes", Workers: 4, Metrics: newMetrics(),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.run()
	// The framework's cache of Services has a data race between its workers for nodes and for Services (v0.37): the first
	// sync of the nodes is over before a test adds a Service.
	b.hold(time.Second)
}

// addNode makes a Node as a kubelet with an external cloud provider registers it.
func (b *bed) addNode(name, providerID string, change ...func(*v1.Node)) {
	b.t.Helper()
	n := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(fmt.Sprintf("uid-%d", b.uids.Add(1))), CreationTimestamp: metav1.Now(),
			Labels: map[string]string{v1.LabelHostname: name},
		},
		Spec: v1.NodeSpec{ProviderID: providerID, Taints: []v1.Taint{{
			Key: cloudproviderapi.TaintExternalCloudProvider, Value: "true", Effect: v1.TaintEffectNoSchedule,
		}}},
		Status: v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeHostName, Address: name}}},
	}
	setReady(n, v1.ConditionTrue)
	for _, f := range change {
		f(n)
	}
	if _, err := b.client.CoreV1().Nodes().Create(b.ctx, n, metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// Changes for addNode.
func notReady(n *v1.Node)    { setReady(n, v1.ConditionUnknown) }
func initialized(n *v1.Node) { n.Spec.Taints = nil }
func aged(n *v1.Node)        { n.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour)) }

// node returns a Node, nil if there is none.
func (b *bed) node(name string) *v1.Node {
	b.t.Helper()
	n, err := b.client.CoreV1().Nodes().Get(b.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

func (b *bed) update(name string, change func(*v1.Node)) {
	b.t.Helper()
	n := b.node(name)
	change(n)
	if _, err := b.client.CoreV1().Nodes().Update(b.ctx, n, metav1.UpdateOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

func isTainted(n *v1.Node, key string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == key })
}

// isInitialized says whether the framework has initialised a Node.
func (b *bed) isInitialized(name string) bool {
	b.t.Helper()
	n := b.node(name)
	return n != nil && !isTainted(n, cloudproviderapi.TaintExternalCloudProvider)
}

// eventsOf returns the events of a reason about objects of a kind, in the order of their creation.
func (b *bed) eventsOf(kind, reason string) []*v1.Event {
	b.t.Helper()
	synctest.Wait()
	list, err := b.client.CoreV1().Events("").List(b.ctx, metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	var found []*v1.Event
	for i := range list.Items {
		if e := &list.Items[i]; e.InvolvedObject.Kind == kind && e.Reason == reason {
			found = append(found, e)
		}
	}
	return found
}

// writes counts the writes to the API server, events and questions about permissions not among them.
func (b *bed) writes() []string {
	var list []string
	for _, a := range b.client.Actions() {
		switch a.GetVerb() {
		case "get", "list", "watch":
			continue
		}
		if r := a.GetResource().Resource; r != "events" && r != "selfsubjectaccessreviews" {
			list = append(list, strings.TrimSuffix(a.GetVerb()+" "+r+"/"+a.GetSubresource(), "/"))
		}
	}
	return list
}
