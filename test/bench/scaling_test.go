// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// measured are figures within all budgets.
func measured() []crowdFigures {
	var all []crowdFigures
	for i, n := range []int{100, 1000, 5000} {
		all = append(all, crowdFigures{
			nodes: n, register: time.Second, join: time.Duration(n) * 12 * time.Millisecond, joinP99: time.Second, calls: []int{17, 19, 42}[i],
			pass: time.Duration(n) * 400 * time.Microsecond, passCPU: time.Duration(n) * 200 * time.Microsecond, passCalls: []int{6, 6, 18}[i],
			idle: 0.01, lists: 6, resident: 150 << 20, peak: 250 << 20,
		})
	}
	return all
}

// TestBudgetsOfScaling: each budget can be missed, and is named then.
func TestBudgetsOfScaling(t *testing.T) {
	for want, change := range map[string]func(all []crowdFigures){
		"":                                 func([]crowdFigures) {},
		"of memory at 5,000":               func(all []crowdFigures) { all[2].peak = memoryBudget + 1<<20 },
		"calls in a pass over 1,000 nodes": func(all []crowdFigures) { all[1].passCalls = 11 },
		"calls in a pass over 5,000 nodes": func(all []crowdFigures) { all[2].passCalls = 51 },
		"8 lists and 0":                    func(all []crowdFigures) { all[0].lists = 8 },
		"6 lists and 1 single":             func(all []crowdFigures) { all[2].singles = 1 },
		"µs of CPU per node":               func(all []crowdFigures) { all[2].passCPU *= 2 },
	} {
		s := &scaling{figures: measured()}
		change(s.figures)
		over := strings.Join(s.over(), ", ")
		if want == "" && over != "" || !strings.Contains(over, want) {
			t.Errorf("over %q; want %q", over, want)
		}
	}
}

// TestPlot: the plot is XML, shows every figure, and no label covers another one.
func TestPlot(t *testing.T) {
	text, err := plotFigures(measured())
	if err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(strings.NewReader(text))
	elements := map[string]int{}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok {
			elements[start.Name.Local]++
		}
	}
	if elements["circle"] != 18 || elements["polyline"] != 6 {
		t.Errorf("elements %v", elements)
	}
	for _, want := range []string{"a pass of v1.35 15,000", "all nodes join 42", "all nodes join 60", "a pass, CPU 1<", "5,000", "Seconds", "nodes<", "prefers-color-scheme: dark"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	lines := []line{{LabelY: 100}, {LabelY: 90}, {LabelY: 101}}
	spread(lines)
	ys := []float64{lines[0].LabelY, lines[1].LabelY, lines[2].LabelY}
	slices.Sort(ys)
	if ys[1]-ys[0] < labelHeight || ys[2]-ys[1] < labelHeight || lines[2].LabelY < lines[0].LabelY {
		t.Errorf("labels at %v", lines)
	}
	if _, err := plotFigures(measured()[:1]); err == nil {
		t.Error("one point is plotted")
	}
}

// TestDocument: the text between the marks is replaced, and what was written before it stays.
func TestDocument(t *testing.T) {
	r := report{Figures: measured(), Machine: "a machine", Results: []result{{row{name: "P1", what: "a | b", budget: "10"}, "7 calls", true}}}
	text, err := r.text()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 100 nodes | 1,000 nodes | 5,000 nodes |", "| 6 | 6 | 18 |", "| 250 | 250 | 250 |", `| P1: a \| b | 10 | 7 calls | ok |`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	got, err := between("before\n"+beginMark+"\nold\n"+endMark+"\nafter\n", text)
	if err != nil || !strings.HasPrefix(got, "before\n"+beginMark+"\na machine") || !strings.HasSuffix(got, endMark+"\nafter\n") || strings.Contains(got, "old") {
		t.Errorf("%v\n%s", err, got)
	}
	if _, err := between("no marks", text); err == nil {
		t.Error("a document without marks is changed")
	}
	// The document of the tree has the marks.
	tree, err := os.ReadFile(filepath.Join("../..", documentPath))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := between(string(tree), text); err != nil {
		t.Error(err)
	}
}

// TestCrowdWorld: the region takes the world, whatever its size.
func TestCrowdWorld(t *testing.T) {
	region := ocisim.New(ocisim.Options{})
	if err := region.Seed(crowdWorld(1200)); err != nil {
		t.Fatal(err)
	}
	if n := len(region.Instances()); n != 1200 {
		t.Errorf("%d instances", n)
	}
	for _, i := range []int{0, 1, 4998, 4999} {
		subnet := []netip.Prefix{netip.MustParsePrefix("10.0.64.0/18"), netip.MustParsePrefix("10.0.128.0/18")}[i%2]
		if address := netip.MustParseAddr(crowdIP(i)); !subnet.Contains(address) {
			t.Errorf("node %d has address %s", i, address)
		}
	}
}

// TestUsage: the CPU time of this process grows by what it uses, and its memory is read.
func TestUsage(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	u := watchUsage(ctx, os.Getpid())
	time.Sleep(2 * sampleInterval)
	before, err := processCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	x := 1.0
	for after := before; after-before < 50*time.Millisecond; {
		for range 100_000 {
			x = math.Sqrt(x + 1)
		}
		if after, err = processCPU(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * sampleInterval)
	if used, err := u.between(began, time.Now()); err != nil || used < 30*time.Millisecond {
		t.Errorf("used %s, %v; want 50ms at least (%v)", used, err, x)
	}
	now, peak, err := processMemory(os.Getpid())
	if err != nil || now < 1<<20 || peak < now {
		t.Errorf("memory %d, at most %d, %v", now, peak, err)
	}
	if _, _, err := processMemory(1 << 30); err == nil {
		t.Error("a process that does not exist has memory")
	}
}

// TestTail: whole lines only, each once.
func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
	log := &tail{path: path}
	write("one\ntwo")
	if lines, err := log.lines(); err != nil || !slices.Equal(lines, []string{"one"}) {
		t.Errorf("lines %q, %v", lines, err)
	}
	write(" more\n")
	if lines, err := log.lines(); err != nil || !slices.Equal(lines, []string{"two more"}) {
		t.Errorf("lines %q, %v", lines, err)
	}
	m := passLine.FindStringSubmatch("I1130 20:00:00.000000   12 node_controller.go:276] Update 5000 nodes status took 1.234567891s.")
	if m == nil || m[1] != "5000" {
		t.Fatalf("match %q", m)
	}
	if took, err := time.ParseDuration(m[2]); err != nil || took.Round(time.Second) != time.Second {
		t.Errorf("took %s, %v", took, err)
	}
}
