// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package bodies

import (
	"errors"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// ErrNoLoopDevices says that loop devices cannot be used here: they are Linux's.
var ErrNoLoopDevices = errors.New("no loop devices")

// LoopOptions say where the devices of a Loop are.
type LoopOptions struct {
	Root string
	Path func(ocisim.BodyAttachment) string
	Dir  string
}

// NewLoop fails with ErrNoLoopDevices.
func NewLoop(LoopOptions) (ocisim.AttachmentBody, error) { return nil, ErrNoLoopDevices }
