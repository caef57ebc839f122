// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume_test

import (
	"flag"
	"os"
	"testing"

	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	klog.InitFlags(flag.CommandLine)
	flag.Parse()
	if !testing.Verbose() {
		_ = flag.Set("logtostderr", "false")
		_ = flag.Set("stderrthreshold", "FATAL")
		klog.SetOutput(discard{})
	}
	os.Exit(m.Run())
}

// discard keeps the logs of tests out of their output; -v shows them.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
