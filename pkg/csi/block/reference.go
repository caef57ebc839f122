// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

//go:generate go run ./internal/gendoc ../../../docs/reference/volume-parameters.md

const referenceHead = `<!-- Generated from the parameter table (go generate ./pkg/csi/block). Do not edit. -->

# Parameters of classes for block volumes

A key that is not listed here has no effect. It becomes an event ` + "`UnknownParameter`" + ` on the PersistentVolumeClaim, a line in the log and a count in
` + "`oci_csi_unknown_parameters_total`" + `; with ` + "`--strict-parameters`" + ` the volume is not made. In a
VolumeAttributesClass it is always an error. So is a bad value of a key that is listed, in any class. An empty value is none.
Keys under ` + "`csi.storage.k8s.io/`" + ` are those of the sidecars: ` + "`csi.storage.k8s.io/fstype`" + ` is ` + "`ext4`" + ` (also when it is missing), ` + "`ext3`, `xfs` or `btrfs`" + `.
What a VolumeAttributesClass does not have stays as it is: at a new volume, as its StorageClass says.
`

// WriteReference writes docs/reference/volume-parameters.md.
func WriteReference(w io.Writer) error {
	var out bytes.Buffer
	out.WriteString(referenceHead)
	for _, class := range []Class{StorageClass, VolumeAttributesClass, VolumeSnapshotClass, VolumeGroupSnapshotClass} {
		fmt.Fprintf(&out, "\n## %s\n\n| Parameter | Values | Default | Meaning |\n|---|---|---|---|\n", class)
		for _, p := range Parameters() {
			if slices.Contains(p.In, class) {
				missing := p.Default
				if class == VolumeAttributesClass {
					missing = "as it is"
				}
				fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", p.Key, p.Values, missing, p.Text)
			}
		}
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write the reference: %w", err)
	}
	return nil
}
