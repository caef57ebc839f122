// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command crash kills the cloud-controller-manager (SIGKILL) after each single call to OCI of each scenario, for both
// kinds of balancers, starts it again, and checks that the end is the same as without the kill: one balancer as
// the Service wants it, with its security rules, its network security group and its certificates, or none of it; nothing
// left over, and nothing of others lost. Its last line says how many kill points there were, and how many leaks and
// duplicates.
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
	only := flag.String("run", "", "scenarios to run, comma separated (default: all): lb/create, nlb/delete, …")
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

func (t *tally) bad() int { return t.leaks + t.duplicates + t.stuck }

// total is the tally of all scenarios, wherever they run.
type total struct {
	mu sync.Mutex
	tally
}

func run(ctx context.Context, only string, stride, beds int) error {
	todo, nodes, err := chosen(only)
	if err != nil {
		return err
	}
	var sum total
	if sum.tally, err = runNodes(ctx, nodes, stride); err != nil {
		return err
	}
	if beds = min(beds, len(todo)); beds > 0 {
		fmt.Printf("%d scenarios, %d at a time, each with a region and a cluster of its own and its kill points one after the other", len(todo), beds)
		if stride > 1 {
			fmt.Printf("; of %d kill points only the first", stride)
		}
		fmt.Println()
	}
	queue := make(chan scenario, len(todo))
	for _, s := range todo {
		queue <- s
	}
	close(queue)
	workers, ctx := errgroup.WithContext(ctx)
	for range beds {
		workers.Go(func() error { return work(ctx, queue, stride, &sum) })
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

// chosen are the scenarios whose names are in a comma-separated list, those of clouds and those of nodes; all for an empty one.
func chosen(only string) (list []scenario, nodes []nodeScenario, err error) {
	all, allNodes := scenarios(), nodeScenarios()
	if only == "" {
		return all, allNodes, nil
	}
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(s scenario) bool { return s.name == name })
		j := slices.IndexFunc(allNodes, func(s nodeScenario) bool { return s.name == name })
		switch {
		case i >= 0:
			list = append(list, all[i])
		case j >= 0:
			nodes = append(nodes, allNodes[j])
		default:
			var names []string
			for _, s := range all {
				names = append(names, s.name)
			}
			for _, s := range allNodes {
				names = append(names, s.name)
			}
			return nil, nil, fmt.Errorf("no scenario is called %q; there are %s", name, strings.Join(names, ", "))
		}
	}
	return list, nodes, nil
}

// work runs scenarios on one bed until none is left.
func work(ctx context.Context, queue <-chan scenario, stride int, sum *total) error {
	m := &matrix{stride: stride}
	defer m.stop()
	if err := m.start(ctx); err != nil {
		return err
	}
	for s := range queue {
		began := time.Now()
		m.scenario = s
		got, err := m.run(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Printf("%-20s %3d kill points, %d leaks, %d duplicates, %d not converged (%.0f s)\n",
			s.name, got.points, got.leaks, got.duplicates, got.stuck, time.Since(began).Seconds())
		sum.mu.Lock()
		sum.add(got)
		sum.mu.Unlock()
	}
	return nil
}
