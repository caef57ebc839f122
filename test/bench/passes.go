// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

const (
	// passPeriod is the time between two passes here. It is 5 minutes by default; the pass is the same.
	passPeriod = 30 * time.Second
	// passes that are measured: an even number, since every second one reads the instances too.
	passes = 4
	// passMargin and passTail are what counts as part of a pass before and after it: a log line is seen late, and garbage is
	// collected afterwards.
	passMargin = 200 * time.Millisecond
	passTail   = 2 * time.Second
)

// onePass is what a pass over all nodes took.
type onePass struct {
	took  time.Duration
	cpu   time.Duration
	calls int // to OCI
}

// passLine is what k8s.io/cloud-provider logs at the end of a pass (controllers/node, UpdateNodeStatus).
var passLine = regexp.MustCompile(`Update (\d+) nodes status took (\S+)\.$`)

// tail reads what is appended to a file.
type tail struct {
	path   string
	offset int64
}

// lines returns the whole lines since the last call.
func (t *tail) lines() ([]string, error) {
	file, err := os.Open(t.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(t.offset, io.SeekStart); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	end := bytes.LastIndexByte(text, '\n') + 1
	t.offset += int64(end)
	return strings.FieldsFunc(string(text[:end]), func(r rune) bool { return r == '\n' }), nil
}

// observePasses waits for passes and tells what each took, and what the process used of a core between them.
func (c *crowd) observePasses(ctx context.Context) (all []onePass, idle float64, err error) {
	log := &tail{path: c.ccm.Log}
	if _, err := log.lines(); err != nil { // what is past
		return nil, 0, err
	}
	began := time.Now()
	var busy, inPasses time.Duration
	for len(all) < passes {
		took, err := c.nextPass(ctx, log)
		if err != nil {
			return nil, 0, err
		}
		end := time.Now()
		begin := end.Add(-took - passMargin)
		if begin.Before(began) {
			continue // it began before we looked
		}
		if err := pause(ctx, passTail); err != nil {
			return nil, 0, err
		}
		cpu, err := c.usage.between(begin, end.Add(passTail))
		if err != nil {
			return nil, 0, err
		}
		one := onePass{took: took, cpu: cpu, calls: c.callsBetween(begin, end)}
		c.say("pass: %s, %s of CPU, %d calls", took.Round(time.Millisecond), cpu.Round(time.Millisecond), one.calls)
		all = append(all, one)
		busy += cpu
		inPasses += took + passMargin + passTail
	}
	end := time.Now()
	total, err := c.usage.between(began, end)
	if err != nil {
		return nil, 0, err
	}
	return all, (total - busy).Seconds() / (end.Sub(began) - inPasses).Seconds(), nil
}

// nextPass waits for the end of a pass and returns how long it took.
func (c *crowd) nextPass(ctx context.Context, log *tail) (time.Duration, error) {
	for {
		lines, err := log.lines()
		if err != nil {
			return 0, err
		}
		for _, line := range lines {
			m := passLine.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			if m[1] != fmt.Sprint(c.nodes) {
				return 0, fmt.Errorf("a pass over %s nodes instead of %d", m[1], c.nodes)
			}
			return time.ParseDuration(m[2])
		}
		if err := pause(ctx, sampleInterval/2); err != nil {
			return 0, err
		}
	}
}

// callsBetween counts the calls about nodes.
func (c *crowd) callsBetween(from, to time.Time) int {
	n := 0
	for _, call := range c.bed.Region.Calls() {
		aboutNodes := call.Service == ocisim.ServiceCompute || call.Service == ocisim.ServiceVirtualNetwork
		if aboutNodes && !call.Time.Before(from) && !call.Time.After(to) {
			n++
		}
	}
	return n
}

// pause waits, but not longer than the context.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
