// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package gendoc is what the commands have in common that write generated references.
package gendoc

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Main writes a document to the file that the only argument names. A failed one leaves the file as it was.
func Main(write func(io.Writer) error) {
	if err := run(os.Args[1:], write); err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}

func run(args []string, write func(io.Writer) error) error {
	if len(args) != 1 {
		return fmt.Errorf("want the output file as the only argument, got %d arguments", len(args))
	}
	var out bytes.Buffer
	if err := write(&out); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(args[0]), 0o755); err != nil {
		return err
	}
	return os.WriteFile(args[0], out.Bytes(), 0o644)
}
