// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster/process"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// podCIDRs is the range from which the cluster takes the pod CIDRs of nodes.
const podCIDRs = "10.128.0.0/9"

// machine is the machine of a node: a network namespace with a kube-proxy, and the pods on it.
type machine struct {
	index int
	name  string // of the Node and of the network namespace
	cidr  netip.Prefix
	proxy *process.Process
	pods  []*pod
	next  netip.Addr // address of the next pod
}

// gateway is the address of the node as its pods see it.
func (m *machine) gateway() netip.Addr { return m.cidr.Addr().Next() }

// link is the node's end in the bridge.
func (m *machine) link() string { return fmt.Sprintf("node%d", m.index) }

// boot makes the machine of the i-th node, whose Node exists, and starts its kube-proxy.
func (l *lab) boot(i int) *machine {
	l.t.Helper()
	m := &machine{index: i, name: testbed.NodeName(i)}
	l.until("pod CIDR of "+m.name, func() (bool, string) {
		cidr := l.node(i).Spec.PodCIDR
		if cidr == "" {
			return false, "none"
		}
		m.cidr = netip.MustParsePrefix(cidr)
		return true, ""
	})
	m.next = m.gateway().Next()
	run(l.t, "ip", "netns", "add", m.name)
	ip(l.t, "",
		"link add "+m.link()+" type veth peer name eth0 netns "+m.name,
		"link set "+m.link()+" master "+nodeBridge,
		"link set "+m.link()+" up",
	)
	ip(l.t, m.name,
		"link set lo up",
		"address add "+testbed.NodeIP(i)+"/24 dev eth0",
		"link set eth0 up",
		"route add default via "+nodeGateway,
	)
	sysctls(l.t, m.name, "net.ipv4.ip_forward=1")
	l.machines = append(l.machines, m)
	l.podRoutes(m)
	l.startProxy(m)
	return m
}

// podRoutes are what the cloud's route table would hold: each pod CIDR leads to its node.
func (l *lab) podRoutes(added *machine) {
	l.t.Helper()
	ip(l.t, "", l.podRoute(added))
	for _, m := range l.machines {
		if m != nil && m != added {
			ip(l.t, m.name, l.podRoute(added))
			ip(l.t, added.name, l.podRoute(m))
		}
	}
}

func (l *lab) podRoute(m *machine) string {
	return fmt.Sprintf("route replace %s via %s", m.cidr.Masked(), testbed.NodeIP(m.index))
}

// startProxy starts the kube-proxy of a machine and waits until it has done its first work.
func (l *lab) startProxy(m *machine) {
	l.t.Helper()
	config := filepath.Join(l.Cluster.Dir(), m.name+"-kube-proxy.yaml")
	text := fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: %s}
