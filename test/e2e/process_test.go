// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster/process"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

const (
	program = "oci-cloud-controller-manager"

	// endLimit bounds the end of a process after SIGTERM; kubelet gives it 30 s.
	endLimit = 20 * time.Second
)

// in is the lab for a subtest.
func (l *lab) in(t *testing.T) *lab {
	sub := *l
	sub.t = t
	return &sub
}

// launch starts the cloud-controller-manager like run, with an environment and flags that win over the bed's; it may
// end. The name is that of its log, and must be a new one.
func (l *lab) launch(name string, env []string, flags ...string) *testbed.CCM {
	l.t.Helper()
	args := []string{
		"--kubeconfig=" + l.accountKubeconfig(), "--cloud-config=" + l.ConfigPath(), "--leader-elect=false", "--secure-port=0", "-v=4",
	}
	return l.start(name, env, append(args, flags...)...)
}

// start is launch without flags of the bed.
func (l *lab) start(name string, env []string, args ...string) *testbed.CCM {
	l.t.Helper()
	path, err := testbed.Binary(l.ctx, program)
	if err != nil {
		l.t.Fatal(err)
	}
	p, err := l.Cluster.StartProcess(process.Spec{Name: name, Path: path, Args: args, Env: append(l.Env(), env...)})
	if err != nil {
		l.t.Fatal(err)
	}
	return &testbed.CCM{Process: p, Log: p.LogPath()}
}

// accountKubeconfig is a kubeconfig of the ServiceAccount of the manifests.
func (l *lab) accountKubeconfig() string {
	l.t.Helper()
	path, err := l.Cluster.ServiceAccountKubeconfig(l.ctx, "kube-system", "cloud-controller-manager")
	if err != nil {
		l.t.Fatal(err)
	}
	return path
}

// runWith is run with an environment and flags that win over the bed's.
func (l *lab) runWith(env []string, flags ...string) *lab {
	l.t.Helper()
	l.ccm = l.launch(strings.NewReplacer("/", "-", " ", "-").Replace(l.t.Name()), env, flags...)
	return l.watch()
}

// configure replaces the cloud config of the next start.
func (l *lab) configure(text string) {
	l.t.Helper()
	if err := l.WriteConfig(text); err != nil {
		l.t.Fatal(err)
	}
}

// stop ends the cloud-controller-manager as kubelet does. It must end soon and with 0.
func (l *lab) stop() {
	l.t.Helper()
	begun := time.Now()
	if err := l.ccm.Terminate(); err != nil {
		l.t.Fatal(err)
	}
	select {
	case <-l.ccm.Done():
	case <-time.After(endLimit):
		l.t.Fatalf("still running %s after SIGTERM", endLimit)
	}
	if err := l.ccm.Err(); err != nil {
		l.t.Errorf("after SIGTERM: %v", err)
	}
	l.t.Logf("ended in %s", time.Since(begun).Round(time.Millisecond))
}

// newNode boots one more machine and returns the name of its Node.
func (l *lab) newNode() string {
	l.t.Helper()
	if err := l.Nodes.Add(l.ctx, 1); err != nil {
		l.t.Fatal(err)
	}
	names := l.Nodes.Names()
	return names[len(names)-1]
}

// sparse are worlds with more machines than have booted: one has.
func sparse(machines int) testbed.Options {
	world := testbed.WorldOf(machines)
	fleet := testbed.DemoNodes(world, true)
	fleet.Count = 1
	return testbed.Options{World: world, Nodes: fleet}
}

// command runs our binary to its end.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	path, err := testbed.Binary(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errOut strings.Builder
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%s %s: %v, %v", program, strings.Join(args, " "), err, ctx.Err())
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

func TestVersionAndHelp(t *testing.T) {
	code, out, errOut := command(t, "--version")
	version := regexp.MustCompile(`^` + program + ` v1\.\d+\.\d+\S* \(commit [0-9a-f]{40}(-dirty)?, built \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, go1\.\S+, linux/\w+\)\n$`)
	if code != 0 || !version.MatchString(out) || errOut != "" {
		t.Errorf("--version: exit code %d, %q %q", code, out, errOut)
	}
	code, out, errOut = command(t, "--help")
	if code != 0 || errOut != "" {
		t.Errorf("--help: exit code %d, %q", code, errOut)
	}
	for _, flag := range []string{"--cloud-config", "--cloud-provider", "--strict-config", "--leader-elect-lease-duration", "validate-config", "--oci-service-resync-period"} {
		if !strings.Contains(out, flag) {
			t.Errorf("--help does not show %s", flag)
		}
	}
	for _, flag := range meaninglessFlags() {
		name, _, _ := strings.Cut(flag, "=")
		if regexp.MustCompile(name + `\b[^-]`).MatchString(out) {
			t.Errorf("--help shows %s, which means nothing here", name)
		}
	}
	if code, _, errOut := command(t, "--cloud-provider=aws", "--cloud-config=/nonexistent"); code != 1 || !strings.Contains(errOut, "--cloud-provider must be oci") {
		t.Errorf("another provider: exit code %d, %s", code, errOut)
	}
	if code, _, errOut := command(t); code != 1 || !strings.Contains(errOut, "--cloud-config") {
		t.Errorf("no config: exit code %d, %s", code, errOut)
	}
}

