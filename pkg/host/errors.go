// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors that callers tell apart. All are wrapped with what they are about.
var (
	// ErrNotProven says that no device was proven to be that of the attachment. Nothing was written.
	ErrNotProven = errors.New("the device is not proven to be that of the attachment")
	// ErrNotBlank says that a device has content that is not a file system that can be mounted as asked.
	ErrNotBlank = errors.New("the device is not empty")
	// ErrNotFormatted says that a device is empty, and may not be formatted.
	ErrNotFormatted = errors.New("the device has no file system")
	// ErrOtherFilesystem says that a device has another file system than was asked for.
	ErrOtherFilesystem = errors.New("the device has another file system")
	// ErrDamaged says that fsck found errors that it does not repair unasked.
	ErrDamaged = errors.New("the file system has errors that fsck does not repair unasked")
	// ErrInUse says that something else holds or has mounted the device.
	ErrInUse = errors.New("the device is in use")
	// ErrNotStaged says that a volume is to be published that is not staged.
	ErrNotStaged = errors.New("the volume is not staged")
	// ErrLeftBehind says that an operation has failed, and that what it had done before could not be undone: the volume has to be
	// staged again, or unstaged.
	ErrLeftBehind = errors.New("a part of it is left")
	// ErrPublished says that a volume is published already, at another path, and may be at one only.
	ErrPublished = errors.New("the volume is published at another path")
	// ErrOtherVolume says that what is mounted at a path is another volume.
	ErrOtherVolume = errors.New("another volume is mounted there")
	// ErrOtherMount says that something else is mounted at a path.
	ErrOtherMount = errors.New("something else is mounted there")
	// ErrNotMounted says that nothing is mounted at a path.
	ErrNotMounted = errors.New("nothing is mounted there")
	// ErrTooSmall says that a device has not reached the size that it should have.
	ErrTooSmall = errors.New("the device is smaller than the volume should be")
	// ErrNotLoggedOut says that an iSCSI session is still there after the logout.
	ErrNotLoggedOut = errors.New("the iSCSI session has not ended")
	// ErrNoDaemon says that the iSCSI daemon does not answer.
	ErrNoDaemon = errors.New("iscsid is not running: start it with systemctl enable --now iscsid (packages: iscsi-initiator-utils of Oracle Linux, open-iscsi of Debian and Ubuntu)")
	// ErrCredentials says that the target refused the CHAP credentials.
	ErrCredentials = errors.New("the iSCSI target refused the CHAP credentials of the attachment")
	// ErrInvalid says that a request makes no sense.
	ErrInvalid = errors.New("invalid request")
)

// BusyError says that another operation on the volume is under way. It may be one whose caller has gone.
type BusyError struct {
	Volume string
	Doing  string // the step that it is at
	Since  time.Time
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("volume %s: another operation is under way since %s: %s", e.Volume, e.Since.UTC().Format(time.RFC3339), e.Doing)
}

// MissingToolError says that the host lacks a program.
type MissingToolError struct {
	Tool     string
	Packages string
}

func (e *MissingToolError) Error() string {
	return fmt.Sprintf("the node has no %s: install the package %s", e.Tool, e.Packages)
}

// CommandError is the failure of a program of the host.
type CommandError struct {
	Argv   []string // secrets are left out
	Exit   int      // exit status; -1 if the program was killed or did not run
	Output string   // the end of what it wrote

	err error
}

func (e *CommandError) Error() string {
	s := fmt.Sprintf("%s: %v", strings.Join(e.Argv, " "), e.err)
	if e.Output != "" {
		s += ": " + e.Output
	}
	return s
}

// Unwrap returns the cause; that of a program that took too long is context.DeadlineExceeded.
func (e *CommandError) Unwrap() error { return e.err }

// exitOf is the exit status in an error; -1 if it has none.
func exitOf(err error) int {
	var failed *CommandError
	if errors.As(err, &failed) {
		return failed.Exit
	}
	return -1
}