mode: nftables
clusterCIDR: %s
hostnameOverride: %s
oomScoreAdj: 0
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`, l.proxyKubeconfig(), podCIDRs, m.name)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	path, args := inside(l.t, m.name, filepath.Join(l.nodePrograms, "kube-proxy"), "--config="+config, "-v=2")
	var err error
	m.proxy, err = l.Cluster.StartProcess(process.Spec{
		Name: "kube-proxy-" + m.name, Path: path, Args: args, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.until("kube-proxy of "+m.name, func() (bool, string) {
		select {
		case <-m.proxy.Done():
			l.t.Fatalf("kube-proxy of %s ended: %v\n%s", m.name, m.proxy.Err(), m.proxy.LogTail(20))
		default:
		}
		code, err := l.status(fmt.Sprintf("http://%s:10256/healthz", testbed.NodeIP(m.index)))
		return code == http.StatusOK, fmt.Sprintf("status %d, %v; %s", code, err, m.proxy.LogTail(3))
	})
	// Answers of kube-proxy are kept for two minutes after a connection has ended; there are many connections here.
	sysctls(l.t, m.name, "net.netfilter.nf_conntrack_tcp_timeout_time_wait=10")
}

// proxyKubeconfig is that of kube-proxy, with an address of the API server that nodes reach.
func (l *lab) proxyKubeconfig() string {
	l.t.Helper()
	path, err := l.Cluster.KubeconfigFor("system:kube-proxy")
	if err != nil {
		l.t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, c := range config.Clusters {
		at, err := netip.ParseAddrPort(c.Server[len("https://"):])
		if err != nil {
			l.t.Fatal(err)
		}
		c.Server, c.TLSServerName = fmt.Sprintf("https://%s:%d", nodeGateway, at.Port()), "localhost"
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// shutDown ends a machine, with kube-proxy and pods.
func (l *lab) shutDown(m *machine) {
	l.t.Helper()
	for _, p := range m.pods {
		p.process.Kill()
		run(l.t, "ip", "netns", "del", p.name)
	}
	m.proxy.Kill()
	ip(l.t, "", "link del "+m.link())
	run(l.t, "ip", "netns", "del", m.name)
	for i, other := range l.machines {
		if other == m {
			l.machines[i] = nil
		} else if other != nil {
			ip(l.t, other.name, "route del "+m.cidr.Masked().String())
		}
	}
	ip(l.t, "", "route del "+m.cidr.Masked().String())
}

// pod is a pod on a machine: a process in a network namespace of its own.
type pod struct {
	name    string
	address netip.Addr
	machine *machine
	process *process.Process
}

// startPod does what scheduler and kubelet would: it creates a Pod on a node, runs it, and reports it as ready.
func (l *lab) startPod(name string, on *machine) *pod {
	l.t.Helper()
	p := &pod{name: name, machine: on, address: on.next}
	on.next = on.next.Next()
	run(l.t, "ip", "netns", "add", name)
	link := fmt.Sprintf("pod%d", p.address.As4()[3])
	ip(l.t, on.name,
		"link add "+link+" type veth peer name eth0 netns "+name,
		fmt.Sprintf("address add %s/32 dev %s", on.gateway(), link),
		"link set "+link+" up",
		fmt.Sprintf("route add %s/32 dev %s src %s", p.address, link, on.gateway()),
	)
	ip(l.t, name,
		"link set lo up",
		fmt.Sprintf("address add %s/32 dev eth0", p.address),
		"link set eth0 up",
		fmt.Sprintf("route add %s dev eth0 scope link", on.gateway()),
		fmt.Sprintf("route add default via %s", on.gateway()),
	)
	self, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	path, args := inside(l.t, name, self)
	p.process, err = l.Cluster.StartProcess(process.Spec{Name: "pod-" + name, Path: path, Args: args, Env: []string{podVariable + "=" + name}})
	if err != nil {
		l.t.Fatal(err)
	}
	on.pods = append(on.pods, p)
	l.until("pod "+name, func() (bool, string) {
		_, err := l.stats(p)
		return err == nil, fmt.Sprintf("%v; %s", err, p.process.LogTail(3))
	})
	l.registerPod(p)
	return p
}

// registerPod creates the Pod and reports it as ready.
func (l *lab) registerPod(p *pod) {
	l.t.Helper()
	pods := l.Cluster.Client().CoreV1().Pods(v1.NamespaceDefault)
	object, err := pods.Create(l.ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.name, Labels: map[string]string{"app": "web"}},
		Spec: v1.PodSpec{
			NodeName:   p.machine.name,
			Containers: []v1.Container{{Name: "web", Image: "none", Ports: []v1.ContainerPort{{ContainerPort: podPort}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	now := metav1.Now()
	object.Status = v1.PodStatus{
		Phase: v1.PodRunning, StartTime: &now, PodIP: p.address.String(), PodIPs: []v1.PodIP{{IP: p.address.String()}},
		HostIP: testbed.NodeIP(p.machine.index), HostIPs: []v1.HostIP{{IP: testbed.NodeIP(p.machine.index)}},
		Conditions: []v1.PodCondition{
			{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: now},
			{Type: v1.PodInitialized, Status: v1.ConditionTrue, LastTransitionTime: now},
			{Type: v1.ContainersReady, Status: v1.ConditionTrue, LastTransitionTime: now},
			{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: now},
		},
	}
	if _, err := pods.UpdateStatus(l.ctx, object, metav1.UpdateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// terminate begins the deletion of a Pod: its endpoints are terminating, and its process runs on.
func (l *lab) terminate(p *pod) {
	l.t.Helper()
	grace := int64((10 * time.Minute).Seconds())
	err := l.Cluster.Client().CoreV1().Pods(v1.NamespaceDefault).Delete(l.ctx, p.name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
	if err != nil {
		l.t.Fatal(err)
	}
}

// finish ends the process of a terminating Pod, as a kubelet would at the end of the grace period.
func (l *lab) finish(p *pod) {
	l.t.Helper()
	p.process.Kill()
	run(l.t, "ip", "netns", "del", p.name)
	for i, other := range p.machine.pods {
		if other == p {
			p.machine.pods = append(p.machine.pods[:i], p.machine.pods[i+1:]...)
			break
		}
	}
	err := l.Cluster.Client().CoreV1().Pods(v1.NamespaceDefault).Delete(l.ctx, p.name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	if err != nil {
		l.t.Fatal(err)
	}
}

// stats asks a pod what it has done, past all balancers.
func (l *lab) stats(p *pod) (podStats, error) {
	var s podStats
	res, err := l.http.Get(fmt.Sprintf("http://%s:%d/", p.address, podStatPort))
	if err != nil {
		return s, err
	}
	defer res.Body.Close()
	return s, json.NewDecoder(res.Body).Decode(&s)
}

// status is the status code of a GET request from the region.
func (l *lab) status(url string) (int, error) {
	ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	res, err := l.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return res.StatusCode, nil
}
