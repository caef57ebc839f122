// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// ParseWorld reads a seed file, YAML or JSON. A key that World does not have is an error.
func ParseWorld(text []byte) (ocisim.World, error) {
	var world ocisim.World
	if err := yaml.UnmarshalStrict(text, &world); err != nil {
		return ocisim.World{}, fmt.Errorf("parse the seed: %w", err)
	}
	return world, nil
}
