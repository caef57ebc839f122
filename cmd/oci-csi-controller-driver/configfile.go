// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
)

// configPaths are where the cloud config is looked for: the name under which release v1.35 has it, then that of the
// cloud-controller-manager.
func configPaths() []string { return []string{"/etc/oci/config.yaml", "/etc/oci/cloud-provider.yaml"} }

// configFile finds the cloud config: what the flag says, else the environment, else the first path that exists.
func configFile(flag, variable string, paths []string) (string, error) {
	switch {
	case flag != "":
		return flag, nil
	case variable != "":
		return variable, nil
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil || !os.IsNotExist(err) {
			return path, nil // if it cannot be read, the reader says why
		}
	}
	return "", fmt.Errorf("there is no cloud config: neither %s exists; --cloud-config or the environment variable CONFIG_YAML_FILENAME names another",
		strings.Join(paths, " nor "))
}
