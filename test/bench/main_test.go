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

// TestTable measures one cheap row, and lists one that comes later.
func TestTable(t *testing.T) {
	var table strings.Builder
	if _, err := run(t.Context(), &table, io.Discard, "s4,P9"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"S4", "KiB", "P9", "later", "CSI driver"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in the table:\n%s", want, &table)
		}
	}
	if _, err := run(t.Context(), io.Discard, io.Discard, "P99"); err == nil {
		t.Error("a row that does not exist is measured")
	}
}

// TestOverBudget: a row that is over its budget makes the whole fail.
func TestOverBudget(t *testing.T) {
	rows := slices.Concat(simulatorRows(), productRows())
	names := map[string]bool{}
	for _, r := range rows {
		if names[r.name] || r.what == "" || r.budget == "" || (r.measure == nil) == (r.later == "") {
			t.Errorf("row %+v", r)
		}
		names[r.name] = true
	}
	over := row{name: "X", what: "x", budget: "0", measure: func(context.Context) (string, bool, error) { return "1", false, nil }}
	var table strings.Builder
	kept, err := measureAll(t.Context(), &table, io.Discard, []row{over})
	if err != nil || kept || !strings.Contains(table.String(), "over") {
		t.Errorf("kept %t, %v:\n%s", kept, err, &table)
	}
}

func TestFigures(t *testing.T) {
	out := []byte("x_test.go:1: budget P5: lb 30.5s\n    x_test.go:1: budget P6: lb 60s\n  x_test.go:1: budget P5: nlb 30s\n")
	if got := figures(out, "P5"); !slices.Equal(got, []string{"lb 30.5s", "nlb 30s"}) {
		t.Errorf("figures %q", got)
	}
}
