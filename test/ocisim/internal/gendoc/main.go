// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command gendoc writes the table of the simulator's operations to the file that its argument names.
package main

import (
	"io"

	"github.com/oracle/oci-cloud-controller-manager/internal/gendoc"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func main() {
	gendoc.Main(func(w io.Writer) error { return writeReference(w, ocisim.New(ocisim.Options{}).Operations()) })
}
