// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo shows the main job on a simulated region: a real etcd and kube-apiserver, three simulated nodes, the real
// cloud-controller-manager under its shipped role, one Service on a load balancer and one on a network load balancer, and the
// security rules that were opened. It stays up until Ctrl-C; with --once it deletes the Services, shows that the region is as
// it was before, and ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// stepTimeout bounds each step; it is far above what a busy machine needs.
const stepTimeout = 5 * time.Minute

func main() { os.Exit(show()) }

// show returns the exit code.
func show() int {
	once := flag.Bool("once", false, "delete the Services at the end, show that the region is empty again, and exit")
	bin := flag.String("bin", "", "directory of the built binaries (default: build them)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *bin, *once); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	return 0
}

type demo struct {
	bed   *testbed.Bed
	ccm   *testbed.CCM
	out   io.Writer
	began time.Time

	before []byte // snapshot of the region before anything was made
}

func run(ctx context.Context, out io.Writer, bin string, once bool) (err error) {
	d := &demo{out: out, began: time.Now()}
	d.say("starting a simulated OCI region, etcd and kube-apiserver")
	d.bed, err = testbed.Start(ctx, testbed.Options{
		Region:   ocisim.Options{Seed: 1, Durations: demoDurations()},
		BinDir:   bin,
		Progress: out,
	})
	if err != nil {
		return quiet(ctx, err)
	}
	defer func() { err = errors.Join(err, d.bed.Stop()) }()
	d.before = d.bed.Region.Snapshot()
	if err := d.mainJob(ctx); err != nil {
		return quiet(ctx, err)
	}
	if once {
		return quiet(ctx, d.cleanUp(ctx))
	}
	d.printUsage()
	select {
	case <-ctx.Done():
		d.say("stopping: the region, the cluster and their files go")
		return nil
	case <-d.ccm.Done():
		return fmt.Errorf("the cloud-controller-manager ended by itself; its log is %s", d.ccm.Log)
	}
}

// quiet makes an interruption by the user a normal end.
func quiet(ctx context.Context, err error) error {
	if context.Cause(ctx) == nil {
		return err
	}
	return nil
}

// demoDurations are those of the real services, shortened so that a demo takes seconds.
func demoDurations() map[string]ocisim.Range {
	durations := testbed.QuickDurations()
	for name := range durations {
		if strings.HasSuffix(name, ".create") {
			durations[name] = ocisim.Range{Min: 3 * time.Second, Max: 6 * time.Second}
		}
	}
	return durations
}

func (d *demo) mainJob(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	var err error
	d.say("starting oci-cloud-controller-manager as ServiceAccount kube-system/cloud-controller-manager")
	if d.ccm, err = d.bed.StartCCM(ctx); err != nil {
		return err
	}
	ctx, cancel = d.whileRunning(ctx)
	defer cancel()
	d.say("waiting for the nodes to be initialised")
	if err := d.bed.NodesInitialized(ctx); err != nil {
		return err
	}
	d.say("creating Services web-lb (load balancer) and web-nlb (network load balancer)")
	for _, svc := range services() {
		if _, err := d.bed.Cluster.Client().CoreV1().Services(svc.Namespace).Create(ctx, svc, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, svc := range services() {
		if _, err := d.bed.ServiceReady(ctx, svc.Namespace, svc.Name); err != nil {
			return err
		}
	}
	return d.printResult(ctx)
}

// whileRunning ends the context when the cloud-controller-manager ends by itself, so that no wait outlives it.
func (d *demo) whileRunning(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-d.ccm.Done():
			cancel(fmt.Errorf("the cloud-controller-manager ended by itself: %w\n%s", d.ccm.Err(), d.ccm.LogTail(20)))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

func services() []*v1.Service {
	service := func(name string, annotations map[string]string) *v1.Service {
		return &v1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: annotations},
			Spec: v1.ServiceSpec{
				Type: v1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "web"},
				Ports: []v1.ServicePort{
					{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)},
					{Name: "https", Port: 443, TargetPort: intstr.FromInt32(8443)},
				},
			},
		}
	}
	return []*v1.Service{
		service("web-lb", nil),
		service("web-nlb", map[string]string{"oci.oraclecloud.com/load-balancer-type": "nlb"}),
	}
}

