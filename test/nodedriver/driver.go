// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package nodedriver runs oci-csi-node-driver as a process, in a mount namespace of its own, calls it as the kubelet does, and kills it after
// commands that it runs. It needs root, and util-linux.
package nodedriver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// NodeName is the name of the Node, and Zone what its labels say.
const (
	NodeName = "node-1"
	Zone     = "PHX-AD-1"
)

// startLimit is how long the driver may take to answer after its start: a guest is slow.
const startLimit = 2 * time.Minute

// Driver is a node driver that is started when it is called, and again when it has died.
type Driver struct {
	binary, dir string

	kubernetes *httptest.Server
	namespace  *exec.Cmd // keeps the mount namespace while the driver is dead

	mu      sync.Mutex
	process *exec.Cmd
	dead    chan struct{} // closed when process has ended
	conn    *grpc.ClientConn
}

// New prepares a driver: its mount namespace, programs that count, and a Kubernetes API that knows the Node and nothing else. All files are in
// dir, which must be empty.
func New(binary, dir string) (*Driver, error) {
	d := &Driver{binary: binary, dir: dir}
	if err := d.writePrograms(); err != nil {
		return nil, err
	}
	// What is mounted in there is not seen outside, and goes with the last process.
	hold := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c",
		fmt.Sprintf("mkdir -p /usr/local/sbin && mount --bind %s /usr/local/sbin && echo ready && exec sleep 1000000", d.path("programs")))
	hold.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	hold.Stderr = os.Stderr
	out, err := hold.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := hold.Start(); err != nil {
		return nil, fmt.Errorf("mount namespace: %w", err)
	}
	d.namespace = hold
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		d.Close()
		return nil, fmt.Errorf("mount namespace: %w", err)
	}
	d.kubernetes = httptest.NewServer(http.HandlerFunc(serveNode))
	return d, nil
}

func serveNode(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path != "/api/v1/nodes/"+NodeName {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		return
	}
	_, _ = fmt.Fprintf(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":%q,"labels":{"topology.kubernetes.io/zone":%q}}}`, NodeName, Zone)
}

// Close ends the driver and its namespace.
func (d *Driver) Close() {
	d.Kill()
	if d.kubernetes != nil {
		d.kubernetes.Close()
	}
	if d.namespace != nil {
		_ = d.namespace.Process.Kill()
		_ = d.namespace.Wait()
	}
}

// Kill kills the driver, if it runs, and waits for its end.
func (d *Driver) Kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process != nil {
		_ = d.process.Process.Kill()
		<-d.dead
	}
}

func (d *Driver) path(name string) string { return filepath.Join(d.dir, name) }

// Path is where this process sees a path of the driver's mount namespace.
func (d *Driver) Path(path string) string {
	return fmt.Sprintf("/proc/%d/root%s", d.namespace.Process.Pid, path)
}

// Command is a program that runs in the driver's mount namespace.
func (d *Driver) Command(argv ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--mount=" + fmt.Sprintf("/proc/%d/ns/mnt", d.namespace.Process.Pid)}, argv...)...)
}

// Run runs a program in the driver's mount namespace.
func (d *Driver) Run(argv ...string) (string, error) {
	out, err := d.Command(argv...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// Node is a client of a driver that runs.
func (d *Driver) Node(ctx context.Context) (csi.NodeClient, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process != nil {
		select {
		case <-d.dead:
			_ = d.conn.Close()
			d.process = nil
		default:
		}
	}
	if d.process == nil {
		if err := d.start(ctx); err != nil {
			if d.process != nil {
				_ = d.process.Process.Kill()
				<-d.dead
			}
			return nil, err
		}
	}
	return csi.NewNodeClient(d.conn), nil
}

func (d *Driver) start(ctx context.Context) error {
	socket := d.path("csi.sock")
	cmd := d.Command(d.binary, "--endpoint=unix://"+socket, "--nodeid="+NodeName, "--host-root=/", "--state-dir="+d.path("state"),
		"--master="+d.kubernetes.URL, "--fss-csi-driver-enabled=false")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := os.OpenFile(d.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("node driver: %w", err)
	}
	dead := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(dead)
	}()
	// The socket that a dead driver has left refuses; the next try must not wait long.
	soon := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.2, MaxDelay: 100 * time.Millisecond}, MinConnectTimeout: time.Second}
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(soon))
	if err != nil {
		return err
	}
	d.process, d.dead, d.conn = cmd, dead, conn
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		_, err = csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true))
		if err == nil {
			return nil
		}
		select {
		case <-dead:
			return fmt.Errorf("the node driver does not start: %s", d.tail())
		case <-ctx.Done():
			return fmt.Errorf("the node driver does not answer: %w: %s", err, d.tail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Log is what the driver has written.
func (d *Driver) Log() string {
	text, err := os.ReadFile(d.path("log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// tail is the end of the driver's log.
func (d *Driver) tail() string {
	text := d.Log()
	return text[max(0, len(text)-2000):]
}

// errNeverEnds is the answer of a call that was repeated too often.
var errNeverEnds = errors.New("repeated too often")

// maxAttempts is how often a call is repeated: more often than any of them has commands.
const maxAttempts = 40

// Call calls the driver as the kubelet does: again and again, while it dies or says that it is busy. It says how often the driver has died.
func (d *Driver) Call(ctx context.Context, call func(context.Context, csi.NodeClient) error) (deaths int, err error) {
	for range maxAttempts {
		node, err := d.Node(ctx)
		if err != nil {
			return deaths, err
		}
		err = call(ctx, node)
		code := status.Code(err)
		if code != codes.Unavailable && code != codes.Aborted {
			return deaths, err
		}
		select {
		case <-d.ended():
			deaths++
		case <-ctx.Done():
			return deaths, err
		case <-time.After(time.Second):
			if code == codes.Unavailable { // it lives, and means it
				return deaths, err
			}
		}
	}
	return deaths, errNeverEnds
}

// ended is closed when the process that was started last has ended.
func (d *Driver) ended() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}
