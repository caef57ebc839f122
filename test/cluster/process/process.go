// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
)

// tailBytes bounds how much of a log LogTail looks at.
const tailBytes = 256 << 10

// Process is one started program.
type Process struct {
	name    string
	logPath string
	cmd     *exec.Cmd
	asked   atomic.Bool // somebody asked it to end
	done    chan struct{}
	err     error // valid once done is closed
}

func (p *Process) wait() {
	err := p.cmd.Wait()
	// What the program started and left behind in its process group goes with it.
	// The identifier cannot have been given away yet if there is anything to kill.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	p.err = err
	close(p.done)
}

// Name is the name given in the Spec.
func (p *Process) Name() string { return p.name }

// PID is the process identifier, also that of its process group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended and was waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Asked reports whether Kill, Terminate or the group's Stop ended the process, as
// opposed to its own decision.
func (p *Process) Asked() bool { return p.asked.Load() }

// Err waits for the process to end and describes how it ended; nil is exit code 0.
func (p *Process) Err() error {
	<-p.done
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", p.name, p.err)
}

// Signal sends a signal to the process alone, for example SIGSTOP and SIGCONT.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", signal, p.name, err)
	}
	return nil
}

// Terminate asks the process to end (SIGTERM). Wait for Done or Err afterwards.
func (p *Process) Terminate() error {
	p.asked.Store(true)
	return p.Signal(syscall.SIGTERM)
}

// Kill ends the process and its children at once (SIGKILL) and waits for it.
func (p *Process) Kill() {
	p.kill()
	<-p.done
}

func (p *Process) kill() {
	select {
	case <-p.done: // its identifier may belong to somebody else by now
		return
	default:
	}
	p.asked.Store(true)
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
}

// LogPath is the file with the process's standard output and standard error.
func (p *Process) LogPath() string { return p.logPath }

// LogTail returns the last lines of the log, or why it cannot be read.
func (p *Process) LogTail(lines int) string {
	f, err := os.Open(p.logPath)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		_, _ = f.Seek(-tailBytes, io.SeekEnd)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
