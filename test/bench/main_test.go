// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
)

// TestTable measures one cheap row.
func TestTable(t *testing.T) {
	var table strings.Builder
	if _, err := run(t.Context(), &table, io.Discard, options{only: "s4", nodes: "100"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"S4", "KiB", "ok"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in the table:\n%s", want, &table)
		}
	}
	for _, wrong := range []options{{only: "P99", nodes: "100"}, {only: "S4", nodes: "1"}, {only: "S4", nodes: "100", write: true}} {
		if _, err := run(t.Context(), io.Discard, io.Discard, wrong); err == nil {
			t.Errorf("%+v is measured", wrong)
		}
	}
}

// TestOverBudget: a row that is over its budget makes the whole fail.
func TestOverBudget(t *testing.T) {
	rows := slices.Concat(simulatorRows(), productRows(&scaling{}))
	names := map[string]bool{}
	for _, r := range rows {
		if names[r.name] || r.what == "" || r.budget == "" || r.measure == nil {
			t.Errorf("row %+v", r)
		}
		names[r.name] = true
	}
	over := row{name: "X", what: "x", budget: "0", measure: func(context.Context) (string, bool, error) { return "1", false, nil }}
	var table strings.Builder
	results, err := measureAll(t.Context(), &table, io.Discard, []row{over})
	if err != nil || len(results) != 1 || results[0].kept || !strings.Contains(table.String(), "over") {
		t.Errorf("results %v, %v:\n%s", results, err, &table)
	}
}

func TestFigures(t *testing.T) {
	out := []byte("x_test.go:1: budget P5: lb 30.5s\n    x_test.go:1: budget P6: lb 60s\n  x_test.go:1: budget P5: nlb 30s\n")
	if got := figures(out, "P5"); !slices.Equal(got, []string{"lb 30.5s", "nlb 30s"}) {
		t.Errorf("figures %q", got)
	}
}
