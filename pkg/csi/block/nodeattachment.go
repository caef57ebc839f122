// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package block

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/pkg/host"
)

const (
	// deepQueueVPUs are the performance units for which sessions get a deeper queue, and exactly these (contract storage.md §4.4).
	deepQueueVPUs  = "20"
	deepQueueDepth = 128
)

// attachmentOf reads a publish context, in which the controller has put down the attachment. Controllers up to v1.35 do not say the size.
func attachmentOf(c map[string]string, ipv6 bool) (host.Attachment, error) {
	if len(c) == 0 {
		return host.Attachment{}, fmt.Errorf("%w: the publish context is missing: the volume is attached by ControllerPublishVolume before it is staged", host.ErrInvalid)
	}
	size, err := number(c, ContextSize)
	if err != nil {
		return host.Attachment{}, err
	}
	a := host.Attachment{Type: host.ISCSI, Device: c[ContextDevice], Size: size}
	switch strings.ToLower(c[ContextAttachmentType]) {
	case "", AttachmentISCSI:
	case AttachmentParavirtualized:
		a.Type = host.Paravirtualized
		if a.Device == "" {
			return host.Attachment{}, lacks(ContextDevice)
		}
		return a, nil
	default:
		return host.Attachment{}, fmt.Errorf("%w: the publish context has the %s %q, which is not known", host.ErrInvalid, ContextAttachmentType, c[ContextAttachmentType])
	}
	if a.Targets, err = targetsOf(c, ipv6); err != nil {
		return host.Attachment{}, err
	}
	a.Multipath = strings.EqualFold(c[ContextMultipath], "true")
	if !a.Multipath {
		a.Targets = a.Targets[:1]
	}
	if user := c[ContextCHAPUser]; user != "" {
		a.CHAP = &host.CHAP{User: user, Secret: c[ContextCHAPSecret]}
	}
	if c[ContextVPUs] == deepQueueVPUs {
		a.QueueDepth = deepQueueDepth
	}
	return a, nil
}

// path is a target in a publish context, in the form that the SDK gives it.
type path struct {
	IPv4 string `json:"ipv4"`
	IQN  string `json:"iqn"`
	Port int    `json:"port"`
}

// targetsOf reads the iSCSI targets, the first one first.
func targetsOf(c map[string]string, ipv6 bool) ([]host.Target, error) {
	for _, key := range []string{ContextIQN, ContextIP, ContextPort} {
		if c[key] == "" {
			return nil, lacks(key)
		}
	}
	port, err := strconv.Atoi(c[ContextPort])
	if err != nil {
		return nil, fmt.Errorf("%w: %s in the publish context: %w", host.ErrInvalid, ContextPort, err)
	}
	paths := []path{{IPv4: c[ContextIP], IQN: c[ContextIQN], Port: port}}
	if text := c[ContextMultipathDevices]; text != "" {
		var more []path
		if err := json.Unmarshal([]byte(text), &more); err != nil {
			return nil, fmt.Errorf("%w: %s in the publish context: %w", host.ErrInvalid, ContextMultipathDevices, err)
		}
		paths = append(paths, more...)
	}
	targets := make([]host.Target, 0, len(paths))
	for _, p := range paths {
		address, err := netip.ParseAddr(p.IPv4)
		if err != nil {
			return nil, fmt.Errorf("%w: an iSCSI target in the publish context: %w", host.ErrInvalid, err)
		}
		if p.Port < 1 || p.Port > 65535 {
			return nil, fmt.Errorf("%w: an iSCSI target in the publish context has the port %d", host.ErrInvalid, p.Port)
		}
		if ipv6 {
			address = host.PortalIPv6(address)
		}
		targets = append(targets, host.Target{IQN: p.IQN, Portal: netip.AddrPortFrom(address, uint16(p.Port)), LUN: -1})
	}
	return targets, nil
}

// number reads a count of bytes; 0 if there is none.
func number(c map[string]string, key string) (int64, error) {
	if c[key] == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(c[key], 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %s in the publish context is %q, want a number of bytes", host.ErrInvalid, key, c[key])
	}
	return n, nil
}

func lacks(key string) error {
	return fmt.Errorf("%w: the publish context has no %s", host.ErrInvalid, key)
}
