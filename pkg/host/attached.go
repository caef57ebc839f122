// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// bootIQN begins the names of the targets that boot volumes have on instances that boot from iSCSI.
	bootIQN = "iqn.2015-02.oracle.boot:"
	// deviceDirectory has the consistent device paths, which udev makes on the images of the cloud. The boot volume is oraclevda.
	deviceDirectory = "/dev/oracleoci"
	bootDevice      = "oraclevda"
)

// Attached is a volume that is attached to the machine. A field is empty where the machine does not show it.
type Attached struct {
	IQN    string // of the iSCSI target
	Device string // consistent device path
}

// Attached lists the volumes that are attached to the machine, whoever has attached them, as far as it shows them: those with an
// iSCSI session and those with a consistent device path. The boot volume is not among them.
func (h *Host) Attached() ([]Attached, error) {
	all, err := h.sessions()
	if err != nil {
		return nil, fmt.Errorf("attached volumes: %w", err)
	}
	var list []Attached
	of := map[string]int{} // name of a disk to its place in the list; -1 is the boot volume
	for _, s := range all {
		i := slices.IndexFunc(list, func(a Attached) bool { return a.IQN == s.iqn }) // another path to it
		switch {
		case strings.HasPrefix(s.iqn, bootIQN):
			i = -1
		case i < 0 && len(s.disks) > 0:
			i, list = len(list), append(list, Attached{IQN: s.iqn})
		}
		for _, l := range s.disks {
			of[l.name] = i
		}
	}
	links, err := os.ReadDir(h.paths.device(deviceDirectory))
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("attached volumes: %w", err)
	}
	for _, link := range links {
		path := filepath.Join(deviceDirectory, link.Name())
		d, err := h.deviceAt(path)
		if err != nil || link.Name() == bootDevice {
			continue // a link that leads nowhere
		}
		if _, err := os.Stat(h.paths.block(d.Name, "partition")); err == nil {
			continue
		}
		i, known := of[d.Name]
		for _, disk := range h.slaves(d.Name) {
			if j, is := of[disk]; is {
				i, known = j, true
			}
		}
		switch {
		case !known:
			of[d.Name], list = len(list), append(list, Attached{Device: path})
		case i >= 0:
			list[i].Device = path
		}
	}
	return list, nil
}
