// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// furniture is what the first process of a node is told, in the file node.json of the node's directory.
type furniture struct {
	Name string
}

// readyFile says that the node is furnished.
const readyFile = "ready"

// loopNodes is how many loop devices a node can see. Those of other programs on the machine count.
const loopNodes = 256

// beginNode is the first process of a node: in namespaces that are its own it makes the paths that programs of a node expect, and
// then takes care of orphans, until it is killed, and with it all processes of the node.
func beginNode(dir string) error {
	var f furniture
	text, err := os.ReadFile(filepath.Join(dir, "node.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return unix.Sethostname([]byte(f.Name)) },
		// Mounts of containers shall reach the node, and those of the node containers. Nothing reaches the machine.
		func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "") },
		func() error { return furnishPaths(dir) },
		func() error { return furnishDevices(filepath.Join(dir, "dev")) },
		func() error { return furnishSysctls(filepath.Join(dir, "sysctl")) },
		furnishRun,
		func() error { return os.WriteFile(filepath.Join(dir, readyFile), nil, 0o600) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	children := make(chan os.Signal, 16)
	signal.Notify(children, syscall.SIGCHLD)
	for range children {
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
	return nil
}

// furnishPaths puts directories of the node over those of the machine.
func furnishPaths(dir string) error {
	for _, path := range mountPoints() {
		own := filepath.Join(dir, "fs", path)
		if err := os.MkdirAll(own, 0o755); err != nil {
			return err
		}
		if err := bind(own, path); err != nil {
			return err
		}
	}
	return nil
}

func bind(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", from, to, err)
	}
	// Private first: as a copy of a shared mount it would share with that, and what is mounted below it would appear there, too.
	for _, kind := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
		if err := unix.Mount("", to, "", unix.MS_REC|kind, ""); err != nil {
			return fmt.Errorf("share %s: %w", to, err)
		}
	}
	return nil
}

// furnishDevices makes a /dev of plain files. What appears in that directory, for example the consistent device path of an
// attachment, appears on this node alone. There is no udev.
func furnishDevices(dev string) error {
	if err := os.MkdirAll(dev, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty", "kmsg", "fuse", "loop-control"} {
		var st unix.Stat_t
		if err := unix.Stat("/dev/"+name, &st); err != nil {
			continue
		}
		if err := node(filepath.Join(dev, name), st.Mode, int(st.Rdev)); err != nil {
			return err
		}
	}
	for i := range loopNodes {
		if err := node(fmt.Sprintf("%s/loop%d", dev, i), unix.S_IFBLK|0o660, int(unix.Mkdev(7, uint32(i)))); err != nil {
			return err
		}
	}
	for link, to := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(to, filepath.Join(dev, link)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	for _, dir := range []string{"pts", "shm", "mqueue"} {
		if err := os.MkdirAll(filepath.Join(dev, dir), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("/dev/pts", filepath.Join(dev, "pts"), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("/dev/pts: %w", err)
	}
	if err := unix.Mount("tmpfs", filepath.Join(dev, "shm"), "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("/dev/shm: %w", err)
	}
	return bind(dev, "/dev")
}

func node(path string, mode uint32, number int) error {
	if err := unix.Mknod(path, mode, number); err != nil && !os.IsExist(err) {
		return fmt.Errorf("make %s: %w", path, err)
	}
	return nil
}

// furnishSysctls puts files over the settings that the kubelet insists on, so that those of the machine stay as they are.
func furnishSysctls(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, value := range map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	} {
		own := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(own, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(own, "/proc/sys/"+name, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("/proc/sys/%s: %w", name, err)
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

func furnishRun() error {
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("/run: %w", err)
	}
	if err := unix.Mount("", "/run", "", unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share /run: %w", err)
	}
	return os.MkdirAll("/run/lock", 0o755)
}
