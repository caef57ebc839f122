// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// sampleInterval of the CPU time of a process.
const sampleInterval = 100 * time.Millisecond

// usage samples the CPU time of a process, so that what a piece of work took can be told afterwards.
type usage struct {
	pid int

	mu      sync.Mutex
	samples []sample
	err     error
}

type sample struct {
	at  time.Time
	cpu time.Duration // since the start of the process
}

// watchUsage samples until ctx ends.
func watchUsage(ctx context.Context, pid int) *usage {
	u := &usage{pid: pid}
	go func() {
		ticker := time.NewTicker(sampleInterval)
		defer ticker.Stop()
		for ctx.Err() == nil && u.sample() == nil {
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	}()
	return u
}

func (u *usage) sample() error {
	cpu, err := processCPU(u.pid)
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil {
		u.err = err
		return err
	}
	u.samples = append(u.samples, sample{time.Now(), cpu})
	return nil
}

// between is the CPU time that the process used from one moment to another.
func (u *usage) between(from, to time.Time) (time.Duration, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.samples) == 0 || u.err != nil {
		return 0, errors.Join(errors.New("no sample of the CPU time"), u.err)
	}
	at := func(t time.Time) time.Duration { // by the last sample before
		i, found := slices.BinarySearchFunc(u.samples, t, func(s sample, t time.Time) int { return s.at.Compare(t) })
		if !found {
			i = max(0, i-1)
		}
		return u.samples[i].cpu
	}
	return at(to) - at(from), nil
}

// processCPU is the CPU time of all threads of a process, to the nanosecond: /proc/PID/stat has hundredths of a second
// only. Threads that have ended are missing; the Go runtime hardly ends any.
func processCPU(pid int) (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var total time.Duration
	read := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has just ended
		}
		first, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		total += time.Duration(n)
		read++
	}
	if read == 0 { // a process that has just been started has a thread, and no time yet
		return 0, fmt.Errorf("process %d has no CPU time: it has ended, or the kernel keeps no schedstat", pid)
	}
	return total, nil
}

// processMemory is the resident memory of a process in bytes, now and at its highest.
func processMemory(pid int) (now, peak int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		var to *int64
		switch name {
		case "VmRSS":
			to = &now
		case "VmHWM":
			to = &peak
		default:
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%s of process %d: %w", name, pid, err)
		}
		*to = kib << 10
	}
	if now == 0 || peak == 0 {
		return 0, 0, fmt.Errorf("process %d has no resident memory", pid)
	}
	return now, peak, nil
}
