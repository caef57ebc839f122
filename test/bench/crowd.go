// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster/nodes"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// What P13 is about, besides the nodes.
const (
	crowdServices = 500
	crowdPageSize = 1000
	crowdLatency  = 100 * time.Millisecond // of every call, L of the budgets
	crowdRate     = 20                     // calls per second in each direction, R of the budgets
	crowdImages   = 50                     // that a node reports; kubelet names at most as many

	// poolSize is how many nodes the Services send traffic to: a backend set holds 512 at most, so that Services of large
	// clusters choose their nodes by label.
	poolSize  = 10
	poolLabel = "bench.example/pool"
	poolValue = "ingress"

	notReadyNodes = 50
	notReadyWatch = time.Minute

	// crowdLimit bounds what is measured at one number of nodes.
	crowdLimit = 40 * time.Minute
)

// crowd is a cluster of many simulated kubelets and the cloud-controller-manager as a process, with a region that is as slow
// and as strict as the budgets say.
type crowd struct {
	nodes int
	bed   *testbed.Bed
	ccm   *testbed.CCM
	usage *usage // of ccm
	peak  int64  // resident memory of all processes so far, in bytes
	say   func(format string, args ...any)

	profiles string // directory for profiles; empty for none
	endUsage context.CancelFunc
}

// crowdFigures are what a cluster of so many nodes costs.
type crowdFigures struct {
	nodes int

	register time.Duration // until the simulated kubelets had made all Nodes
	join     time.Duration // from the first Node made until the last one initialised
	joinP99  time.Duration // of a node: made until initialised
	calls    int           // to OCI, for the join

	pass      time.Duration // median
	passCPU   time.Duration // mean
	passCalls int           // of the dearest pass
	idle      float64       // share of a core between passes

	lists, singles int // while nodes are not ready: rounds of lists, and reads of single instances, in notReadyWatch

	resident, peak int64 // bytes
}

// measureCrowd makes a cluster of n nodes and measures it.
func measureCrowd(ctx context.Context, n int, profiles string, say func(string, ...any)) (f crowdFigures, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, crowdLimit, fmt.Errorf("%d nodes took longer than %s", n, crowdLimit))
	defer cancel()
	say("starting etcd, kube-apiserver and the region")
	c := &crowd{nodes: n, say: say, profiles: profiles, endUsage: func() {}}
	if c.bed, err = testbed.Start(ctx, testbed.Options{
		Region:   ocisim.Options{Seed: 1, PageSize: crowdPageSize, Durations: testbed.QuickDurations()},
		World:    crowdWorld(n),
		Nodes:    crowdNodes(),
		Config:   crowdConfig,
		Progress: os.Stderr,
	}); err != nil {
		return f, err
	}
	defer func() {
		c.endUsage()
		if err != nil && c.ccm != nil {
			err = fmt.Errorf("%w\n%s", err, c.ccm.LogTail(10))
		}
		err = errors.Join(err, c.bed.Stop())
	}()
	f.nodes = n
	for _, step := range []func(context.Context, *crowdFigures) error{c.measureJoin, c.makeServices, c.measurePasses, c.measureNotReady} {
		if err := step(ctx, &f); err != nil {
			return f, err
		}
	}
	f.peak = c.peak
	return f, nil
}

// crowdConfig leaves security rules alone: a list has no room for the node ports of so many Services.
func crowdConfig(b *testbed.Bed) string { return testbed.WithoutRules(testbed.UserConfig(b)) }

// crowdWorld has a subnet for balancers and two private ones for nodes.
func crowdWorld(n int) ocisim.World {
	w := ocisim.World{
		Compartments: []ocisim.Compartment{{ID: testbed.Compartment, Name: "bench"}},
		VCNs:         []ocisim.VCN{{ID: testbed.VCN, Name: "bench", CIDRs: []string{"10.0.0.0/16"}}},
		Subnets: []ocisim.Subnet{
			{ID: testbed.PublicSubnet, Name: "load-balancers", CIDR: "10.0.0.0/18"},
			{Name: "nodes-0", CIDR: "10.0.64.0/18", Private: true},
			{Name: "nodes-1", CIDR: "10.0.128.0/18", Private: true},
		},
	}
	for i := range n {
		w.Instances = append(w.Instances, ocisim.Instance{
			ID: crowdInstance(i), Name: crowdName(i), BootVolumeGBs: -1,
			VNIC: ocisim.VNIC{Subnet: fmt.Sprintf("nodes-%d", i%2), PrivateIP: crowdIP(i)},
		})
	}
	return w
}

