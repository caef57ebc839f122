// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package process runs programs that never outlive the program that started them.
//
// A [Group] owns one temporary directory and any number of processes. Stop ends
// every process and removes the directory. If the owner itself is killed, without
// a chance to clean up, the kernel kills the processes (parent-death signal, Linux)
// and a small shell process that notices the closed pipe removes the directory.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
)

// ErrStopped is returned by Start after Stop.
var ErrStopped = errors.New("process group is stopped")

// Group is a set of processes and the directory they live in.
type Group struct {
	dir     string
	starts  chan func() // run on the thread whose death the kernel watches
	closed  chan struct{}
	spawner sync.WaitGroup
	janitor *janitor

	mu        sync.Mutex
	stopped   bool
	processes []*Process

	stop    sync.Once
	stopErr error
}

// NewGroup makes a group with a new directory below parent, or below the system's
// directory for temporary files if parent is empty. The directory's name begins
// with prefix.
func NewGroup(parent, prefix string) (*Group, error) {
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, fmt.Errorf("make the directory of a process group: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	j, err := startJanitor(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o755); err != nil {
		return nil, errors.Join(err, j.stop())
	}
	g := &Group{dir: dir, starts: make(chan func()), closed: make(chan struct{}), janitor: j}
	g.spawner.Go(g.spawn)
	return g, nil
}

// spawn starts processes from one operating-system thread that lives as long as
// the group: the kernel sends the parent-death signal when the *thread* that forked
// ends, and Go is free to end any thread that is not ours.
func (g *Group) spawn() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case start := <-g.starts:
			start()
		case <-g.closed:
			return
		}
	}
}

// Dir is the group's directory. It is gone after Stop.
func (g *Group) Dir() string { return g.dir }

// Spec says what to run.
type Spec struct {
	// Name is used for the log file, logs/NAME.log, and in messages. A second
	// process of the same name appends to the same log.
	Name string
	// Path is the executable; it is also argv[0].
	Path string
	Args []string
	// Env is the whole environment, except that HOME and TMPDIR are the group's
	// directory unless set here. Nothing is inherited from this process.
	Env []string
	// Dir is the working directory; by default the group's directory.
	Dir string
}

// Start starts a process in a process group of its own.
func (g *Group) Start(spec Spec) (*Process, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return nil, fmt.Errorf("start %s: %w", spec.Name, ErrStopped)
	}
	p := &Process{name: spec.Name, logPath: filepath.Join(g.dir, "logs", spec.Name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	defer log.Close() // the child has its own descriptor

	p.cmd = exec.Command(spec.Path, spec.Args...)
	p.cmd.Dir = spec.Dir
	if p.cmd.Dir == "" {
		p.cmd.Dir = g.dir
	}
	p.cmd.Env = append([]string{"HOME=" + g.dir, "TMPDIR=" + g.dir}, spec.Env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

	started := make(chan error, 1)
	g.starts <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	go p.wait()
	g.processes = append(g.processes, p)
	return p, nil
}

// Processes returns every process started so far, ended ones included.
func (g *Group) Processes() []*Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]*Process(nil), g.processes...)
}

// Stop kills every process, waits until all are gone, and removes the directory.
func (g *Group) Stop() error {
	g.stop.Do(func() {
		g.mu.Lock()
		g.stopped = true
		processes := g.processes
		g.mu.Unlock()

		for _, p := range processes {
			p.kill()
		}
		for _, p := range processes {
			<-p.done
		}
		close(g.closed)
		g.spawner.Wait()
		g.stopErr = errors.Join(os.RemoveAll(g.dir), g.janitor.stop())
	})
	return g.stopErr
}

// janitor is a shell that removes a directory when the other end of its standard
// input is closed, by us or by the kernel because we died.
type janitor struct {
	cmd  *exec.Cmd
	pipe io.Closer
}

// janitorScript tries for five seconds: the killed processes may still be writing
// while it removes.
const janitorScript = `
while read -r line; do :; done
tries=50
while [ "$tries" -gt 0 ]; do
	rm -rf -- "$1" && [ ! -e "$1" ] && exit 0
	tries=$((tries - 1))
	sleep 0.1
done
exit 1
`

func startJanitor(dir string) (*janitor, error) {
	cmd := exec.Command("/bin/sh", "-c", janitorScript, "janitor", dir)
	// A session of its own: neither the terminal's Ctrl-C nor a signal to our
	// process group reaches it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the janitor of %s: %w", dir, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the janitor of %s: %w", dir, err)
	}
	return &janitor{cmd: cmd, pipe: pipe}, nil
}

func (j *janitor) stop() error {
	err := j.pipe.Close()
	if waitErr := j.cmd.Wait(); waitErr != nil {
		err = errors.Join(err, fmt.Errorf("janitor: %w", waitErr))
	}
	return err
}
