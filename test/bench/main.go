// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what the budgets of the project are about, and prints a table: what was measured, the budget,
// and whether it is kept. A budget that is exceeded makes it fail.
//
//	go run ./test/bench            # everything that can be measured today
//	go run ./test/bench -run S2,P5 # some rows
//
// Rows S are the speed of the simulated region. They count CPU time, so that they hold on a busy machine: a rate "on
// 2 cores" is twice what one second of CPU time does. Rows P are what the product costs in calls and in time on the
// virtual clock; they are measured by the component tests that assert them.
package main

import (
	"context"
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
	later   string // why it cannot be measured yet
}

func main() {
	only := flag.String("run", "", "names of rows, separated by commas; default all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	kept, err := run(ctx, os.Stdout, os.Stderr, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	if err != nil || !kept {
		os.Exit(1)
	}
}

// run measures the rows that are asked for, and says whether all budgets are kept.
func run(ctx context.Context, table, progress io.Writer, only string) (bool, error) {
	rows, err := choose(slices.Concat(simulatorRows(), productRows()), only)
	if err != nil {
		return false, err
	}
	return measureAll(ctx, table, progress, rows)
}

func measureAll(ctx context.Context, table, progress io.Writer, rows []row) (bool, error) {
	w := tabwriter.NewWriter(table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tWHAT\tMEASURED\tBUDGET\t")
	kept := true
	for _, r := range rows {
		if r.later != "" {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\tlater\n", r.name, r.what, r.later, r.budget)
			continue
		}
		fmt.Fprintf(progress, "%s %s …\n", r.name, r.what)
		measured, ok, err := r.measure(ctx)
		if err != nil {
			return false, fmt.Errorf("%s: %w", r.name, err)
		}
		verdict := "ok"
		if !ok {
			verdict, kept = "over", false
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.name, r.what, measured, r.budget, verdict)
	}
	return kept, w.Flush()
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
