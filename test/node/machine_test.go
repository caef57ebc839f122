// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster/process"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// machine is the machine of a node: namespaces with containerd and a kubelet. What it has on its disk survives shutDown.
type machine struct {
	index int
	name  string // of the Node, of the network namespace, and of the control group
	dir   string

	init       *process.Process // nil while it is off
	pid        int              // of its first process, as we see it
	containerd *process.Process
	kubelet    *process.Process
	kubeconfig string
	route      string // that of its pods, once it is known
}

// address is that of the node.
func (m *machine) address() string { return testbed.NodeIP(m.index) }

// socket is that of containerd, on the node.
const socket = "/run/containerd/containerd.sock"

// newMachine makes the machine of the i-th instance. It is off.
func (l *lab) newMachine(i int) *machine {
	l.t.Helper()
	m := &machine{index: i, name: testbed.NodeName(i), dir: l.machineDir(i)}
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		l.t.Fatal(err)
	}
	text, err := json.Marshal(furniture{Name: m.name})
	if err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.dir, "node.json"), text, 0o600); err != nil {
		l.t.Fatal(err)
	}
	// Device nodes are in memory, as on every node. It is our mount, because the region's disks appear there.
	dev := filepath.Join(m.dir, "dev")
	if err := os.MkdirAll(dev, 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dev, "tmpfs", 0, "mode=755"); err != nil {
		l.t.Fatal(err)
	}
	if err := makeCgroup(suite + "/" + m.name); err != nil {
		l.t.Fatal(err)
	}
	link := fmt.Sprintf("node%d", i)
	if out, err := execute("ip", "netns", "add", m.name); err != nil {
		l.t.Fatal(out, err)
	}
	ip(l.t, "",
		"link add "+link+" type veth peer name eth0 netns "+m.name,
		"link set "+link+" master "+nodeBridge,
		"link set "+link+" up",
	)
	ip(l.t, m.name,
		"link set lo up",
		"address add "+m.address()+"/24 dev eth0",
		"link set eth0 up",
		"route add default via "+nodeGateway,
	)
	l.writeNodeConfig(m)
	l.t.Cleanup(func() { l.scrap(m) })
	return m
}

// scrap takes away what is left of a machine that is off, for the machines of the next test.
func (l *lab) scrap(m *machine) {
	l.t.Helper()
	// A link goes at once, and the namespace of its other end some time later.
	ip(l.t, "", fmt.Sprintf("link del node%d", m.index))
	if _, err := execute("ip", "netns", "del", m.name); err != nil {
		l.t.Error(err)
	}
	if err := unix.Unmount(filepath.Join(m.dir, "dev"), unix.MNT_DETACH); err != nil {
		l.t.Error(err)
	}
	if err := os.RemoveAll(m.dir); err != nil {
		l.t.Error(err)
	}
}

// writeNodeConfig writes what containerd and the kubelet of a machine are told.
func (l *lab) writeNodeConfig(m *machine) {
	l.t.Helper()
	path, err := l.Cluster.KubeconfigFor("system:node:"+m.name, "system:nodes")
	if err != nil {
		l.t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, c := range config.Clusters {
		c.Server = "https://" + apiAddress
	}
	m.kubeconfig = filepath.Join(m.dir, "kubelet.kubeconfig")
	if err := clientcmd.WriteToFile(*config, m.kubeconfig); err != nil {
		l.t.Fatal(err)
	}
	for name, text := range map[string]string{
		"containerd.toml": containerdConfig(m, l.runtime),
		"cni.tmpl":        cniConfig(m),
		"kubelet.yaml":    kubeletConfig(m),
		"resolv.conf":     "nameserver 127.0.0.1\n",
	} {
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600); err != nil {
			l.t.Fatal(err)
		}
	}
}

