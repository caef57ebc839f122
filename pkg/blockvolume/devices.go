// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"sync"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// pathTries is how many device paths are tried for one attachment.
const pathTries = 3

// deviceMemory is how long a path that was given out is not given out again, whatever the lists say: they may lag behind.
const deviceMemory = time.Minute

// deviceAge is how old a list of free paths may be. What this process has given away since is known; a path that somebody
// else took is refused by the cloud.
const deviceAge = 5 * time.Second

// deviceTable remembers the device paths that were given out, and the last lists.
type deviceTable struct {
	mu     sync.Mutex
	byPath map[devicePath]given
	lists  map[string]deviceList // by instance
}

type deviceList struct {
	devices []oci.Device
	at      time.Time
}

type devicePath struct{ instance, path string }

type given struct {
	volume string
	at     time.Time
}

func newDeviceTable() *deviceTable {
	return &deviceTable{byPath: map[devicePath]given{}, lists: map[string]deviceList{}}
}

func (t *deviceTable) take(instance, path, volume string) {
	if path == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for other, one := range t.byPath {
		if now.Sub(one.at) > deviceMemory {
			delete(t.byPath, other)
		}
	}
	t.byPath[devicePath{instance, path}] = given{volume, now}
}

// giveBack notes that a volume is not attached to an instance any more.
func (t *deviceTable) giveBack(instance, volume string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for path, one := range t.byPath {
		if path.instance == instance && one.volume == volume {
			delete(t.byPath, path)
		}
	}
}

func (t *deviceTable) taken(instance, path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, there := t.byPath[devicePath{instance, path}]
	return there && time.Since(one.at) < deviceMemory
}

// list returns the last list of an instance, if it is not too old.
func (t *deviceTable) list(instance string) ([]oci.Device, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, there := t.lists[instance]
	return last.devices, there && time.Since(last.at) < deviceAge
}

func (t *deviceTable) listed(instance string, devices []oci.Device, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other, one := range t.lists {
		if at.Sub(one.at) > deviceAge {
			delete(t.lists, other)
		}
	}
	t.lists[instance] = deviceList{devices, at}
}

// forget drops the last list of an instance.
func (t *deviceTable) forget(instance string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.lists, instance)
}

// freePaths returns the free device paths of an instance, at most pathTries, and how many paths it has at all. The lock of
// the instance must be held.
func (s *Service) freePaths(ctx context.Context, instanceID string) (paths []string, all int, err error) {
	devices, known := s.devices.list(instanceID)
	for {
		if !known {
			now := time.Now()
			if devices, err = s.deps.Compute.ListInstanceDevices(ctx, instanceID); err != nil {
				return nil, 0, failed(err, "list the device paths of instance %s", instanceID)
			}
			s.devices.listed(instanceID, devices, now)
		}
		for _, d := range devices {
			if d.Free && len(paths) < pathTries && !s.devices.taken(instanceID, d.Path) {
				paths = append(paths, d.Path)
			}
		}
		if len(paths) > 0 || !known {
			return paths, len(devices), nil
		}
		known = false // that there is none must be seen
	}
}

// pathsToTry are the device paths to ask for, one after the other. The empty path leaves the choice to the service: a node
// finds an iSCSI disk by its target, a paravirtualized one by its path only. Errors: ErrInstanceFull.
func (s *Service) pathsToTry(ctx context.Context, r AttachRequest, kind string, instance *oci.Instance) ([]string, error) {
	if IsBootVolume(r.VolumeID) {
		return []string{""}, nil
	}
	paths, all, err := s.freePaths(ctx, instance.ID)
	switch {
	case err != nil:
		return nil, err
	case all > 0 && len(paths) == 0:
		return nil, problem(ErrInstanceFull, "instance %s has no free device path: all %d are taken", instance.ID, all)
	case kind == oci.AttachISCSI:
		return append(paths, ""), nil
	case all == 0:
		return nil, problem(ErrInvalid, "instance %s has no consistent device paths, without which a paravirtualized volume cannot be found: use %s, or an image with consistent device naming",
			instance.ID, oci.AttachISCSI)
	}
	return paths, nil
}
