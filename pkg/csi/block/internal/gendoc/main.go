// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command gendoc writes the reference of the parameters of classes to the file that its argument names.
package main

import (
	"github.com/oracle/oci-cloud-controller-manager/internal/gendoc"
	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
)

func main() { gendoc.Main(block.WriteReference) }
