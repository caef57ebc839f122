// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package usage prints the flags of a program.
package usage

import (
	"flag"
	"fmt"
	"io"
	"slices"
)

// Names lists the flags that a set has so far.
func Names(fs *flag.FlagSet) []string {
	var list []string
	fs.VisitAll(func(f *flag.Flag) { list = append(list, f.Name) })
	return list
}

// Print prints some of the flags. Those of klog about files are of no use in a container.
func Print(out io.Writer, program string, fs *flag.FlagSet, shown []string) {
	fmt.Fprintf(out, "Usage of %s:\n", program)
	visible := flag.NewFlagSet(program, flag.ContinueOnError)
	fs.VisitAll(func(f *flag.Flag) {
		if slices.Contains(shown, f.Name) {
			visible.Var(f.Value, f.Name, f.Usage)
		}
	})
	visible.SetOutput(out)
	visible.PrintDefaults()
}
