// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/bodies"
)

// attachmentFlags let volumes have content and attachments a device.
type attachmentFlags struct {
	kind    string
	root    string
	dir     string
	command string
	listen  []string
}

func (f *attachmentFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.kind, "attachments", "none", "what attachments are outside of the API: none; loop, which are loop devices (needs root); iscsi, by --iscsi-command")
	flags.StringVar(&f.root, "device-root", "", "loop: directory under which device paths appear, as ROOT/INSTANCE/dev/oracleoci/oraclevdb")
	flags.StringVar(&f.dir, "volume-dir", "", "loop and iscsi: directory for the volumes' sparse files; a temporary one if empty")
	flags.StringVar(&f.command, "iscsi-command", "", "iscsi: program and arguments that make targets, divided by spaces; the action follows")
	flags.StringSliceVar(&f.listen, "iscsi-listen", nil, "iscsi: addresses of all targets; each attachment has its own if empty")
}

var errAttachments = errors.New("--attachments")

// body returns what the flags ask for, or nil.
func (f *attachmentFlags) body() (ocisim.AttachmentBody, error) {
	switch f.kind {
	case "none":
		return nil, nil
	case "loop":
		if f.root == "" {
			return nil, fmt.Errorf("%w loop: --device-root is needed", errAttachments)
		}
		body, err := bodies.NewLoop(bodies.LoopOptions{Root: f.root, Dir: f.dir})
		if err != nil {
			return nil, err
		}
		return body, nil
	case "iscsi":
		body, err := bodies.NewISCSI(bodies.ISCSIOptions{Command: strings.Fields(f.command), Dir: f.dir, Listen: f.listen})
		if err != nil {
			return nil, err
		}
		return body, nil
	default:
		return nil, fmt.Errorf("%w must be none, loop or iscsi, not %q", errAttachments, f.kind)
	}
}
