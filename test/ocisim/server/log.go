// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"log"
	"strings"

	"k8s.io/klog/v2"
)

// errorLog takes what net/http has to say: failed handshakes of clients that do not trust the CA, mostly.
func errorLog(logger klog.Logger) *log.Logger {
	return log.New(logWriter{logger}, "", 0)
}

type logWriter struct{ logger klog.Logger }

func (w logWriter) Write(p []byte) (int, error) {
	w.logger.V(1).Info("HTTP server", "message", strings.TrimSpace(string(p)))
	return len(p), nil
}
