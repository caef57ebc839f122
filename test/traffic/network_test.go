// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// Addresses of the network around the region. Nodes and balancers have those of the demo world.
const (
	publicRange    = "198.18.0.0/15" // from which the simulator takes public addresses
	balancerSubnet = "10.0.20.0/24"  // of the demo world
	nodeBridge     = "nodes"         // the subnet of the nodes
	nodeGateway    = "10.0.10.1"
	clientRange    = "203.0.113.0/24"
	clientGateway  = "203.0.113.1"
	clientAddress  = "203.0.113.10"
	clientSpace    = "client"
	// returnTable is the routing table for what nodes send to clients: it belongs to the balancer that preserved the source.
	returnTable = "100"
)

// run runs a program of the system.
func run(t testing.TB, name string, args ...string) {
	t.Helper()
	if err := execute(name, args...); err != nil {
		t.Fatal(err)
	}
}

func execute(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// ip runs lines of ip's batch mode, in a network namespace or, if that is "", in ours.
func ip(t testing.TB, space string, lines ...string) {
	t.Helper()
	args := []string{"-batch", "-"}
	if space != "" {
		args = append([]string{"-n", space}, args...)
	}
	cmd := exec.Command("ip", args...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ip in %q: %v: %s\n%s", space, err, out, strings.Join(lines, "\n"))
	}
}

// network is the part of the world outside the nodes: the subnets of the region, which are our own network namespace,
// and the clients, who are in another one.
//
//	client 203.0.113.10 ── region: balancers 198.18.x.x, 10.0.20.x ── bridge 10.0.10.1 ── nodes 10.0.10.11, … ── pods
func newNetwork(t testing.TB) {
	t.Helper()
	run(t, "ip", "netns", "add", clientSpace)
	ip(t, "",
		"link set lo up",
		// An address of its own: it would take that of one of its ports, and the nodes would not find it any more when that one goes.
		"link add "+nodeBridge+" address 02:00:00:00:00:01 type bridge",
		"address add "+nodeGateway+"/24 dev "+nodeBridge,
		"link set "+nodeBridge+" up",
		// Balancers may listen at all addresses that the region gives them.
		"route add local "+publicRange+" dev lo",
		"route add local "+balancerSubnet+" dev lo",
		"link add client type veth peer name eth0 netns "+clientSpace,
		"address add "+clientGateway+"/24 dev client",
		"link set client up",
		"rule add iif "+nodeBridge+" lookup "+returnTable,
		"route add local "+clientRange+" dev lo table "+returnTable,
	)
	ip(t, clientSpace,
		"link set lo up",
		"address add "+clientAddress+"/24 dev eth0",
		"link set eth0 up",
		"route add default via "+clientGateway,
	)
	sysctls(t, "", "net.ipv4.ip_forward=1")
	for _, space := range []string{"", clientSpace} {
		// Each request may be a connection, and their ports are taken for a minute afterwards.
		sysctls(t, space, "net.ipv4.ip_local_port_range=1024 65535", "net.ipv4.tcp_tw_reuse=1")
	}
	t.Cleanup(func() {
		// A link goes at once, and the namespace of its other end some time later.
		ip(t, "",
			"link del client",
			"rule del iif "+nodeBridge+" lookup "+returnTable,
			"link del "+nodeBridge,
			"route del local "+publicRange+" dev lo",
			"route del local "+balancerSubnet+" dev lo",
			"route flush table "+returnTable,
		)
		run(t, "ip", "netns", "del", clientSpace)
	})
}

// sysctls sets variables of a network namespace.
func sysctls(t testing.TB, space string, settings ...string) {
	t.Helper()
	var err error
	inSpace(t, space, func() {
		for _, s := range settings {
			name, v, _ := strings.Cut(s, "=")
			if err = os.WriteFile("/proc/sys/"+strings.ReplaceAll(name, ".", "/"), []byte(v), 0o644); err != nil {
				return
			}
		}
	})
	if err != nil {
		t.Fatalf("sysctl in %q: %v", space, err)
	}
}

// inSpace calls a function on a thread in a network namespace.
func inSpace(t testing.TB, space string, do func()) {
	t.Helper()
	if space == "" {
		do()
		return
	}
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err = enterSpace(space); err == nil {
			do()
		}
	}()
	<-done
	if err != nil {
		t.Fatal(err)
	}
}

// enterSpace takes the goroutine to a network namespace for good: its thread ends with it.
func enterSpace(space string) error {
	runtime.LockOSThread()
	fd, err := unix.Open(spacePath(space), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("network namespace %s: %w", space, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", space, err)
	}
	return nil
}

func spacePath(space string) string { return filepath.Join("/run/netns", space) }

// inside turns a command into one that runs in a network namespace, as the same process.
func inside(t testing.TB, space, path string, args ...string) (nsenter string, all []string) {
	t.Helper()
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		t.Fatal(err)
	}
	return nsenter, append([]string{"--net=" + spacePath(space), "--", path}, args...)
}

// nodeNumber finds the node that has an address, as a node or as the gateway of its pods; -1 if there is none.
func (l *lab) nodeNumber(a netip.Addr) int {
	for i, m := range l.machines {
		if m != nil && (a.String() == testbed.NodeIP(i) || a == m.gateway()) {
			return i
		}
	}
	return -1
}