func crowdInstance(i int) string { return fmt.Sprintf("ocid1.instance.oc1.iad.aaaaaaaabench%05d", i) }
func crowdName(i int) string     { return fmt.Sprintf("node-%05d", i) }

// crowdIP is in one of the two subnets of nodes, above the addresses that OCI keeps for itself.
func crowdIP(i int) string {
	n := i/2 + 10
	return netip.AddrFrom4([4]byte{10, 0, byte(64 + 64*(i%2) + n>>8), byte(n)}).String()
}

// crowdNodes are kubelets that report their status as often as real ones do, and renew their leases, which the
// cloud-controller-manager does not look at, seldom.
func crowdNodes() nodes.Options {
	return nodes.Options{
		Count: -1, Name: crowdName, ProviderID: crowdInstance, NodeIP: crowdIP, Images: crowdImages, Workers: 32, RenewInterval: 10 * time.Minute,
		Labels: func(i int) map[string]string {
			if i < poolSize {
				return map[string]string{poolLabel: poolValue}
			}
			return nil
		},
	}
}

// crowdService is the i-th Service: load balancers and network load balancers in turn.
func crowdService(i int) *v1.Service {
	annotations := map[string]string{
		"service.beta.kubernetes.io/oci-load-balancer-internal": "true",
		"oci.oraclecloud.com/node-label-selector":               poolLabel + "=" + poolValue,
	}
	if i%2 == 1 {
		annotations = map[string]string{
			"oci.oraclecloud.com/load-balancer-type":                        "nlb",
			"oci-network-load-balancer.oraclecloud.com/internal":            "true",
			"oci-network-load-balancer.oraclecloud.com/node-label-selector": poolLabel + "=" + poolValue,
		}
	}
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("web-%d", i), Annotations: annotations},
		Spec: v1.ServiceSpec{
			Type: v1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "web"},
			Ports: []v1.ServicePort{{Name: "http", Port: 80}, {Name: "https", Port: 443}},
		},
	}
}

// strict makes the region as slow and as strict as the budgets say, or neither.
func (c *crowd) strict(on bool) error {
	return c.bed.Region.Configure(func(o *ocisim.Options) error {
		o.Latency, o.Read, o.Write = nil, ocisim.Rate{}, ocisim.Rate{}
		if on {
			o.Latency = map[string]ocisim.Range{"*": {Min: crowdLatency, Max: crowdLatency}}
			o.Read = ocisim.Rate{PerSecond: crowdRate, Burst: crowdRate}
			o.Write = o.Read
		}
		return nil
	})
}

// start starts the cloud-controller-manager, with the defaults of the binary, and waits until it works.
func (c *crowd) start(ctx context.Context, flags ...string) error {
	if c.profiles != "" {
		flags = append(flags, profileFlags()...)
	}
	var err error
	if c.ccm, err = c.bed.StartCCM(ctx, flags...); err != nil {
		return err
	}
	usageCtx, cancel := context.WithCancel(ctx)
	c.usage, c.endUsage = watchUsage(usageCtx, c.ccm.PID()), cancel
	return testbed.Until(ctx, func(context.Context) (bool, string) {
		text, err := os.ReadFile(c.ccm.Log)
		if err != nil {
			return false, err.Error()
		}
		return strings.Contains(string(text), "Waiting for informer caches to sync"), "the cloud-controller-manager is starting"
	})
}

// stop notes what memory the process has used, and ends it.
func (c *crowd) stop() error {
	_, peak, err := processMemory(c.ccm.PID())
	if err != nil {
		return err
	}
	c.peak = max(c.peak, peak)
	c.endUsage()
	if err := c.ccm.Terminate(); err != nil {
		return err
	}
	<-c.ccm.Done()
	return nil
}

// quiet waits until the region has had a number of calls, and then none for a while.
func (c *crowd) quiet(ctx context.Context, least int, silence time.Duration) error {
	last, since := -1, time.Now()
	return testbed.Until(ctx, func(context.Context) (bool, string) {
		n := total(c.bed.Region.Counts())
		if n != last {
			last, since = n, time.Now()
		}
		return n >= least && time.Since(since) >= silence, fmt.Sprintf("%d calls to OCI, the last one %s ago", n, time.Since(since).Round(time.Second))
	})
}

func total(counts map[string]int) int {
	n := 0
	for _, count := range slices.Collect(maps.Values(counts)) {
		n += count
	}
	return n
}
