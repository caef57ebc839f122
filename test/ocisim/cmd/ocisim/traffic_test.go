// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server/adminclient"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/traffic"
)

// TestServeTraffic lets the binary forward to a real backend.
func TestServeTraffic(t *testing.T) {
	backend, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backend.Close() })
	go func() {
		for {
			conn, err := backend.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "hello\n")
			conn.Close()
		}
	}()
	s := run(t, "--traffic", "--traffic-speed", "1000", "--traffic-loopback", "127.33.0.1", "--traffic-backend", "10.0.77.0/24="+backend.Addr().String())
	ctx := t.Context()
	world := `{"loadBalancers": [{"name": "web", "backendSets": [{"name": "set", "backends": [{"address": "10.0.77.1", "port": 30080}]}], "listeners": [{"name": "web", "port": 80}]}]}`
	if err := s.admin.Seed(ctx, []byte(world)); err != nil {
		t.Fatal(err)
	}
	var l traffic.Listener
	deadline := time.Now().Add(2 * time.Minute)
	answers := func() bool {
		shown, err := s.admin.Traffic(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(shown.Listeners) != 1 || shown.Listeners[0].Listen == "" {
			return false
		}
		l = shown.Listeners[0]
		conn, err := net.Dial("tcp", l.Listen)
		if err != nil {
			return false
		}
		defer conn.Close()
		line, _ := bufio.NewReader(conn).ReadString('\n')
		return line == "hello\n"
	}
	wait := func(what string, done func() bool) {
		t.Helper()
		for !done() {
			if time.Now().After(deadline) {
				t.Fatalf("waited for: %s; listener %+v", what, l)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	wait("an answer", answers)
	if l.Listen != "127.33.0.1:20080" || l.Name != "web" || l.Port != 80 || l.Problem != "" {
		t.Errorf("listener %+v", l)
	}
	if err := s.admin.SetBackendHealth(ctx, l.Balancer, "set", "10.0.77.1:30080", ocisim.HealthCritical); err != nil {
		t.Fatal(err)
	}
	wait("no answer from a CRITICAL backend", func() bool { return !answers() })
	if err := s.admin.SetBackendHealth(ctx, l.Balancer, "set", "10.0.77.1:30080", ""); err != nil {
		t.Fatal(err)
	}
	if err := s.admin.SetLoopback(ctx, l.Addresses[0], netip.MustParseAddr("127.33.9.9")); err != nil {
		t.Fatal(err)
	}
	wait("an answer at another address", func() bool { return answers() && strings.HasPrefix(l.Listen, "127.33.9.9:") })
	if err := s.admin.MapBackend(ctx, "10.0.77.1", "127.0.0.1:1"); err != nil { // which counts more than the block
		t.Fatal(err)
	}
	wait("no answer from a closed port", func() bool { return !answers() })

	refused := func(err error, status int) {
		t.Helper()
		var e *adminclient.Error
		if !errors.As(err, &e) || e.Status != status {
			t.Errorf("error %v, want %d", err, status)
		}
	}
	refused(s.admin.SetBackendHealth(ctx, "none", "set", "x", ocisim.HealthOK), http.StatusNotFound)
	refused(s.admin.SetBackendHealth(ctx, l.Balancer, "set", "10.0.77.1:30080", "SICK"), http.StatusBadRequest)
	refused(s.admin.SetLoopback(ctx, "198.18.0.9", netip.MustParseAddr("192.0.2.1")), http.StatusBadRequest)
	refused(s.admin.MapBackend(ctx, "", "x"), http.StatusBadRequest)
}

func TestWithoutTraffic(t *testing.T) {
	s := run(t)
	var e *adminclient.Error
	if _, err := s.admin.Traffic(t.Context()); !errors.As(err, &e) || e.Status != http.StatusConflict {
		t.Errorf("error %v, want 409", err)
	}
	for _, flags := range [][]string{{"--traffic-backend", "10.0.0.1"}, {"--traffic-loopback", "10.0.0.1"}} {
		args := append([]string{"serve", "--traffic", "--admin", "127.0.0.1:0", "--dir", t.TempDir()}, flags...)
		if out, err := exec.CommandContext(t.Context(), built.simulator, args...).CombinedOutput(); err == nil || !strings.Contains(string(out), flags[0]) {
			t.Errorf("%v: %v %s", flags, err, out)
		}
	}
}
