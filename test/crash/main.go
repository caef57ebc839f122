// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command crash kills the cloud-controller-manager (SIGKILL) after each single call to OCI of each scenario, for both
// kinds of balancers, starts it again, and checks that the end is the same as without the kill: one balancer as
// the Service wants it, or none, and nothing left over. Its last line says how many kill points there were, and how many
// leaks and duplicates.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

func main() { os.Exit(crash()) }

// crash returns the exit code.
func crash() int {
	only := flag.String("run", "", "scenarios to run, comma separated (default: all): lb/create, nlb/delete, …")
	stride := flag.Int("stride", 1, "take every n-th kill point only")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *only, *stride); err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		return 1
	}
	return 0
}

// tally is the result of a matrix.
type tally struct {
	points, leaks, duplicates, stuck int
}

func (t *tally) bad() int { return t.leaks + t.duplicates + t.stuck }

func run(ctx context.Context, only string, stride int) error {
	bed, err := testbed.Start(ctx, testbed.Options{
		Region: ocisim.Options{Seed: 7, Durations: testbed.QuickDurations(), Behaviour: behaviour()},
	})
	if err != nil {
		return err
	}
	defer func() { _ = bed.Stop() }()
	var total tally
	for _, kind := range []string{"lb", "nlb"} {
		m := &matrix{bed: bed, kind: kind, stride: max(1, stride)}
		for _, s := range m.scenarios() {
			name := kind + "/" + s.name
			if only != "" && !listed(only, name) {
				continue
			}
			began := time.Now()
			m.scenario = s
			got, err := m.run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			fmt.Printf("%-18s %3d kill points, %d leaks, %d duplicates, %d not converged (%.0f s)\n",
				name, got.points, got.leaks, got.duplicates, got.stuck, time.Since(began).Seconds())
			total.points += got.points
			total.leaks += got.leaks
			total.duplicates += got.duplicates
			total.stuck += got.stuck
		}
	}
	fmt.Printf("kill points: %d, leaks: %d, duplicates: %d, not converged: %d\n", total.points, total.leaks, total.duplicates, total.stuck)
	if total.points == 0 {
		return fmt.Errorf("no kill point was reached")
	}
	if total.bad() > 0 {
		return fmt.Errorf("%d kill points did not end well", total.bad())
	}
	return nil
}

func listed(only, name string) bool {
	for _, s := range strings.Split(only, ",") {
		if s == name {
			return true
		}
	}
	return false
}

// behaviour lets VNICs of deleted balancers go at once: what lingers there is not the subject.
func behaviour() *ocisim.Behaviour {
	b := ocisim.DefaultBehaviour()
	b.VNICLinger = ocisim.Range{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond}
	return b
}
