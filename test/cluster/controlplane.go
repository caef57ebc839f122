// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster/process"
)

const (
	// serviceCIDR is the range of ClusterIPs; its first address is that of the
	// Service kubernetes.
	serviceCIDR = "10.96.0.0/16"
	// podCIDR has room for 32,768 nodes with a /24 each.
	podCIDR = "10.128.0.0/9"
	issuer  = "https://kubernetes.default.svc.cluster.local"
	// etcdURL is a socket in the cluster's directory, which is the working
	// directory of all components. A relative name stays below the 108 bytes that
	// a socket's path may have.
	etcdURL = "unix://etcd.sock"
	// nobodyURL is advertised where something must be, to nobody.
	nobodyURL = "http://127.0.0.1:0"
)

// run starts a component of the control plane and keeps an eye on it.
func (c *Cluster) run(component string, flags ...string) (*process.Process, error) {
	p, err := c.group.Start(process.Spec{Name: component, Path: filepath.Join(c.binaries, component), Args: flags})
	if err != nil {
		return nil, err
	}
	go c.watch(p)
	return p, nil
}

func (c *Cluster) startEtcd() error {
	_, err := c.run("etcd",
		"--name=etcd",
		"--data-dir=etcd",
		"--unsafe-no-fsync", // nothing here outlives the process, let alone a power cut
		"--listen-client-urls="+etcdURL,
		"--advertise-client-urls="+nobodyURL,
		"--listen-peer-urls="+nobodyURL, // the kernel chooses a port that nobody looks for
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	)
	return err
}

// StartAPIServer starts kube-apiserver again after StopAPIServer, at the same
// address, and returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if err := c.launchAPIServer(); err != nil {
		return err
	}
	return c.poll(ctx, "kube-apiserver", c.ready)
}

func (c *Cluster) launchAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiserver != nil {
		return nil
	}
	policy, err := writeAuditPolicy(c.group.Dir())
	if err != nil {
		return err
	}
	flags := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.port.Addr().Port()),
		"--permit-port-sharing", // with our reservation of the port
		// Loopback can neither be advertised to nor reached from pods, and there
		// are none: the Service kubernetes has no endpoints.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--client-ca-file=" + c.pki.file("ca.crt"),
		"--tls-cert-file=" + c.pki.file("apiserver.crt"),
		"--tls-private-key-file=" + c.pki.file("apiserver.key"),
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + c.pki.file("service-account.pub"),
		"--service-account-signing-key-file=" + c.pki.file("service-account.key"),
		"--requestheader-client-ca-file=" + c.pki.file("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + c.path(auditLogFile),
		"--audit-log-maxsize=10240", // MiB; below it the file is never rotated
	}
	c.apiserver, err = c.run("kube-apiserver", append(flags, c.options.APIServerFlags...)...)
	return err
}

// StopAPIServer kills kube-apiserver, as an outage would. Connections are refused
// until StartAPIServer. Everything else keeps running.
func (c *Cluster) StopAPIServer() {
	c.mu.Lock()
	p := c.apiserver
	c.apiserver = nil
	c.mu.Unlock()
	if p != nil {
		p.Kill()
	}
}

// componentKubeconfig writes the kubeconfig of a control-plane component and returns the
// flags that make the component use it.
func (c *Cluster) componentKubeconfig(user string) ([]string, error) {
	path, err := c.KubeconfigFor(user)
	if err != nil {
		return nil, err
	}
	return []string{
		"--kubeconfig=" + path,
		"--leader-elect=false",
		"--secure-port=0", // its health and metrics are of no interest here
	}, nil
}

func (c *Cluster) startControllerManager() error {
	flags, err := c.componentKubeconfig("system:kube-controller-manager")
	if err != nil {
		return err
	}
	flags = append(flags,
		"--cloud-provider=external",
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+c.pki.file("service-account.key"),
		"--root-ca-file="+c.pki.file("ca.crt"),
		"--cluster-signing-cert-file="+c.pki.file("ca.crt"),
		"--cluster-signing-key-file="+c.pki.file("ca.key"),
		"--allocate-node-cidrs=true",
		"--cluster-cidr="+podCIDR,
		"--service-cluster-ip-range="+serviceCIDR,
		// The default of 20/s costs 5 s at start and would bound a fleet of nodes.
		"--kube-api-qps=500", "--kube-api-burst=1000",
	)
	if grace := c.options.NodeMonitorGracePeriod; grace > 0 {
		flags = append(flags,
			"--node-monitor-grace-period="+grace.String(),
			// How often it looks: its default of 5 s is too coarse for short graces.
			"--node-monitor-period="+min(5*time.Second, grace/4).String())
	}
	_, err = c.run("kube-controller-manager", append(flags, c.options.ControllerManagerFlags...)...)
	return err
}

func (c *Cluster) startScheduler() error {
	flags, err := c.componentKubeconfig("system:kube-scheduler")
	if err != nil {
		return err
	}
	_, err = c.run("kube-scheduler", append(flags, c.options.SchedulerFlags...)...)
	return err
}

// waitUsable waits for what the running components create at their start and what
// every user of a cluster takes for granted.
func (c *Cluster) waitUsable(ctx context.Context) error {
	err := c.poll(ctx, "the system namespaces", func(ctx context.Context) error {
		for _, name := range []string{metav1.NamespaceSystem, metav1.NamespaceDefault, v1.NamespaceNodeLease} {
			if _, err := c.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || !c.options.ControllerManager {
		return err
	}
	return c.poll(ctx, "kube-controller-manager to create the default service account", func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// LogTails returns the last lines of the log of every process.
func (c *Cluster) LogTails(lines int) string {
	var text strings.Builder
	seen := map[string]bool{}
	for _, p := range c.group.Processes() {
		if !seen[p.LogPath()] { // restarts share a log
			fmt.Fprintf(&text, "--- %s\n%s\n", p.LogPath(), p.LogTail(lines))
		}
		seen[p.LogPath()] = true
	}
	return text.String()
}
