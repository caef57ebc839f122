// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// setLogger adds static fields to every log line, and keeps the bodies of requests to the Kubernetes API out of the log.
// The framework has set its logger before.
func setLogger(fields map[string]string) {
	logger := klog.Background()
	options := []klog.LoggerOption{klog.ContextualLogger(true)}
	if writer, ok := logger.GetSink().(textlogger.KlogBufferWriter); ok && len(fields) == 0 {
		options = append(options, klog.WriteKlogBuffer(writer.WriteKlogBuffer)) // lines without structure, as they are
	}
	logger = logger.WithSink(newBodilessSink(logger.GetSink()))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		logger = logger.WithValues(name, fields[name])
	}
	klog.SetLoggerWithOptions(logger, options...)
}

// bodilessSink leaves out the bodies that client-go logs from verbosity 8 on (k8s.io/client-go/rest, logBody): those of
// TokenRequests and Secrets are secrets.
type bodilessSink struct{ inner logr.LogSink }

func newBodilessSink(inner logr.LogSink) logr.LogSink {
	return bodilessSink{inner}.WithCallDepth(1) // for the frames of the methods below
}

func (s bodilessSink) Init(info logr.RuntimeInfo) { s.inner.Init(info) }

func (s bodilessSink) Enabled(level int) bool { return s.inner.Enabled(level) }

func (s bodilessSink) Info(level int, message string, keysAndValues ...any) {
	if message == "Request Body" || message == "Response Body" {
		keysAndValues = []any{"body", "[redacted]"}
	}
	s.inner.Info(level, message, keysAndValues...)
}

func (s bodilessSink) Error(err error, message string, keysAndValues ...any) {
	s.inner.Error(err, message, keysAndValues...)
}

func (s bodilessSink) WithValues(keysAndValues ...any) logr.LogSink {
	return bodilessSink{s.inner.WithValues(keysAndValues...)}
}

func (s bodilessSink) WithName(name string) logr.LogSink { return bodilessSink{s.inner.WithName(name)} }

// WithCallDepth implements logr.CallDepthLogSink.
func (s bodilessSink) WithCallDepth(depth int) logr.LogSink {
	if inner, ok := s.inner.(logr.CallDepthLogSink); ok {
		return bodilessSink{inner.WithCallDepth(depth)}
	}
	return s
}