// meaninglessFlags are flags of the framework that change nothing here, but that manifests may have.
func meaninglessFlags() []string {
	return []string{
		"--allow-untagged-cloud=true", "--external-cloud-volume-plugin=oci", "--cidr-allocator-type=RangeAllocator",
		"--configure-cloud-routes=false", "--allocate-node-cidrs=false", "--cluster-cidr=10.244.0.0/16", "--cluster-name=mine",
		"--route-reconciliation-period=10s",
	}
}

// TestReplicas: of two replicas only the leader calls OCI; on SIGTERM it gives up its lease, and the other one takes over
// without waiting for the lease to expire.
func TestReplicas(t *testing.T) {
	l := newLab(t, sparse(4))
	other, err := l.Server.User("other")
	if err != nil {
		t.Fatal(err)
	}
	elect := []string{"--leader-elect=true", "--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=40s", "--leader-elect-retry-period=1s"}
	l.run(elect...)
	l.eventually("nodes initialised", l.NodesInitialized)

	second := l.in(t)
	config := filepath.Join(l.Cluster.Dir(), "second.yaml")
	first := l.User
	l.User = other
	text := testbed.UserConfig(l.Bed)
	l.User = first
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	second.runWith(nil, append(elect, "--cloud-config="+config)...)
	second.until("the second replica waits", func() (bool, string) {
		return strings.Contains(second.log(second.ccm), "Failed to acquire lease"), second.ccm.LogTail(3)
	})
	l.newNode()
	l.eventually("the leader works", l.NodesInitialized)
	byOther := func(c ocisim.Call) bool { return c.Principal == other.OCID }
	l.never("a replica that does not lead calls OCI", func() (bool, string) { return l.calls(byOther) > 0, l.CallLog(5) })

	l.stop()
	begun := time.Now()
	l.Region.ResetCalls()
	l.newNode()
	l.eventually("the second replica takes over", l.NodesInitialized)
	if took := time.Since(begun); took > 40*time.Second {
		t.Errorf("the second replica took over after %s: the lease was not released", took)
	}
	if n, all := l.calls(byOther), len(l.Region.Calls()); n == 0 || n != all {
		t.Errorf("%d of %d calls are the new leader's", n, all)
	}
	second.stop()
	lease, err := l.Cluster.Client().CoordinationV1().Leases("kube-system").Get(l.ctx, "cloud-controller-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("the lease still belongs to %s", *holder)
	}
	l.onlyTheServiceAccount()
}

// TestTermination: SIGTERM tears no call away from its answer, and ends a process soon whatever it waits for.
func TestTermination(t *testing.T) {
	hour := ocisim.Range{Min: time.Hour, Max: time.Hour}
	l := newLab(t, testbed.Options{Region: ocisim.Options{Durations: map[string]ocisim.Range{
		"loadbalancer.create": hour, "networkloadbalancer.create": hour,
	}}}).ready()
	l.Region.Fault(ocisim.Fault{Operation: "CreateLoadBalancer", Applied: true, Delay: time.Second})
	l.service("a", "lb", nil)
	l.until("the create is applied and not yet answered", func() (bool, string) {
		return len(l.Region.LoadBalancers()) == 1, l.CallLog(5)
	})
	l.stop()
	text := l.log(l.ccm)
	if answered := regexp.MustCompile(`operation="CreateLoadBalancer".* status=204`); !answered.MatchString(text) {
		t.Errorf("the create has not got its answer:\n%s", l.ccm.LogTail(10))
	}
	if strings.Contains(text, "context canceled") {
		t.Errorf("work was cut off:\n%s", l.ccm.LogTail(10))
	}

	// Waiting for both balancers to be made.
	l.run()
	l.service("b", "nlb", nil)
	l.until("both are waited for", func() (bool, string) {
		asked := map[string]bool{}
		for _, c := range l.Region.Calls() {
			if c.Operation == "GetWorkRequest" {
				asked[c.Service] = true
			}
		}
		return asked[ocisim.ServiceLoadBalancer] && asked[ocisim.ServiceNetworkLoadBalancer], l.CallLog(5)
	})
	l.stop()
	if n := l.calls(operation("CreateLoadBalancer")); n != 1 {
		t.Errorf("CreateLoadBalancer was called %d times", n)
	}

	// Waiting for answers.
	remove := l.Region.Fault(ocisim.Fault{Operation: "*", Delay: time.Hour})
	defer remove()
	l.run()
	l.until("it asks", func() (bool, string) {
		return strings.Contains(l.log(l.ccm), "Ensuring load balancer"), l.ccm.LogTail(3)
	})
	l.stop()
}
