// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/nodedriver"
)

const mebibyte = int64(1) << 20

// nodeScenario is a volume's life on a node, of which each command that the node driver runs is a kill point. The disk is a loop device; make
// test-vm has the same with iSCSI and multipath.
type nodeScenario struct {
	name, fsType string
	lives        int // one after the other: the second one finds a file system
}

func nodeScenarios() []nodeScenario {
	return []nodeScenario{{"node/filesystem", "ext4", 2}, {"node/block", "", 1}}
}

// maxCommands bounds the kill points of a scenario: a life has fewer commands.
const maxCommands = 100

// runNodes runs scenarios of nodes, one after the other. They need root and loop devices.
func runNodes(ctx context.Context, scenarios []nodeScenario, stride int) (tally, error) {
	var sum tally
	if len(scenarios) == 0 {
		return sum, nil
	}
	if _, err := os.Stat("/dev/loop-control"); os.Geteuid() != 0 || errors.Is(err, fs.ErrNotExist) {
		fmt.Println("NOT RUN: scenarios of nodes, which need root and loop devices")
		return sum, nil
	}
	for _, s := range scenarios {
		began := time.Now()
		var got tally
		for at, more := 1, true; more && at < maxCommands; at += stride {
			one, err := s.run(ctx, at)
			if err != nil {
				return sum, fmt.Errorf("%s: %w", s.name, err)
			}
			got.add(one)
			more = one.points > 0
		}
		fmt.Printf("%-20s %3d kill points, %d leaks, %d duplicates, %d not converged (%.0f s)\n",
			s.name, got.points, got.leaks, got.duplicates, got.stuck, time.Since(began).Seconds())
		sum.add(got)
	}
	return sum, nil
}

// run kills the driver once, after a command, and judges the end. There is no point if the lives had fewer commands.
func (s nodeScenario) run(ctx context.Context, at int) (got tally, err error) {
	ctx, cancel := context.WithTimeout(ctx, convergeTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "crash-node-")
	if err != nil {
		return got, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a leak has been counted
	state, kubelet := filepath.Join(dir, "driver"), filepath.Join(dir, "kubelet")
	for _, d := range []string{state, kubelet} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return got, err
		}
	}
	disk, err := nodedriver.NewDisk(ctx, filepath.Join(dir, "disk"), 32*mebibyte)
	if err != nil {
		return got, err
	}
	driver, err := nodedriver.New(filepath.Join(os.Getenv("OCI_CCM_BIN"), "oci-csi-node-driver"), state)
	if err != nil {
		return got, err
	}
	defer driver.Close()
	if err := driver.KillAt(at); err != nil {
		return got, err
	}
	volume := disk.Volume("ocid1.volume.oc1..crash", s.fsType, kubelet)
	var problems []string
	for range s.lives {
		deaths, err := driver.Live(ctx, nodedriver.Life{Volume: volume})
		got.points += deaths
		if err != nil {
			got.stuck++
			problems = append(problems, err.Error())
			break
		}
	}
	calls, err := driver.Calls("")
	if err != nil {
		return got, err
	}
	left, err := driver.Left(volume)
	if err != nil {
		return got, err
	}
	if err := disk.Close(); err != nil {
		left = append(left, err.Error())
	}
	got.leaks += len(left)
	problems = append(problems, left...)
	formats := 0
	for _, c := range calls {
		if strings.HasPrefix(c, "mkfs") {
			formats++
		}
	}
	if formats > 1 {
		got.duplicates++
		problems = append(problems, fmt.Sprintf("formatted %d times", formats))
	}
	if len(problems) > 0 {
		fmt.Printf("%s, killed after %q: %s\n", s.name, calls[min(at, len(calls))-1], strings.Join(problems, "; "))
	}
	return got, nil
}
