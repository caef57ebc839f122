// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what the budgets of the project are about, and prints a table: what was measured, the budget,
// and whether it is kept. A budget that is exceeded makes it fail.
//
//	go run ./test/bench                             # everything
//	go run ./test/bench -run S2,P5                  # some rows
//	go run ./test/bench -run P13 -nodes 1000        # a cluster of another size
//	go run ./test/bench -run P1,P2,P3,P13 -write    # and write docs/performance.md and its plot
//
// Rows S are the speed of the simulated region. They count CPU time, so that they hold on a busy machine: a rate "on
// 2 cores" is twice what one second of CPU time does. Rows P are what the product costs in calls and in time on the
// virtual clock; they are measured by the component tests that assert them. P13 runs the real binary against a real control
// plane with simulated kubelets, which takes a quarter of an hour.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
)

// row is one line of the table.
type row struct {
	name, what, budget string

	// measure returns what was measured and whether the budget is kept.
	measure func(context.Context) (measured string, ok bool, err error)
}

// result is what was measured for a row.
type result struct {
	row

	measured string
	kept     bool
}

// options are what the command line says.
type options struct {
	only     string // names of rows
	nodes    string // sizes of clusters
	write    bool
	profiles string
}

func main() {
	var o options
	flag.StringVar(&o.only, "run", "", "names of rows, separated by commas; default all")
	flag.StringVar(&o.nodes, "nodes", "100,1000,5000", "numbers of nodes for P13")
	flag.BoolVar(&o.write, "write", false, "write what P13 and the rows beside it measure to "+documentPath+" and "+plotPath)
	flag.StringVar(&o.profiles, "profile", "", "directory for profiles of the cloud-controller-manager in P13")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	kept, err := run(ctx, os.Stdout, os.Stderr, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	if err != nil || !kept {
		os.Exit(1)
	}
}

// run measures the rows that are asked for, and says whether all budgets are kept.
func run(ctx context.Context, table, progress io.Writer, o options) (bool, error) {
	sizes, err := parseSizes(o.nodes)
	if err != nil {
		return false, err
	}
	s := &scaling{sizes: sizes, profiles: o.profiles, progress: progress}
	rows, err := choose(slices.Concat(simulatorRows(), productRows(s)), o.only)
	if err != nil {
		return false, err
	}
	if o.write && !slices.ContainsFunc(rows, func(r row) bool { return r.name == "P13" }) {
		return false, errors.New("-write needs P13")
	}
	before := loadAverage()
	results, err := measureAll(ctx, table, progress, rows)
	if err != nil {
		return false, err
	}
	if o.write {
		err = writeDocument(report{Figures: s.figures, Results: results, Machine: machine(before, loadAverage())})
	}
	return !slices.ContainsFunc(results, func(r result) bool { return !r.kept }), err
}

func measureAll(ctx context.Context, table, progress io.Writer, rows []row) ([]result, error) {
	w := tabwriter.NewWriter(table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tWHAT\tMEASURED\tBUDGET\t")
	var results []result
	for _, r := range rows {
		fmt.Fprintf(progress, "%s %s …\n", r.name, r.what)
		measured, ok, err := r.measure(ctx)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", r.name, err), w.Flush())
		}
		one := result{r, measured, ok}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.name, r.what, measured, r.budget, one.verdict())
		results = append(results, one)
	}
	return results, w.Flush()
}

func (r result) verdict() string {
	if r.kept {
		return "ok"
	}
	return "over"
}

// choose picks rows by name; none means all.
func choose(rows []row, names string) ([]row, error) {
	if names == "" {
		return rows, nil
	}
	var chosen []row
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(rows, func(r row) bool { return r.name == strings.ToUpper(strings.TrimSpace(name)) })
		if i < 0 {
			return nil, fmt.Errorf("there is no row %q", name)
		}
		chosen = append(chosen, rows[i])
	}
	return chosen, nil
}
