// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// record is what is remembered of a volume from before its disk is connected until it is surely gone: how to take it down, also
// when nothing is mounted any more from which that could be seen. It has no secrets.
type record struct {
	Volume    string         `json:"volume"`
	Staging   string         `json:"staging"`
	Type      AttachmentType `json:"type"`
	Targets   []Target       `json:"targets,omitempty"`
	Multipath bool           `json:"multipath,omitempty"`
	// Agent says that the sessions are made and ended by the cloud's agent on the node.
	Agent bool `json:"agent,omitempty"`
}

// recordPath is the file of a volume's record.
func (h *Host) recordPath(volume string) string {
	sum := sha256.Sum256([]byte(volume))
	return filepath.Join(h.state, hex.EncodeToString(sum[:16])+".json")
}

// remember writes a record, so that it is on the disk when this returns.
func (h *Host) remember(r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record of volume %s: %w", r.Volume, err)
	}
	if err := os.MkdirAll(h.state, 0o700); err != nil {
		return fmt.Errorf("record of volume %s: %w", r.Volume, err)
	}
	path := h.recordPath(r.Volume)
	if old, err := os.ReadFile(path); err == nil && string(old) == string(text) {
		return nil
	}
	if err := replace(path, text); err != nil {
		return fmt.Errorf("record of volume %s: %w", r.Volume, err)
	}
	return nil
}

// replace puts a file in the place of another, and sees that it is on the disk.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".record-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// recall reads the record of a volume; found is false if there is none.
func (h *Host) recall(volume string) (r record, found bool, err error) {
	text, err := os.ReadFile(h.recordPath(volume))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, false, nil
	}
	if err != nil {
		return record{}, false, fmt.Errorf("record of volume %s: %w", volume, err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return record{}, false, fmt.Errorf("record of volume %s in %s: %w", volume, h.recordPath(volume), err)
	}
	return r, true, nil
}

// forget removes the record of a volume.
func (h *Host) forget(volume string) error {
	if err := os.Remove(h.recordPath(volume)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("record of volume %s: %w", volume, err)
	}
	return nil
}
