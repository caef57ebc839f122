// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package bodies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// ErrNoLoopDevices says that loop devices cannot be used here: no rights, or no kernel support.
var ErrNoLoopDevices = errors.New("no loop devices")

// LoopOptions say where the devices of a Loop are.
type LoopOptions struct {
	// Root is the directory under which device paths appear: ROOT/INSTANCE/dev/oracleoci/oraclevdb, with the OCID of
	// the instance.
	Root string
	// Path chooses another place for the link to an attachment's device; "" makes none. Nil is the rule of Root.
	Path func(ocisim.BodyAttachment) string
	// Dir keeps the files of volumes; a temporary directory when empty. The file system must take files as large as
	// the volumes, of which they fill only what is written.
	Dir string
}

// Loop is a body whose attachments are loop devices.
type Loop struct {
	options  LoopOptions
	contents contents

	mu       sync.Mutex
	devices  map[string]*loopDevice // by volume
	attached map[string]loopLink    // by attachment
}

// loopDevice is a loop device over the file of a volume. It is cleared when the last descriptor of it is closed.
type loopDevice struct {
	file  *os.File
	users int
}

type loopLink struct {
	volume, path string
}

const loopControl = "/dev/loop-control"

// NewLoop returns a body of loop devices. Its error wraps ErrNoLoopDevices where there can be none.
func NewLoop(options LoopOptions) (*Loop, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: not root", ErrNoLoopDevices)
	}
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoLoopDevices, err)
	}
	control.Close()
	c, err := newContents(options.Dir)
	if err != nil {
		return nil, err
	}
	if options.Path == nil {
		options.Path = func(a ocisim.BodyAttachment) string {
			if a.Device == "" {
				return ""
			}
			return filepath.Join(options.Root, a.Instance, a.Device)
		}
	}
	return &Loop{options: options, contents: c, devices: map[string]*loopDevice{}, attached: map[string]loopLink{}}, nil
}

// Device returns the loop device of a volume that is attached: "/dev/loop3".
func (l *Loop) Device(volume string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.devices[volume]
	if d == nil {
		return "", false
	}
	return d.file.Name(), true
}

// Attach implements ocisim.AttachmentBody.
func (l *Loop) Attach(_ context.Context, a ocisim.BodyAttachment) error {
	file, err := l.contents.ensure(a.Volume, a.Bytes)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, again := l.attached[a.ID]; again {
		return nil
	}
	d := l.devices[a.Volume]
	if d == nil {
		device, err := setUpLoop(file, a.ReadOnly)
		if err != nil {
			return fmt.Errorf("loop device of volume %s: %w", a.Volume, err)
		}
		d = &loopDevice{file: device}
		l.devices[a.Volume] = d
	}
	d.users++
	l.attached[a.ID] = loopLink{volume: a.Volume}
	path := l.options.Path(a)
	if path == "" {
		return nil
	}
	if err := link(d.file.Name(), path); err != nil {
		return errors.Join(err, l.drop(a.ID))
	}
	l.attached[a.ID] = loopLink{volume: a.Volume, path: path}
	return nil
}

func link(device, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("device path: %w", err)
	}
	if err := os.Symlink(device, path); err != nil {
		return fmt.Errorf("device path: %w", err)
	}
	return nil
}

// Detach implements ocisim.AttachmentBody.
func (l *Loop) Detach(_ context.Context, a ocisim.BodyAttachment) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drop(a.ID)
}

// drop removes the link of an attachment, and the device with its last user.
func (l *Loop) drop(id string) error {
	a, known := l.attached[id]
	if !known {
		return nil
	}
	delete(l.attached, id)
	var errs []error
	if a.path != "" {
		if err := os.Remove(a.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("device path: %w", err))
		}
		l.prune(filepath.Dir(a.path))
	}
	d := l.devices[a.volume]
	if d.users--; d.users > 0 {
		return errors.Join(errs...)
	}
	delete(l.devices, a.volume)
	if err := tearDownLoop(d.file); err != nil {
		errs = append(errs, fmt.Errorf("loop device of volume %s: %w", a.volume, err))
	}
	return errors.Join(errs...)
}

// prune removes the directories of a device path that are empty, up to the root.
func (l *Loop) prune(dir string) {
	root := filepath.Clean(l.options.Root)
	for ; root != "." && strings.HasPrefix(dir, root+string(filepath.Separator)); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			return
		}
	}
}

// Resize implements ocisim.AttachmentBody.
func (l *Loop) Resize(_ context.Context, volume string, bytes int64) error {
	if has, err := l.contents.grow(volume, bytes); err != nil || !has {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.devices[volume]
	if d == nil {
		return nil
	}
	if err := unix.IoctlSetInt(int(d.file.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("grow the loop device of volume %s: %w", volume, err)
	}
	return nil
}

// Copy implements ocisim.AttachmentBody. Of an attached volume it takes what has reached the device.
func (l *Loop) Copy(ctx context.Context, from, to string) error {
	l.mu.Lock()
	if d := l.devices[from]; d != nil {
		if err := d.file.Sync(); err != nil && !errors.Is(err, unix.EROFS) {
			l.mu.Unlock()
			return fmt.Errorf("flush volume %s: %w", from, err)
		}
	}
	l.mu.Unlock()
	return l.contents.copy(ctx, from, to)
}

// Delete implements ocisim.AttachmentBody.
func (l *Loop) Delete(_ context.Context, id string) error { return l.contents.remove(id) }

// Clear implements ocisim.AttachmentBody.
func (l *Loop) Clear(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for id := range l.attached {
		errs = append(errs, l.drop(id))
	}
	return errors.Join(append(errs, l.contents.clear())...)
}

// loopTries is how often a free device is looked for: another process may take it first.
const loopTries = 16

// setUpLoop makes a loop device over a file.
func setUpLoop(path string, readOnly bool) (*os.File, error) {
	mode, flags := os.O_RDWR, uint32(unix.LO_FLAGS_AUTOCLEAR)
	if readOnly {
		mode, flags = os.O_RDONLY, flags|unix.LO_FLAGS_READ_ONLY
	}
	backing, err := os.OpenFile(path, mode, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	config := &unix.LoopConfig{Fd: uint32(backing.Fd()), Info: unix.LoopInfo64{Flags: flags}}
	for range loopTries {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("look for a free loop device: %w", err)
		}
		device, err := openLoop(n, mode)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(device.Fd()), config)
		if err == nil {
			return device, nil
		}
		device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("set up %s: %w", device.Name(), err)
		}
	}
	return nil, fmt.Errorf("%w: others took all that were free", ErrNoLoopDevices)
}

// openLoop opens a loop device, and makes its node where /dev does not do so by itself.
func openLoop(n, mode int) (*os.File, error) {
	path := fmt.Sprintf("/dev/loop%d", n)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(7, uint32(n)))); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, fmt.Errorf("make %s: %w", path, err)
		}
	}
	return os.OpenFile(path, mode, 0)
}

// tearDownLoop detaches the file from a loop device. One that is still in use goes with its last user.
func tearDownLoop(device *os.File) error {
	err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0)
	if errors.Is(err, unix.ENXIO) {
		err = nil // it is clear already
	}
	return errors.Join(err, device.Close())
}
