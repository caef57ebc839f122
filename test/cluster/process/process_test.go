// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ownerVariable makes the test binary an owner of a group that waits to be killed.
const ownerVariable = "PROCESS_TEST_OWNER"

func TestMain(m *testing.M) {
	if parent := os.Getenv(ownerVariable); parent != "" {
		if err := own(parent); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// own starts a group, says where it is, and waits for ever.
func own(parent string) error {
	g, err := NewGroup(parent, "owned-")
	if err != nil {
		return err
	}
	p, err := g.Start(shell("writer", "while :; do echo x > file-$$; sleep 0.01; done"))
	if err != nil {
		return err
	}
	fmt.Println(g.Dir(), p.PID())
	select {}
}

func shell(name, script string) Spec {
	return Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"}}
}

func newGroup(t *testing.T) *Group {
	t.Helper()
	g, err := NewGroup(t.TempDir(), "group-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return g
}

func start(t *testing.T, g *Group, spec Spec) *Process {
	t.Helper()
	p, err := g.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// running is false for zombies too: whoever inherits an orphan may not wait for it.
func running(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, fields, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(fields, "Z")
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestStopEndsEverything(t *testing.T) {
	g := newGroup(t)
	// A child that ignores polite signals, and a grandchild that outlives its parent.
	stubborn := start(t, g, shell("stubborn", "trap '' TERM INT; while :; do sleep 0.05; done"))
	parent := start(t, g, shell("parent", "sleep 1000 & echo $!; wait"))
	orphaning := start(t, g, shell("orphaning", "sleep 1000 & echo $!"))
	if err := orphaning.Err(); err != nil {
		t.Errorf("orphaning: %v", err)
	}
	eventually(t, "the parent names its child", func() bool { return parent.LogTail(1) != "" })

	if err := g.Stop(); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	if _, err := os.Stat(g.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory after Stop: %v, want that it does not exist", err)
	}
	for _, p := range []*Process{stubborn, parent, orphaning} {
		if running(p.PID()) {
			t.Errorf("%s runs after Stop", p.Name())
		}
	}
	if !stubborn.Asked() || orphaning.Asked() {
		t.Errorf("Asked = %t for the killed process, %t for the one that ended by itself; want true, false",
			stubborn.Asked(), orphaning.Asked())
	}
	if _, err := g.Start(shell("late", "true")); !errors.Is(err, ErrStopped) {
		t.Errorf("Start after Stop: %v, want ErrStopped", err)
	}
	if err := g.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}

func TestChildrenOfEndedProcessAreKilled(t *testing.T) {
	g := newGroup(t)
	p := start(t, g, shell("orphaning", "sleep 1000 & echo $!"))
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(p.LogTail(1))
	if err != nil {
		t.Fatalf("log: %v", err)
	}
	eventually(t, "the orphan is killed", func() bool { return !running(child) })
}

func TestOwnerIsKilled(t *testing.T) {
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"="+t.TempDir())
	owner.Stderr = os.Stderr
	stdout, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the owner said %q: %v", line, err)
	}
	var dir string
	var pid int
	if _, err := fmt.Sscan(line, &dir, &pid); err != nil {
		t.Fatal(err)
	}
	if !running(pid) {
		t.Fatal("the owner's process does not run")
	}

	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := owner.Wait(); err == nil {
		t.Error("the owner ended by itself")
	}
	eventually(t, "the owner's process is gone", func() bool { return !running(pid) })
	eventually(t, "the owner's directory is gone", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist)
	})
}

func TestProcess(t *testing.T) {
	t.Setenv("PROCESS_TEST_SECRET", "inherited")
	g := newGroup(t)

	t.Run("environment and directory", func(t *testing.T) {
		p := start(t, g, shell("env", `echo "${PROCESS_TEST_SECRET-unset}"; echo "$HOME"; pwd`))
		if err := p.Err(); err != nil {
			t.Fatal(err)
		}
		if got, want := p.LogTail(3), "unset\n"+g.Dir()+"\n"+g.Dir(); got != want {
			t.Errorf("the process printed %q, want %q", got, want)
		}
	})
	t.Run("exit code and log", func(t *testing.T) {
		p := start(t, g, shell("failing", "echo one; echo two; echo three >&2; exit 7"))
		var exit *exec.ExitError
		if err := p.Err(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
			t.Errorf("Err = %v, want exit code 7", err)
		}
		if got := p.LogTail(2); got != "two\nthree" {
			t.Errorf("LogTail(2) = %q", got)
		}
	})
	t.Run("same name appends", func(t *testing.T) {
		for range 2 {
			if err := start(t, g, shell("twice", "echo line")).Err(); err != nil {
				t.Fatal(err)
			}
		}
		p := start(t, g, shell("twice", "true"))
		if got := p.LogTail(9); got != "line\nline" {
			t.Errorf("log = %q, want both lines", got)
		}
	})
	t.Run("terminate", func(t *testing.T) {
		p := start(t, g, shell("polite", "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done"))
		eventually(t, "it is ready", func() bool { return p.LogTail(1) == "ready" })
		if err := p.Terminate(); err != nil {
			t.Fatal(err)
		}
		if err := p.Err(); err != nil {
			t.Errorf("Err = %v", err)
		}
		if got := p.LogTail(1); got != "bye" || !p.Asked() {
			t.Errorf("log ends with %q, Asked = %t", got, p.Asked())
		}
		p.Kill() // of an ended process: nothing
	})
	t.Run("no such program", func(t *testing.T) {
		if _, err := g.Start(Spec{Name: "none", Path: filepath.Join(g.Dir(), "none")}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Start = %v, want that the file does not exist", err)
		}
	})
}

func TestReservedPort(t *testing.T) {
	port, err := ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	addr := port.Addr().String()

	if _, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial without a server: %v, want that the connection is refused", err)
	}
	if _, err := net.Listen("tcp", addr); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listen by somebody else: %v, want that the address is in use", err)
	}

	sharing := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var set error
		err := c.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		return errors.Join(err, set)
	}}
	listener, err := sharing.Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatalf("listen with SO_REUSEPORT: %v", err)
	}
	defer listener.Close()
	// Every connection reaches the server, none our silent socket.
	for range 20 {
		accepted := make(chan error, 1)
		go func() {
			conn, err := listener.Accept()
			if err == nil {
				err = conn.Close()
			}
			accepted <- err
		}()
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(<-accepted, conn.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
