// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2/textlogger"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/traffic"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// waitLimit bounds every wait for something that must happen. A machine under load needs a fraction of it.
const waitLimit = 4 * time.Minute

// lab is a region whose balancers forward, a cluster with machines, and clients.
type lab struct {
	*testbed.Bed

	t            *testing.T
	ctx          context.Context
	body         *traffic.Body
	http         *http.Client
	nodePrograms string     // directory of kube-proxy
	machines     []*machine // by the index of their node; nil for one that was shut down
}

// newLab starts everything, with three nodes.
func newLab(t *testing.T) *lab {
	t.Helper()
	if os.Getenv(insideVariable) == "" {
		t.Skip("needs root: network namespaces, nftables, and addresses of its own")
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Fatal("there is no nft, which kube-proxy uses: install nftables (make test-traffic does, with apt)")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	t.Cleanup(cancel)
	programs, err := cluster.BuildNode(ctx, "", os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	newNetwork(t)
	diary := &diary{}
	body := traffic.New(traffic.Options{
		Logger:       textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(1), textlogger.Output(diary))),
		OwnAddresses: true,
		Direct:       true,
		Speed:        10,              // checks each second where they are set to ten
		Linger:       2 * time.Minute, // requests under way on a node that leaves may end: see docs/simulator.md
	})
	world := testbed.DemoWorld()
	kubelets := testbed.DemoNodes(world, true)
	kubelets.Labels = func(i int) map[string]string {
		if i < len(world.Instances) {
			return nil
		}
		return map[string]string{v1.LabelNodeExcludeBalancers: "true"} // until its kube-proxy has written its rules: see ready
	}
	bed := testbed.New(t, testbed.Options{
		World: world, Nodes: kubelets,
		Region: ocisim.Options{Seed: 1, Durations: testbed.QuickDurations(), Balancers: body},
		Cluster: cluster.Options{
			ControllerManager: true,
			APIServerFlags:    []string{"--bind-address=0.0.0.0"}, // for the nodes
			TempDir:           scratch,
		},
	})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("last words of the balancers:\n%s", diary.tail(60))
		}
		if err := bed.Region.Close(); err != nil {
			t.Errorf("close the region: %v", err)
		}
	})
	l := &lab{
		Bed: bed, t: t, ctx: ctx, body: body, nodePrograms: programs,
		http: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	l.runCCM()
	for i := range world.Instances {
		l.boot(i)
	}
	t.Cleanup(func() {
		for _, m := range l.machines {
			if m != nil {
				l.shutDown(m)
			}
		}
	})
	return l
}

// diary keeps what is written to it, but for the complaints of balancers without a backend, of which there are many.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "No backend") {
		return len(p), nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

func (d *diary) tail(n int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.lines[max(0, len(d.lines)-n):], "\n")
}

// runCCM starts the cloud-controller-manager and waits until it knows the nodes.
func (l *lab) runCCM() {
	l.t.Helper()
	ccm, err := l.StartCCM(l.ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		select {
		case <-ccm.Done():
			if !ccm.Asked() {
				l.t.Errorf("the cloud-controller-manager ended by itself: %v", ccm.Err())
			}
		default:
		}
	})
	l.eventually("nodes initialised", l.NodesInitialized)
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

