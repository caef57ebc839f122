// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Time limits of programs. They are for programs that hang; what a caller wants to wait for is in its context.
const (
	quickLimit  = 30 * time.Second // asks the kernel or a daemon
	loginLimit  = time.Minute      // open-iscsi's own limits of a login and a logout are below that
	mountLimit  = 5 * time.Minute  // a journal is replayed
	checkLimit  = 30 * time.Minute // fsck of 32 TiB after a crash, resize2fs
	formatLimit = 30 * time.Minute // mkfs of 32 TiB, with discard
)

const (
	// outputLimit is how much of a program's output is kept, in bytes; complaintLimit how much of its end goes into an error.
	outputLimit    = 64 << 10
	complaintLimit = 512
	// killGrace is how long pipes that a killed program's children hold are waited for.
	killGrace = 2 * time.Second
)

// command is a program of the host and its arguments.
type command struct {
	argv   []string
	limit  time.Duration
	secret string // an argument that no error shows; empty: none
}

func newCommand(limit time.Duration, argv ...string) command {
	return command{argv: argv, limit: limit}
}

// run runs a program in the host's mount namespace, and returns what it wrote to standard output and standard error. It
// returns when the program has ended, which one that hangs in the kernel does not: callers that do not wait for that use
// operate.
func (h *Host) run(ctx context.Context, c command) (string, error) {
	path, err := h.lookUp(c.argv[0])
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, c.argv[1:]...)
	cmd.Env = []string{"PATH=" + strings.Join(h.paths.Programs, ":"), "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its children are killed, too
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killGrace
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	if h.paths.MountNamespace != "" {
		cmd.Dir = "/" // this process's may not exist there
	}
	if err = inNamespace(h.paths.MountNamespace, cmd.Start); err == nil {
		err = cmd.Wait()
	} else if errors.Is(err, fs.ErrNotExist) {
		return "", h.missing(c.argv[0])
	}
	if err == nil || errors.Is(err, exec.ErrWaitDelay) { // it has ended well, and left a child that holds its output
		return out.String(), nil
	}
	failed := &CommandError{Argv: c.shown(), Exit: -1, Output: out.end(c.secret), err: err}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		failed.err = ctx.Err()
	case errors.As(err, &exit):
		failed.Exit = exit.ExitCode()
	}
	return out.String(), failed
}

// shown are the arguments without the secret.
func (c command) shown() []string {
	argv := make([]string, len(c.argv))
	for i, a := range c.argv {
		if argv[i] = a; c.secret != "" && a == c.secret {
			argv[i] = "[redacted]"
		}
	}
	return argv
}

// lookUp finds a program of the host.
func (h *Host) lookUp(name string) (string, error) {
	for _, dir := range h.paths.Programs {
		path := filepath.Join(dir, name)
		// Lstat, since a link can be absolute, and then leads elsewhere here.
		if info, err := os.Lstat(h.paths.file(path)); err == nil && !info.IsDir() {
			return path, nil
		}
	}
	return "", h.missing(name)
}

// tail keeps the end of what is written to it.
type tail struct{ kept bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	if extra := t.kept.Len() + len(p) - outputLimit; extra > 0 {
		t.kept.Next(min(extra, t.kept.Len()))
	}
	t.kept.Write(p[max(0, len(p)-outputLimit):])
	return len(p), nil
}

func (t *tail) String() string { return t.kept.String() }

// end is the end of the output, for an error.
func (t *tail) end(secret string) string {
	text := strings.TrimSpace(t.String())
	if secret != "" {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	if len(text) > complaintLimit {
		text = "…" + strings.ToValidUTF8(text[len(text)-complaintLimit:], "")
	}
	return text
}
