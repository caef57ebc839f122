// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// The network: our namespace is the region and the control plane, and has a bridge to the nodes.
//
//	API server 10.96.0.1 ── bridge 10.0.10.1 ── nodes 10.0.10.11, … ── pods
const (
	nodeBridge  = "nodes" // the subnet of the nodes
	nodeGateway = "10.0.10.1"
	// apiAddress is that of the Service kubernetes. There is no kube-proxy: we listen there, and forward to the API server.
	apiAddress = "10.96.0.1"
)

// ip runs lines of ip's batch mode, in a network namespace or, if that is "", in ours.
func ip(t testing.TB, space string, lines ...string) {
	t.Helper()
	if err := ipBatch(space, lines...); err != nil {
		t.Fatal(err)
	}
}

func ipBatch(space string, lines ...string) error {
	args := []string{"-batch", "-"}
	if space != "" {
		args = append([]string{"-n", space}, args...)
	}
	cmd := exec.Command("ip", args...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip in %q: %w: %s\n%s", space, err, out, strings.Join(lines, "\n"))
	}
	return nil
}

// execute runs a program of the system.
func execute(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// newNetwork makes the region's side.
func newNetwork(t testing.TB) {
	t.Helper()
	ip(t, "",
		"link set lo up",
		"address add "+apiAddress+"/32 dev lo",
		// An address of its own: it would take that of one of its ports, and the nodes would not find it any more when that one goes.
		"link add "+nodeBridge+" address 02:00:00:00:00:01 type bridge",
		"address add "+nodeGateway+"/24 dev "+nodeBridge,
		"link set "+nodeBridge+" up",
	)
	t.Cleanup(func() { ip(t, "", "link del "+nodeBridge, "address del "+apiAddress+"/32 dev lo") })
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// forward passes connections to the API server on. Its certificate is for both addresses.
func forward(t testing.TB, to string) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(apiAddress, "443"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go pass(conn, to)
		}
	}()
}

func pass(conn net.Conn, to string) {
	defer conn.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(server, conn); server.Close() })
	both.Go(func() { _, _ = io.Copy(conn, server); conn.Close() })
	both.Wait()
}