func (l *lab) node(i int) *v1.Node {
	l.t.Helper()
	n, err := l.Cluster.Client().CoreV1().Nodes().Get(l.ctx, testbed.NodeName(i), metav1.GetOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

func (l *lab) patchNode(i int, patch string) {
	l.t.Helper()
	_, err := l.Cluster.Client().CoreV1().Nodes().Patch(l.ctx, testbed.NodeName(i), types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
}

// Prefixes of annotations.
const (
	lbPrefix  = "service.beta.kubernetes.io/oci-load-balancer-"
	nlbPrefix = "oci-network-load-balancer.oraclecloud.com/"
)

// service creates a Service for all pods.
func (l *lab) service(o *offer) {
	l.t.Helper()
	svc := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: o.name, Annotations: map[string]string{"oci.oraclecloud.com/load-balancer-type": o.kind}},
		Spec: v1.ServiceSpec{
			Type: v1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: o.policy, Selector: map[string]string{"app": "web"},
			Ports: []v1.ServicePort{{Name: "web", Port: int32(o.port()), TargetPort: intstr.FromInt32(podPort)}},
		},
	}
	for key, value := range o.annotations {
		svc.Annotations[key] = value
	}
	if _, err := l.Cluster.Client().CoreV1().Services(v1.NamespaceDefault).Create(l.ctx, svc, metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
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

// ready waits until the kube-proxies of machines have written their rules for a Service. Until then a node refuses
// connections to its node ports, although kube-proxy answers health checks with 200, from its start on: its rules follow some
// 100 ms later, and those of a new Service a second later. In the cloud a balancer takes longer than that to be made or
// changed; here it does not.
func (l *lab) ready(name string, machines ...*machine) {
	l.t.Helper()
	svc, err := l.Cluster.Client().CoreV1().Services(v1.NamespaceDefault).Get(l.ctx, name, metav1.GetOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, m := range machines {
		address := testbed.NodeIP(m.index)
		l.until(fmt.Sprintf("%s is ready for %s", m.name, name), func() (bool, string) {
			if svc.Spec.ExternalTrafficPolicy == ownNodes {
				code, err := l.status(fmt.Sprintf("http://%s:%d/healthz", address, svc.Spec.HealthCheckNodePort))
				return code == http.StatusOK || (code == http.StatusServiceUnavailable && len(m.pods) == 0), fmt.Sprintf("status %d, %v", code, err)
			}
			conn, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", address, svc.Spec.Ports[0].NodePort), 10*time.Second)
			if err != nil {
				return false, err.Error()
			}
			conn.Close()
			return true, ""
		})
	}
}

// served waits for the address of a Service and for its listener, and returns the address.
func (l *lab) served(name string) (address string) {
	l.t.Helper()
	l.eventually(name+" has an address", func(ctx context.Context) error {
		svc, err := l.ServiceReady(ctx, v1.NamespaceDefault, name)
		if err == nil {
			address = svc.Status.LoadBalancer.Ingress[0].IP
		}
		return err
	})
	l.until(name+" listens", func() (bool, string) {
		for _, one := range l.body.Listeners() {
			if slices.Contains(one.Addresses, address) {
				return one.Listen != "", one.Problem
			}
		}
		return false, "no balancer"
	})
	l.ready(name, l.machines...)
	return address
}

// backends are the addresses of the backends of a Service's port, with their health: "10.0.10.11 OK".
func (l *lab) backends(o *offer) []string {
	address, port := o.address, o.port()
	var rows []string
	row := func(id, set, ip, name string) {
		health := l.body.BackendHealth(id, set, name)
		rows = append(rows, fmt.Sprintf("%s %s", ip, health))
	}
	for _, v := range l.Region.LoadBalancers() {
		for _, li := range v.Listeners {
			if len(v.IpAddresses) > 0 && *v.IpAddresses[0].IpAddress == address && *li.Port == port {
				for _, b := range v.BackendSets[*li.DefaultBackendSetName].Backends {
					row(*v.Id, *li.DefaultBackendSetName, *b.IpAddress, *b.Name)
				}
			}
		}
	}
	for _, v := range l.Region.NetworkLoadBalancers() {
		for _, li := range v.Listeners {
			for _, a := range v.IpAddresses {
				if *a.IpAddress != address || *li.Port != port {
					continue
				}
				for _, b := range v.BackendSets[*li.DefaultBackendSetName].Backends {
					row(*v.Id, *li.DefaultBackendSetName, *b.IpAddress, *b.Name)
				}
			}
		}
	}
	slices.Sort(rows)
	return rows
}

// wantBackends waits until the port of a Service has exactly these nodes: those that are healthy, and the others.
func (l *lab) wantBackends(o *offer, healthy, others []int) {
	l.t.Helper()
	want := make([]string, 0, len(healthy)+len(others))
	for _, i := range healthy {
		want = append(want, testbed.NodeIP(i)+" OK")
	}
	for _, i := range others {
		want = append(want, testbed.NodeIP(i)+" CRITICAL")
	}
	slices.Sort(want)
	l.until("backends of "+o.name, func() (bool, string) {
		got := l.backends(o)
		return slices.Equal(got, want), fmt.Sprintf("%s; want %s", strings.Join(got, ", "), strings.Join(want, ", "))
	})
}
