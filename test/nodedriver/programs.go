// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodedriver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// programs are those that the driver runs on a host.
var programs = [...]string{
	"blkid", "btrfs", "fsck", "iscsiadm", "mkfs.btrfs", "mkfs.ext3", "mkfs.ext4", "mkfs.xfs", "mount", "multipath", "multipathd", "resize2fs", "udevadm", "umount", "xfs_growfs",
}

// counter is put before a program: it writes down the command when its work is done, and then kills the driver, if it was told to: at the
// n-th command (file kill-at), or after each command that was never killed after (directory kill-each). It starts no other program, since that
// takes long in a guest.
const counter = `#!/bin/sh
%[1]s "$@"
status=$?
line="%[2]s $*"
echo "$line" >>%[3]s/calls
die=
if [ -e %[3]s/kill-at ]; then
	read -r at <%[3]s/kill-at
	n=0
	while read -r _; do n=$((n + 1)); done <%[3]s/calls
	[ "$n" -ne "$at" ] || die=yes
elif [ -e %[3]s/kill-each ]; then
	die=yes
	while read -r old; do [ "$old" != "$line" ] || die=; done <%[3]s/kill-each
	[ -z "$die" ] || echo "$line" >>%[3]s/kill-each
fi
[ -z "$die" ] || kill -9 $PPID
exit $status
`

func (d *Driver) writePrograms() error {
	dir := d.path("programs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range programs {
		for _, place := range []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
			original := filepath.Join(place, name)
			if _, err := os.Stat(original); err != nil {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, counter, original, name, d.dir), 0o755); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// KillAt lets the driver be killed when it has run n commands from now on; 0 lets it live.
func (d *Driver) KillAt(n int) error {
	if err := remove(d.path("calls"), d.path("kill-at"), d.path("kill-each")); err != nil || n == 0 {
		return err
	}
	return os.WriteFile(d.path("kill-at"), []byte(strconv.Itoa(n)+"\n"), 0o600)
}

// KillEach lets the driver be killed after each command, once: a command that it was killed after is not killed after when it is repeated.
func (d *Driver) KillEach() error {
	if err := d.KillAt(0); err != nil {
		return err
	}
	return os.WriteFile(d.path("kill-each"), nil, 0o600)
}

func remove(paths ...string) error {
	for _, p := range paths {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Calls are the commands that have run since KillAt or KillEach, those that begin with a text, if there is one.
func (d *Driver) Calls(begin string) ([]string, error) {
	text, err := os.ReadFile(d.path("calls"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, begin) {
			list = append(list, line)
		}
	}
	return list, nil
}
