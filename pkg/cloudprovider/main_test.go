// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"flag"
	"os"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	// The framework's error handling pauses between two errors by a clock that the bubbles of different tests would share,
	// although time begins anew in each of them. Only the logging is left.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	// A watch of the fake API server panics when more events wait than this; hundreds of nodes may join at once.
	watch.DefaultChanSize = 100_000
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
