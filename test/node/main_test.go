// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package node_test runs pods with volumes on real kubelets, and ends kubelets, drivers and whole nodes in the middle.
//
// # What is real
//
// The control plane, kubelet, containerd, runc, the CNI plugin of each node; our binaries, the CSI sidecars and the shipped
// manifests; disks, file systems and mounts: a volume is a file, its attachment a loop device that appears in the /dev of its
// node at the consistent device path.
//
// # What is not
//
// The region is simulated. Nodes share the machine's kernel: each has network, mounts, processes and a /dev of its own, and the
// machine's root directory. There is no udev and no iSCSI; test/vm has both.
//
// # How it runs
//
// As root. The test binary starts itself again in new namespaces (network, mounts, processes), and everything else runs inside:
// processes, interfaces and mounts go when that process ends, in whatever way. What the kernel does not take away (control
// groups, files, mount points) the first process removes, and the next run if that was killed, too.
package node_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Variables that make the test binary something else than the first process.
const (
	insideVariable = "NODE_TEST_INSIDE" // the tests, in namespaces of their own
	initVariable   = "NODE_TEST_INIT"   // the first process of the node that has this directory
)

const (
	// scratch is a file system in memory, for what the control plane writes. Only the tests see it.
	scratch = "/run/cluster"
	// suite names what is left on the machine while the tests run.
	suite = "oci-ccm-node"
)

// workDir has the nodes' directories and the volumes, on a disk.
func workDir() string { return filepath.Join(os.TempDir(), suite) }

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(initVariable) != "":
		fmt.Fprintln(os.Stderr, beginNode(os.Getenv(initVariable)))
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

// isolate runs this test binary again in namespaces of its own and returns its exit code. There is one such run at a time.
func isolate() int {
	unlock, err := lockMachine()
	if err == nil {
		defer unlock()
		err = errors.Join(sweep(), prepare())
		defer func() {
			if err := sweep(); err != nil {
				fmt.Fprintln(os.Stderr, "clean up:", err)
			}
		}()
	}
	if err == nil {
		err = runInside()
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, "start the tests in namespaces of their own:", err)
		return 1
	}
	return 0
}

func runInside() error {
	self, err := os.Executable()
	if err != nil {
		return err
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
	return cmd.Run()
}

func lockMachine() (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), suite+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		fmt.Fprintln(os.Stderr, "waiting for another run of these tests")
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return func() { _ = f.Close() }, err
		}
	}
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
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin"); err != nil { // for ip, mkfs, nsenter
		return err
	}
	return os.MkdirAll(scratch, 0o700)
}