func (d *demo) printResult(ctx context.Context) error {
	nodes, err := d.bed.Cluster.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintln(d.out)
	w := tabwriter.NewWriter(d.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tPROVIDER ID\tZONE\tTYPE\tADDRESSES")
	for _, n := range nodes.Items {
		var addresses []string
		for _, a := range n.Status.Addresses {
			addresses = append(addresses, string(a.Type)+"="+a.Address)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", n.Name, n.Spec.ProviderID, n.Labels[v1.LabelTopologyZone],
			n.Labels[v1.LabelInstanceTypeStable], strings.Join(addresses, " "))
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "SERVICE\tBALANCER\tADDRESSES\tPORTS")
	for _, want := range services() {
		svc, err := d.bed.Cluster.Client().CoreV1().Services(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var addresses, ports []string
		for _, in := range svc.Status.LoadBalancer.Ingress {
			addresses = append(addresses, in.IP)
		}
		for _, p := range svc.Spec.Ports {
			ports = append(ports, fmt.Sprintf("%d/%s", p.Port, p.Protocol))
		}
		fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\n", svc.Namespace, svc.Name, svc.Annotations["oci.oraclecloud.com/load-balancer-ocid"],
			strings.Join(addresses, " "), strings.Join(ports, " "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := d.printRules(); err != nil {
		return err
	}
	return d.printCalls()
}

// printRules shows the security rules that were opened for the Services.
func (d *demo) printRules() error {
	fmt.Fprintln(d.out)
	w := tabwriter.NewWriter(d.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SECURITY LIST\tRULE\tDESCRIPTION")
	for _, row := range d.rules() {
		fmt.Fprintln(w, row)
	}
	return w.Flush()
}

// rules are the rows of printRules: what carries the mark of our rules.
func (d *demo) rules() []string {
	var rows []string
	row := func(list core.SecurityList, direction, peer string, tcp *core.TcpOptions, description *string) {
		if description == nil || !strings.HasPrefix(*description, oracle.ListRuleMark+" ") || tcp == nil || tcp.DestinationPortRange == nil {
			return
		}
		rows = append(rows, fmt.Sprintf("%s\t%s TCP %d %s\t%s", *list.DisplayName, direction, *tcp.DestinationPortRange.Min, peer, *description))
	}
	for _, list := range d.bed.Region.SecurityLists() {
		for _, r := range list.IngressSecurityRules {
			row(list, "ingress", "from "+*r.Source, r.TcpOptions, r.Description)
		}
		for _, r := range list.EgressSecurityRules {
			row(list, "egress", "to "+*r.Destination, r.TcpOptions, r.Description)
		}
	}
	return rows
}

// printCalls shows the calls to the region by operation.
func (d *demo) printCalls() error {
	counts := d.bed.Region.Counts()
	names := make([]string, 0, len(counts))
	total := 0
	for name, n := range counts {
		names, total = append(names, name), total+n
	}
	slices.Sort(names)
	fmt.Fprintln(d.out)
	w := tabwriter.NewWriter(d.out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "OCI OPERATION\tCALLS\n")
	for _, name := range names {
		fmt.Fprintf(w, "%s\t%d\n", name, counts[name])
	}
	fmt.Fprintf(w, "total\t%d\n\n", total)
	return w.Flush()
}

func (d *demo) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	d.say("deleting both Services")
	for _, svc := range services() {
		if err := d.bed.Cluster.Client().CoreV1().Services(svc.Namespace).Delete(ctx, svc.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	for _, svc := range services() {
		if err := d.bed.ServiceGone(ctx, svc.Namespace, svc.Name); err != nil {
			return err
		}
	}
	lbs, nlbs := d.bed.Region.LoadBalancers(), d.bed.Region.NetworkLoadBalancers()
	rules := d.rules()
	fmt.Fprintf(d.out, "\nleft in the region: %d load balancers, %d network load balancers, %d security rules\n", len(lbs), len(nlbs), len(rules))
	report, err := oracle.Check(ctx, oracle.InProcess(d.bed.Region), oracle.Question{
		Before: d.before, Settled: true,
		Us: oracle.Us{
			Types:  []string{"load balancer", "network load balancer"},
			Writes: append(oracle.RuleWrites(), ocisim.ServiceLoadBalancer, ocisim.ServiceNetworkLoadBalancer),
		},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(d.out, report)
	if len(lbs)+len(nlbs)+len(rules) > 0 || report.Err() != nil {
		return errors.New("the region is not as it was before")
	}
	d.say("done")
	return nil
}

func (d *demo) printUsage() {
	fmt.Fprintf(d.out, `It stays up. In another terminal:

  export KUBECONFIG=%s
  %s get nodes,services -o wide
  %s describe service web-lb

  curl -s %s/calls            # the calls to the simulated region; docs/simulator.md has more
  curl -s %s/state

  tail -f %s

To point a program of an OCI SDK at the region (user principal %s):

  export %s

Ctrl-C ends everything and removes what was written.
`, d.bed.Cluster.KubeconfigPath(), d.bed.Cluster.KubectlPath(), d.bed.Cluster.KubectlPath(), d.bed.Server.AdminURL(), d.bed.Server.AdminURL(),
		d.ccm.Log, d.bed.User.Name, strings.Join(slices.Concat(d.bed.Server.Env(), d.bed.User.Env()), " "))
}

// say prints a step with the seconds since the start.
func (d *demo) say(step string) {
	fmt.Fprintf(d.out, "%6.1f s  %s\n", time.Since(d.began).Seconds(), step)
}
