// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command gendoc writes the table of the simulator's operations to the file that its argument names.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the output file as the only argument, got %d arguments", len(args))
	}
	var out bytes.Buffer
	if err := writeReference(&out, ocisim.New(ocisim.Options{}).Operations()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(args[0]), 0o755); err != nil {
		return err
	}
	return os.WriteFile(args[0], out.Bytes(), 0o644)
}
