// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// childVariable tells a process that it is a child of TestKilledAfterAnyCommand.
const childVariable = "HOST_TEST_CHILD"

func TestMain(m *testing.M) {
	text := os.Getenv(childVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var s step
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		var h *Host
		if h, err = labHost(s.Dir); err == nil {
			err = s.run(h, func(n int) { err = errors.Join(err, os.WriteFile(s.Dir+"/progress", []byte(itoa(n)), 0o600)) })
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child runs operations in a process of its own, and says whether it was killed.
func (l *lab) child(s step) bool {
	l.Helper()
	text, err := json.Marshal(s)
	l.must(err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &exit) && exit.ExitCode() == -1: // by a signal
		return true
	}
	l.Fatalf("child: %v %s", err, out)
	return false
}

func itoa(n int) string { return strconv.Itoa(n) }

func timeout(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}
