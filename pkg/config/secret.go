// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io"
)

// redacted is what stands for a secret wherever it would be printed.
const redacted = "[redacted]"

// Secret is a value that must not appear in output. It prints as [redacted] through every fmt verb, encoding/json,
// YAML encoders and klog; only an explicit conversion, string(s), gives the value.
//
// fmt cannot call methods of values that it reaches through unexported fields. Keep a Secret in exported fields.
type Secret string

// Format implements fmt.Formatter, so that no verb and no flag gives the value away.
func (s Secret) Format(f fmt.State, _ rune) {
	// The error can only be that of the writer behind f, which has its own way to report it.
	_, _ = io.WriteString(f, s.String())
}

// String implements fmt.Stringer. An unset secret prints as nothing.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// MarshalText implements encoding.TextMarshaler, which encoding/json uses.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML implements the Marshaler interface of YAML encoders.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// MarshalLog implements logr.Marshaler.
func (s Secret) MarshalLog() any { return s.String() }
