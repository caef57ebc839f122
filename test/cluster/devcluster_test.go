// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestDevcluster runs the command until its cluster is up and ends it in the ways a
// developer or a CI system would.
func TestDevcluster(t *testing.T) {
	program := filepath.Join(t.TempDir(), "devcluster")
	if out, err := exec.Command("go", "build", "-o", program, "./cmd/devcluster").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for name, test := range map[string]struct {
		signal syscall.Signal
		code   int
	}{
		"Ctrl-C": {syscall.SIGINT, 0},
		"killed": {syscall.SIGKILL, -1},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(program, "-scheduler=false", "-nodes=3")
			cmd.Stderr = os.Stderr
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			kubeconfig, kubectl := instructions(t, bufio.NewScanner(stdout))

			get := exec.Command(kubectl, "get", "nodes", "--output=name")
			get.Env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + t.TempDir()}
			out, err := get.CombinedOutput()
			if err != nil || strings.Count(string(out), "node/node-000") != 3 {
				t.Errorf("kubectl get nodes: %v\n%s", err, out)
			}

			if err := cmd.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the exit code says it all
			if code := cmd.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			// After SIGKILL, it is others who clean up.
			dir := filepath.Dir(kubeconfig)
			eventually(t, dir+" and the processes in it are gone", func() bool {
				_, err := os.Stat(dir)
				return errors.Is(err, os.ErrNotExist) && len(inhabitants(t, dir)) == 0
			})
		})
	}
}

// instructions are the kubeconfig and the kubectl that the command names.
func instructions(t *testing.T, lines *bufio.Scanner) (kubeconfig, kubectl string) {
	t.Helper()
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		if strings.HasPrefix(lines.Text(), "Ctrl-C ") {
			break
		}
	}
	text := strings.Join(said, "\n")
	found := regexp.MustCompile(`export KUBECONFIG=(\S+)\s+(\S+/kubectl) get nodes`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no instructions in:\n%s", text)
	}
	return found[1], found[2]
}
