// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Budgets of clusters of many nodes.
const (
	memoryBudget = 300 << 20 // bytes, at 5,000 nodes and below

	// A pass must not cost more CPU time per node in a larger cluster than in a smaller one, give or take what the clock and
	// the garbage collector do. Compared are clusters from linearFrom nodes: below, what does not grow weighs most.
	linearFactor = 1.5
	linearFrom   = 1000

	passCallBudget = 10               // for a pass over up to 1,000 nodes, and for every 1,000 more
	listInterval   = 10 * time.Second // between two rounds of lists while nodes are not ready
)

// scaling measures clusters of several sizes with the real binary.
type scaling struct {
	sizes    []int // ascending
	profiles string
	progress io.Writer
	figures  []crowdFigures
}

// parseSizes reads numbers of nodes, separated by commas.
func parseSizes(text string) ([]int, error) {
	var sizes []int
	for field := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < notReadyNodes || n > 30_000 {
			return nil, fmt.Errorf("%q is no number of nodes from %d to 30000", field, notReadyNodes)
		}
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes), nil
}

func (s *scaling) row() row {
	return row{
		name: "P13", what: fmt.Sprintf("%d Services and many nodes: the real binary and control plane", crowdServices),
		budget:  fmt.Sprintf("%s, CPU per pass linear, P1 and P3", mebibytes(memoryBudget)),
		measure: s.measure,
	}
}

func (s *scaling) measure(ctx context.Context) (string, bool, error) {
	s.figures = nil
	for _, n := range s.sizes {
		began := time.Now()
		say := func(format string, args ...any) {
			fmt.Fprintf(s.progress, "  %s nodes, %4.0f s: %s\n", thousands(n), time.Since(began).Seconds(), fmt.Sprintf(format, args...))
		}
		f, err := measureCrowd(ctx, n, s.profiles, say)
		if err != nil {
			return "", false, fmt.Errorf("%d nodes: %w", n, err)
		}
		s.figures = append(s.figures, f)
	}
	over := s.over()
	last := s.figures[len(s.figures)-1]
	measured := fmt.Sprintf("%s nodes: %s, %.2f s of CPU per pass", thousands(last.nodes), mebibytes(last.peak), last.passCPU.Seconds())
	if small, large, ok := s.ends(); ok {
		measured += fmt.Sprintf(", %.1f × that of %s nodes", large.passCPU.Seconds()/small.passCPU.Seconds(), thousands(small.nodes))
	}
	if len(over) > 0 {
		measured += "; over: " + strings.Join(over, ", ")
	}
	return measured, len(over) == 0, nil
}

// ends are the smallest and the largest cluster whose CPU time can be compared.
func (s *scaling) ends() (small, large crowdFigures, ok bool) {
	counting := slices.DeleteFunc(slices.Clone(s.figures), func(f crowdFigures) bool { return f.nodes < linearFrom })
	if len(counting) < 2 {
		return small, large, false
	}
	return counting[0], counting[len(counting)-1], true
}

// over names the budgets that are not kept.
func (s *scaling) over() []string {
	var over []string
	add := func(format string, args ...any) { over = append(over, fmt.Sprintf(format, args...)) }
	for _, f := range s.figures {
		if f.nodes <= 5000 && f.peak > memoryBudget {
			add("%s of memory at %s nodes", mebibytes(f.peak), thousands(f.nodes))
		}
		if budget := passCallBudget * ((f.nodes + 999) / 1000); f.passCalls > budget {
			add("%d calls in a pass over %s nodes instead of %d", f.passCalls, thousands(f.nodes), budget)
		}
		if most := int(notReadyWatch/listInterval) + 1; f.lists > most || f.singles > 0 {
			add("%d lists and %d single reads in %s at %s nodes instead of %d lists", f.lists, f.singles, notReadyWatch, thousands(f.nodes), most)
		}
	}
	if small, large, ok := s.ends(); ok {
		perNode := func(f crowdFigures) float64 { return f.passCPU.Seconds() / float64(f.nodes) }
		if perNode(large) > linearFactor*perNode(small) {
			add("%.0f µs of CPU per node and pass at %s nodes, %.0f µs at %s", 1e6*perNode(large), thousands(large.nodes), 1e6*perNode(small), thousands(small.nodes))
		}
	}
	return over
}

// thousands writes a number as people read it.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
