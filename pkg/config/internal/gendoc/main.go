// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command gendoc writes the reference of cloud-provider.yaml to the file that its argument names.
package main

import (
	"github.com/oracle/oci-cloud-controller-manager/internal/gendoc"
	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
)

func main() { gendoc.Main(config.WriteReference) }
