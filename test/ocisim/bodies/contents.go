// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package bodies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// contents are the files of volumes and backups in a directory.
type contents struct {
	dir  string
	made bool // the directory is ours, and goes with the files
}

// newContents keeps files in dir, or in a temporary directory when it is empty.
func newContents(dir string) (contents, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return contents{}, fmt.Errorf("directory for volumes: %w", err)
		}
		return contents{dir: dir}, nil
	}
	dir, err := os.MkdirTemp("", "ocisim-volumes-")
	if err != nil {
		return contents{}, fmt.Errorf("directory for volumes: %w", err)
	}
	return contents{dir: dir, made: true}, nil
}

// serial is a short name of a volume or backup: 32 hexadecimal digits.
func serial(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

func (c contents) path(id string) string { return filepath.Join(c.dir, serial(id)+".img") }

// ensure makes the file of a volume, or lets it grow to a size. Files never shrink.
func (c contents) ensure(id string, bytes int64) (string, error) {
	path := c.path(id)
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", fmt.Errorf("file of volume %s: %w", id, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", fmt.Errorf("file of volume %s: %w", id, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("file of volume %s: %w", id, err)
	}
	if info.Size() < bytes {
		if err := f.Truncate(bytes); err != nil {
			return "", fmt.Errorf("file of volume %s: %w", id, err)
		}
	}
	return path, nil
}

// grow is ensure for a volume that has a file; it says whether there is one.
func (c contents) grow(id string, bytes int64) (bool, error) {
	if _, err := os.Stat(c.path(id)); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	_, err := c.ensure(id, bytes)
	return err == nil, err
}

// remove deletes the file of a volume or backup, if there is one.
func (c contents) remove(id string) error {
	if err := os.Remove(c.path(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("file of %s: %w", id, err)
	}
	return nil
}

// clear deletes all files. They can be made again.
func (c contents) clear() error {
	if c.made {
		return os.RemoveAll(c.dir)
	}
	files, err := filepath.Glob(filepath.Join(c.dir, "*.img"))
	if err != nil {
		return fmt.Errorf("files of volumes: %w", err)
	}
	var errs []error
	for _, file := range files {
		errs = append(errs, os.Remove(file))
	}
	return errors.Join(errs...)
}

// copy gives one volume or backup the content of another. One that has none gives none.
func (c contents) copy(ctx context.Context, from, to string) error {
	source, err := os.Open(c.path(from))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	defer source.Close()
	target, err := os.OpenFile(c.path(to), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	defer target.Close()
	if err := copySparse(ctx, target, source); err != nil {
		return fmt.Errorf("copy %s to %s: %w", from, to, err)
	}
	return nil
}

// chunk is what is copied between two looks at the context.
const chunk = 16 << 20

// copySparse copies the parts of a file that have data, and leaves holes where it has holes.
func copySparse(ctx context.Context, target, source *os.File) error {
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if err := target.Truncate(info.Size()); err != nil {
		return err
	}
	for at := int64(0); at < info.Size(); {
		begin, end, err := nextData(source, at, info.Size())
		if err != nil {
			return err
		}
		for at = begin; at < end; {
			if err := ctx.Err(); err != nil {
				return err
			}
			n, err := io.Copy(io.NewOffsetWriter(target, at), io.NewSectionReader(source, at, min(chunk, end-at)))
			if err != nil {
				return err
			}
			if n == 0 {
				return io.ErrUnexpectedEOF
			}
			at += n
		}
	}
	return nil
}
