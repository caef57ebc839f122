// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	utilexec "k8s.io/utils/exec"
)

// executor runs programs for mount-utils, for one operation on one device. A mkfs runs only with the proof that the device is empty.
type executor struct {
	h      *Host
	ctx    context.Context
	act    *activity
	device Device
	proof  *blankProof
	failed error // what the last program that failed failed with, which mount-utils turns into text
}

var _ utilexec.Interface = (*executor)(nil)

// Command implements utilexec.Interface.
func (e *executor) Command(name string, args ...string) utilexec.Cmd {
	return &program{executor: e, argv: append([]string{name}, args...)}
}

// CommandContext implements utilexec.Interface.
func (e *executor) CommandContext(_ context.Context, name string, args ...string) utilexec.Cmd {
	return e.Command(name, args...)
}

// LookPath implements utilexec.Interface.
func (e *executor) LookPath(file string) (string, error) {
	path, err := e.h.lookUp(file)
	if err != nil {
		return "", utilexec.ErrExecutableNotFound
	}
	return path, nil
}

// run runs a program with the time limit that it needs. Those that write to the device are not stopped when the caller goes: half a
// file system is worth less than none.
func (e *executor) run(argv []string) (string, error) {
	c, ctx := newCommand(quickLimit, argv...), e.ctx
	switch name := argv[0]; {
	case strings.HasPrefix(name, "mkfs."):
		if err := e.mayFormat(argv); err != nil {
			return "", err
		}
		c.argv = withoutForce(argv)
		c.limit = formatLimit
	case slices.Contains([]string{"fsck", "resize2fs", "xfs_growfs", "btrfs"}, name):
		c.limit = checkLimit
	case name == "mount" || name == "umount":
		c.limit = mountLimit
	}
	if c.limit > quickLimit {
		ctx = context.WithoutCancel(ctx)
	}
	e.act.at("%s", strings.Join(c.argv, " "))
	return e.h.run(ctx, c)
}

// mayFormat makes sure that the device that is to be formatted was proven to be empty.
func (e *executor) mayFormat(argv []string) error {
	if e.proof == nil || e.proof.device.Number != e.device.Number || argv[len(argv)-1] != e.device.Path {
		return fmt.Errorf("%s: %w: no proof that it is", strings.Join(argv, " "), ErrNotBlank)
	}
	return nil
}

// withoutForce takes the flag away with which mkfs.xfs writes over what it finds. Those of ext need theirs for a whole disk.
func withoutForce(argv []string) []string {
	if argv[0] != "mkfs.xfs" {
		return argv
	}
	return slices.DeleteFunc(slices.Clone(argv), func(a string) bool { return a == "-f" })
}

// program is a command of mount-utils.
type program struct {
	*executor

	argv []string
}

var _ utilexec.Cmd = (*program)(nil)

// CombinedOutput implements utilexec.Cmd.
func (p *program) CombinedOutput() ([]byte, error) {
	out, err := p.run(p.argv)
	if err == nil {
		return []byte(out), nil
	}
	var absent *MissingToolError
	if p.failed = err; errors.As(err, &absent) {
		return nil, utilexec.ErrExecutableNotFound
	}
	if exit := exitOf(err); exit >= 0 {
		return []byte(out), utilexec.CodeExitError{Err: err, Code: exit}
	}
	return []byte(out), err
}

// Output implements utilexec.Cmd.
func (p *program) Output() ([]byte, error) { return p.CombinedOutput() }

// Run implements utilexec.Cmd.
func (p *program) Run() error {
	_, err := p.CombinedOutput()
	return err
}

// The rest of utilexec.Cmd is for programs that are talked to, of which mount-utils has none for block devices.

// Start implements utilexec.Cmd.
func (p *program) Start() error { return errors.ErrUnsupported }

// Wait implements utilexec.Cmd.
func (p *program) Wait() error { return errors.ErrUnsupported }

// Stop implements utilexec.Cmd: there is nothing that Start has started.
func (p *program) Stop() {}

// StdoutPipe implements utilexec.Cmd.
func (p *program) StdoutPipe() (io.ReadCloser, error) { return nil, errors.ErrUnsupported }

// StderrPipe implements utilexec.Cmd.
func (p *program) StderrPipe() (io.ReadCloser, error) { return nil, errors.ErrUnsupported }

// SetDir implements utilexec.Cmd; programs of the host run in its root directory.
func (p *program) SetDir(string) {}

// SetEnv implements utilexec.Cmd; programs of the host have the environment of run.
func (p *program) SetEnv([]string) {}

// SetStdin implements utilexec.Cmd; programs of the host get no input.
func (p *program) SetStdin(io.Reader) {}

// SetStdout implements utilexec.Cmd; the output is returned.
func (p *program) SetStdout(io.Writer) {}

// SetStderr implements utilexec.Cmd; the output is returned.
func (p *program) SetStderr(io.Writer) {}
