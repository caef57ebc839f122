// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package scenario_test

// share of the objects that take part. The race detector makes everything some ten times slower.
const share = 5
