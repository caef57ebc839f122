// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package traffic_test sends requests from clients through simulated balancers to pods, while the real
// cloud-controller-manager configures the balancers and the real kube-proxy of each node forwards node ports.
//
// # What is real
//
// etcd, kube-apiserver and kube-controller-manager, with its EndpointSlices; our binary as a process; kube-proxy
// (nftables) on each node; the kernel's forwarding between clients, nodes and pods, which are network namespaces; every
// address: balancers listen at those that the region's API shows, nodes have those of their instances' VNICs, and a
// network load balancer that preserves the source sends from the client's.
//
// # What is not
//
// The region and its balancers are simulated. Kubelets are: their Nodes are those of package nodes, and a pod is a
// process that the test starts in a network namespace, and whose state it reports, as a kubelet would.
//
// # How it runs
//
// As root. The test binary starts itself again in new namespaces (network, mounts, processes), and everything else
// runs inside. When that process ends, in whatever way, the kernel takes away all of it: processes, interfaces, rules,
// files. Nothing of it is ever visible on the machine.
package traffic_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Variables that make the test binary something else than a test.
const (
	insideVariable = "TRAFFIC_INSIDE" // the test, in namespaces of its own
	podVariable    = "TRAFFIC_POD"    // the pod of that name
)

// scratch is a file system in memory, for what the cluster writes. Only the test sees it.
const scratch = "/run/traffic"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(podVariable) != "":
		fmt.Fprintln(os.Stderr, servePod(os.Getenv(podVariable)))
		os.Exit(1)
	case os.Getenv(insideVariable) != "":
		if err := furnish(); err != nil {
			fmt.Fprintln(os.Stderr, "prepare the namespaces:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	case os.Geteuid() == 0:
		os.Exit(isolate())
	default:
		os.Exit(m.Run()) // the tests say why they are left out
	}
}

// isolate runs this test binary again in namespaces of its own and returns its exit code.
func isolate() int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL, // sent when the thread ends that starts the process
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, "start the test in namespaces of its own:", err)
		return 1
	}
	return 0
}

// furnish makes the new namespaces usable: mounts that nobody else sees, a /proc of our processes, a /run of our own.
func furnish() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("/run: %w", err)
	}
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin"); err != nil { // for ip, nft, nsenter
		return err
	}
	return os.MkdirAll(scratch, 0o700)
}
