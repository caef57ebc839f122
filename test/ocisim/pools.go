// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

type addressPool struct{}
type publicPool struct{}

func (cl *cloud) releaseVNIC(string) {}
