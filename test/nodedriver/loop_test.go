// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodedriver_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/nodedriver"
)

const mib = int64(1) << 20

// newDriver is a driver from the folder of binaries: VM_BIN in a guest, and elsewhere OCI_CCM_BIN.
func newDriver(t *testing.T) *nodedriver.Driver {
	t.Helper()
	bin := os.Getenv("VM_BIN")
	if bin == "" {
		bin = os.Getenv("OCI_CCM_BIN")
	}
	if bin == "" {
		t.Skip("runs the node driver as a process: make test-vm and make test-system say where it is")
	}
	dir := t.TempDir()
	d, err := nodedriver.New(filepath.Join(bin, "oci-csi-node-driver"), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Close()
		if t.Failed() {
			if text, err := os.ReadFile(filepath.Join(dir, "log")); err == nil {
				t.Logf("the driver's log:\n%s", text)
			}
		}
	})
	return d
}

// newDisk is an empty loop device.
func newDisk(t *testing.T, size int64) *nodedriver.Disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounts and makes loop devices: needs root")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip("mounts and makes loop devices: this machine has none")
	}
	k, err := nodedriver.NewDisk(t.Context(), filepath.Join(t.TempDir(), "disk"), size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// nothingLeft fails the test if there is something left of volumes.
func nothingLeft(t *testing.T, d *nodedriver.Driver, volumes ...nodedriver.Volume) {
	t.Helper()
	left, err := d.Left(volumes...)
	must(t, err)
	if len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// formatted fails the test if a disk was not formatted exactly so often since the last KillAt or KillEach.
func formatted(t *testing.T, d *nodedriver.Driver, want int) {
	t.Helper()
	calls, err := d.Calls("mkfs")
	must(t, err)
	if len(calls) != want {
		t.Errorf("%d times mkfs, want %d: %q", len(calls), want, calls)
	}
}

// TestKilledAfterEachCommand: C104, over gRPC. The kubelet's calls are repeated until they succeed, by drivers that are killed after each
// of their commands once; what follows finds all as if nobody had died.
func TestKilledAfterEachCommand(t *testing.T) {
	for _, fsType := range []string{"ext4", ""} {
		t.Run("type "+fsType, func(t *testing.T) {
			d, k := newDriver(t), newDisk(t, 32*mib)
			v := k.Volume("ocid1.volume.oc1..killed", fsType, t.TempDir())
			life := nodedriver.Life{Volume: v}
			if fsType != "" && canGrow(t) {
				life.Grow, life.NewSize = func() error { return k.Grow(t.Context(), 64*mib) }, 64*mib
			}
			must(t, d.KillEach())
			deaths, err := d.Live(soon(t), life)
			must(t, err)
			t.Logf("killed %d times", deaths)
			if want := map[string]int{"ext4": 6, "": 4}[fsType]; deaths < want {
				t.Errorf("it has died %d times only", deaths)
			}
			nothingLeft(t, d, v)
			formatted(t, d, map[string]int{"ext4": 1, "": 0}[fsType])
		})
	}
}

// canGrow says whether this process may grow a mounted ext4, for which the kernel wants CAP_SYS_RESOURCE.
func canGrow(t *testing.T) bool {
	t.Helper()
	out, err := exec.Command("sh", "-c", "grep CapEff /proc/self/status").Output()
	must(t, err)
	digits := string(out[len(out)-17 : len(out)-1])
	const sysResource = 24
	digit := digits[len(digits)-1-sysResource/4]
	value := int(digit - '0')
	if digit >= 'a' {
		value = int(digit-'a') + 10
	}
	return value&(1<<(sysResource%4)) != 0
}
