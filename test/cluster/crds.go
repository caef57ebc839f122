// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
)

// snapshotModule has the definitions of the snapshot APIs, in the version that the sidecars are built with.
const snapshotModule = "github.com/kubernetes-csi/external-snapshotter/client/v8"

// SnapshotCRDs returns the directory with the CustomResourceDefinitions of volume snapshots and volume group snapshots,
// from the module cache.
func SnapshotCRDs(ctx context.Context) (string, error) {
	m, err := findModule(toolsModule)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", snapshotModule)
	cmd.Dir = m.dir
	cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	var found struct{ Dir, Error string }
	if json.Unmarshal(out, &found) == nil && found.Error != "" {
		return "", fmt.Errorf("get %s: %s", snapshotModule, found.Error)
	}
	if err != nil {
		return "", fmt.Errorf("get %s: %w", snapshotModule, err)
	}
	return filepath.Join(found.Dir, "config", "crd"), nil
}

// ApplySnapshotCRDs installs the snapshot APIs and waits until they are served.
func (c *Cluster) ApplySnapshotCRDs(ctx context.Context) error {
	dir, err := SnapshotCRDs(ctx)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*snapshot.storage.k8s.io_*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no definitions", dir)
	}
	if err := c.Apply(ctx, files...); err != nil {
		return err
	}
	for group, kinds := range map[string]int{"snapshot.storage.k8s.io/v1": 3, "groupsnapshot.storage.k8s.io/v1": 3} {
		err := c.poll(ctx, group, func(context.Context) error {
			list, err := c.client.Discovery().ServerResourcesForGroupVersion(group)
			if err != nil {
				return err
			}
			found := map[string]bool{}
			for _, r := range list.APIResources {
				found[r.Kind] = true
			}
			if len(found) < kinds {
				return fmt.Errorf("%s has %d kinds of %d", group, len(found), kinds)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	c.mapper.mapper.Reset() // it has asked the server for its kinds before
	return nil
}