// powerOn starts a machine with all that runs on it.
func (l *lab) powerOn(m *machine) {
	l.t.Helper()
	self, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	ready := filepath.Join(m.dir, readyFile)
	_ = os.Remove(ready)
	m.init, err = l.Cluster.StartProcess(process.Spec{
		Name: m.name, Path: l.tool("nsenter"), Env: []string{initVariable + "=" + m.dir, "PATH=" + os.Getenv("PATH")},
		Args: []string{
			"--net=/run/netns/" + m.name, "--", l.tool("unshare"),
			"--mount", "--propagation", "slave", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc", self,
		},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.until(m.name+" is furnished", func() (bool, string) {
		l.alive(m.init)
		_, err := os.Stat(ready)
		return err == nil, fmt.Sprint(err)
	})
	// nsenter has become unshare, whose only child is the first process of the node.
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", m.init.PID(), m.init.PID()))
	if err != nil {
		l.t.Fatal(err)
	}
	if m.pid, err = strconv.Atoi(strings.TrimSpace(string(children))); err != nil {
		l.t.Fatal(err)
	}
	l.startContainerd(m)
	l.startKubelet(m)
}

// powerOff ends everything that runs on a machine, as if the plug were pulled.
func (l *lab) powerOff(m *machine) {
	l.t.Helper()
	m.init.Kill()
	m.containerd.Kill()
	m.kubelet.Kill()
	m.init = nil
}

// inside turns a command into one that runs on a machine.
func (m *machine) inside(path string, args ...string) []string {
	return append([]string{"--target", strconv.Itoa(m.pid), "--mount", "--net", "--uts", "--ipc", "--pid", "--", path}, args...)
}

// run runs a program on a machine.
func (l *lab) run(m *machine, path string, args ...string) (string, error) {
	return execute("nsenter", m.inside(path, args...)...)
}

func (l *lab) startOn(m *machine, name, path string, args ...string) *process.Process {
	l.t.Helper()
	p, err := l.Cluster.StartProcess(process.Spec{
		Name: m.name + "-" + name, Path: l.tool("nsenter"), Args: m.inside(path, args...),
		Env: []string{"PATH=" + l.runtime + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TMPDIR=/tmp"},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// startContainerd starts the container runtime, and gives it all images.
func (l *lab) startContainerd(m *machine) {
	l.t.Helper()
	m.containerd = l.startOn(m, "containerd", filepath.Join(l.runtime, "containerd"), "--config", filepath.Join(m.dir, "containerd.toml"))
	ctr := filepath.Join(l.runtime, "ctr")
	l.until("containerd of "+m.name, func() (bool, string) {
		l.alive(m.containerd)
		out, err := l.run(m, ctr, "--address", socket, "version")
		return err == nil, out
	})
	for _, archive := range l.archives {
		if out, err := l.run(m, ctr, "--address", socket, "--namespace", "k8s.io", "images", "import", "--local", archive); err != nil {
			l.t.Fatal(out, err)
		}
	}
}

// startKubelet starts the kubelet of a machine.
func (l *lab) startKubelet(m *machine) {
	l.t.Helper()
	m.kubelet = l.startOn(m, "kubelet", filepath.Join(l.nodePrograms, "kubelet"),
		"--config="+filepath.Join(m.dir, "kubelet.yaml"), "--kubeconfig="+m.kubeconfig, "--hostname-override="+m.name,
		"--node-ip="+m.address(), "--cloud-provider=external", "--root-dir=/var/lib/kubelet", "--cert-dir=/var/lib/kubelet/pki", "-v=2")
}

// connect routes the pods of a machine, as the cloud's route table would, once the Node has a range for them.
func (l *lab) connect(m *machine) {
	l.t.Helper()
	l.until("range for the pods of "+m.name, func() (bool, string) {
		l.alive(m.kubelet)
		node, err := l.Cluster.Client().CoreV1().Nodes().Get(l.ctx, m.name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		m.route = node.Spec.PodCIDR
		return m.route != "", "none"
	})
	ip(l.t, "", fmt.Sprintf("route replace %s via %s", m.route, m.address()))
}

// alive ends the test if a process has ended.
func (l *lab) alive(p *process.Process) {
	l.t.Helper()
	select {
	case <-p.Done():
		l.t.Fatalf("%s has ended: %v\n%s", p.Name(), p.Err(), p.LogTail(30))
	default:
	}
}
