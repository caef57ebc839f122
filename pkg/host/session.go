// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// session is an iSCSI session as the kernel shows it.
type session struct {
	id      string // "3", as iscsiadm numbers them
	iqn     string
	state   string // "LOGGED_IN", "FAILED", "FREE"
	portals []netip.AddrPort
	disks   []lun
}

// lun is a disk of a session.
type lun struct {
	name   string // "sdb"
	number int
}

const loggedIn = "LOGGED_IN"

// addressForm is a SCSI address: host, channel, target, LUN.
var addressForm = regexp.MustCompile(`^\d+:\d+:\d+:(\d+)$`)

// sessions reads all iSCSI sessions. Where the kernel knows no iSCSI there are none.
func (h *Host) sessions() ([]session, error) {
	class := filepath.Join(h.paths.Sys, "class", "iscsi_session")
	var list []session
	for _, name := range names(class) {
		iqn, err := h.attribute(filepath.Join(class, name, "targetname"))
		if err != nil {
			continue // it has just ended
		}
		s := session{id: strings.TrimPrefix(name, "session"), iqn: iqn}
		if s.state, err = h.attribute(filepath.Join(class, name, "state")); err != nil {
			continue
		}
		dir, err := filepath.EvalSymlinks(filepath.Join(class, name, "device"))
		if err != nil {
			if os.IsNotExist(err) {
				continue
			}
			return nil, fmt.Errorf("iSCSI session %s: %w", s.id, err)
		}
		s.portals = h.portals(dir)
		s.disks = disksBelow(dir)
		list = append(list, s)
	}
	return list, nil
}

// portals reads the addresses of a session's connections: that which the session was made for, and that which it has now, to which
// the target may have sent it on.
func (h *Host) portals(dir string) []netip.AddrPort {
	var list []netip.AddrPort
	connections, _ := filepath.Glob(filepath.Join(dir, "connection*", "iscsi_connection", "connection*")) // the pattern is right
	for _, c := range connections {
		for _, kind := range []string{"persistent_", ""} {
			address, errAddress := h.attribute(filepath.Join(c, kind+"address"))
			port, errPort := h.attribute(filepath.Join(c, kind+"port"))
			if errAddress != nil || errPort != nil {
				continue
			}
			a, errAddress := netip.ParseAddr(address)
			n, errPort := strconv.ParseUint(port, 10, 16)
			if p := netip.AddrPortFrom(a, uint16(n)); errAddress == nil && errPort == nil && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// disksBelow finds the disks below the directory of a session.
func disksBelow(dir string) []lun {
	var list []lun
	blocks, _ := filepath.Glob(filepath.Join(dir, "target*", "*", "block", "*")) // the pattern is right
	for _, b := range blocks {
		address := addressForm.FindStringSubmatch(filepath.Base(filepath.Dir(filepath.Dir(b))))
		if address == nil {
			continue
		}
		n, err := strconv.Atoi(address[1])
		if err != nil {
			continue
		}
		list = append(list, lun{name: filepath.Base(b), number: n})
	}
	return list
}

// serves says whether the session is with a target.
func (s session) serves(t Target) bool { return s.iqn == t.IQN && slices.Contains(s.portals, t.Portal) }

// target is what the session is with.
func (s session) target() Target {
	t := Target{IQN: s.iqn, LUN: -1}
	if len(s.portals) > 0 {
		t.Portal = s.portals[0]
	}
	return t
}

// sessionOf finds the session with a target.
func (h *Host) sessionOf(t Target) (session, bool, error) {
	all, err := h.sessions()
	if err != nil {
		return session{}, false, err
	}
	i := slices.IndexFunc(all, func(s session) bool { return s.serves(t) })
	if i < 0 {
		return session{}, false, nil
	}
	return all[i], true, nil
}

// sessionsBehind are the sessions whose disks a device is or is made of.
func (h *Host) sessionsBehind(d Device) ([]session, error) {
	all, err := h.sessions()
	if err != nil {
		return nil, err
	}
	disks := append(h.slaves(d.Name), d.Name)
	return slices.DeleteFunc(all, func(s session) bool {
		return !slices.ContainsFunc(s.disks, func(l lun) bool { return slices.Contains(disks, l.name) })
	}), nil
}
