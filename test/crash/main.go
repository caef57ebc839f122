// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command crash kills the cloud-controller-manager (SIGKILL) after each single call to OCI of each scenario, for both
// kinds of balancers, starts it again, and checks that the end is the same as without the kill: one balancer as
// the Service wants it, with its security rules, its network security group and its certificates, or none of it; nothing
// left over, and nothing of others lost. It does the same with the CSI controller, whom the real sidecars ask again: volumes,
// attachments, backups and volume groups are those that the objects of the API justify. Its last line says how many kill points
// there were, and how many leaks and duplicates.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() { os.Exit(crash()) }

// crash returns the exit code.
func crash() int {
	only := flag.String("run", "", "scenarios to run, comma separated (default: all): lb/create, nlb/delete, volume/attach, …")
	stride := flag.Int("stride", 1, "take every n-th kill point only")
	beds := flag.Int("beds", 4, "regions with a cluster each that work side by side: a scenario mostly waits")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *only, max(1, *stride), max(1, *beds)); err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		return 1
	}
	return 0
}

// tally is the result of a matrix.
type tally struct {
	points, leaks, duplicates, stuck int
}

func (t *tally) add(other tally) {
	t.points += other.points
	t.leaks += other.leaks
	t.duplicates += other.duplicates
	t.stuck += other.stuck
}

// count adds a kill point.
func (t *tally) count(v verdict) {
	t.points++
	switch v {
	case leak:
		t.leaks++
	case duplicate:
		t.duplicates++
	case stuck:
		t.stuck++
	}
}

func (t *tally) bad() int { return t.leaks + t.duplicates + t.stuck }

// total is the tally of all scenarios, wherever they run.
type total struct {
	mu sync.Mutex
	tally
}

// report prints the result of a scenario, and adds it.
func (t *total) report(name string, got tally, began time.Time) {
	fmt.Printf("%-28s %3d kill points, %d leaks, %d duplicates, %d not converged (%.0f s)\n",
		name, got.points, got.leaks, got.duplicates, got.stuck, time.Since(began).Seconds())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(got)
}

func run(ctx context.Context, only string, stride, beds int) error {
	todo, err := chosen(only)
	if err != nil {
		return err
	}
	var sum total
	if sum.tally, err = runNodes(ctx, todo.nodes, stride); err != nil {
		return err
	}
	// A third of the beds is for volumes, but no kind of scenarios is left without.
	disks := min(max(1, beds/3), len(todo.volumes))
	beds = min(max(1, beds-disks), len(todo.services))
	if n := beds + disks; n > 0 {
		fmt.Printf("%d scenarios, %d at a time, each with a region and a cluster of its own and its kill points one after the other",
			len(todo.services)+len(todo.volumes), n)
		if stride > 1 {
			fmt.Printf("; of %d kill points only the first", stride)
		}
		fmt.Println()
	}
	workers, ctx := errgroup.WithContext(ctx)
	queue, storage := queued(todo.services), queued(todo.volumes)
	for range beds {
		workers.Go(func() error { return work(ctx, &matrix{}, queue, stride, &sum) })
	}
	for range disks {
		workers.Go(func() error { return work(ctx, &storageMatrix{}, storage, stride, &sum) })
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	fmt.Printf("kill points: %d, leaks: %d, duplicates: %d, not converged: %d\n", sum.points, sum.leaks, sum.duplicates, sum.stuck)
	if sum.points == 0 {
		return fmt.Errorf("no kill point was reached")
	}
	if sum.bad() > 0 {
		return fmt.Errorf("%d kill points did not end well", sum.bad())
	}
	return nil
}

// queued is a queue of all there is to do.
func queued[T any](list []T) <-chan T {
	queue := make(chan T, len(list))
	for _, x := range list {
		queue <- x
	}
	close(queue)
	return queue
}

// choice is what there is to do: with Services, with volumes in clouds, and with volumes on nodes.
type choice struct {
	services []scenario
	volumes  []storageScenario
	nodes    []nodeScenario
}

// chosen are the scenarios whose names are in a comma-separated list; all for an empty one.
func chosen(only string) (choice, error) {
	c := choice{scenarios(), storageScenarios(), nodeScenarios()}
	if only == "" {
		return c, nil
	}
	names := strings.Split(only, ",")
	var all []string
	// other says whether nobody has named a scenario.
	other := func(name string) bool {
		all = append(all, name)
		return !slices.Contains(names, name)
	}
	c.services = slices.DeleteFunc(c.services, func(s scenario) bool { return other(s.name) })
	c.volumes = slices.DeleteFunc(c.volumes, func(s storageScenario) bool { return other(s.name) })
	c.nodes = slices.DeleteFunc(c.nodes, func(s nodeScenario) bool { return other(s.name) })
	for _, name := range names {
		if !slices.Contains(all, name) {
			return choice{}, fmt.Errorf("no scenario is called %q; there are %s", name, strings.Join(all, ", "))
		}
	}
	return c, nil
}
