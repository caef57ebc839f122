// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

// ListPause is how long a failed list is not tried again at first.
const ListPause = listPause

// CrowdFactor and MinPace are when and how fast VNICs are read one by one.
const (
	CrowdFactor = crowdFactor
	MinPace     = minPace
)
