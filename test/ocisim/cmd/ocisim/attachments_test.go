// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/bodies"
)

func TestAttachmentFlags(t *testing.T) {
	for name, test := range map[string]struct {
		flags attachmentFlags
		body  bool
		err   error
	}{
		"none":            {attachmentFlags{kind: "none"}, false, nil},
		"loop, no root":   {attachmentFlags{kind: "loop"}, false, errAttachments},
		"iscsi":           {attachmentFlags{kind: "iscsi", command: "/bin/target --lun", dir: t.TempDir()}, true, nil},
		"iscsi, no cmd":   {attachmentFlags{kind: "iscsi"}, false, bodies.ErrNoCommand},
		"something other": {attachmentFlags{kind: "nvme"}, false, errAttachments},
	} {
		body, err := test.flags.body()
		if !errors.Is(err, test.err) || (err == nil) != (test.err == nil) || (body != nil && err == nil) != test.body {
			t.Errorf("%s: body %v, error %v", name, body, err)
		}
	}
}
