// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package bodies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// ISCSIOptions say how targets are made.
type ISCSIOptions struct {
	// Command is run for each action, with the action as its last argument. See the package's documentation.
	Command []string
	// Dir keeps the files of volumes; a temporary directory when empty.
	Dir string
	// Listen are the addresses that targets listen at, without port, the first one for attachments with one path.
	// Empty lets each attachment have addresses of its own, from 169.254.2.2.
	Listen []string
	// Timeout bounds one run of the command; default 30 s.
	Timeout time.Duration
}

// ISCSI is a body whose attachments are exposed by a command.
type ISCSI struct {
	options  ISCSIOptions
	contents contents

	mu       sync.Mutex
	attached map[string]ocisim.BodyAttachment
}

// ErrNoCommand says that ISCSIOptions has no command.
var ErrNoCommand = errors.New("no command to expose volumes")

// maxComplaint is how much of the end of a command's standard error is kept in an error.
const maxComplaint = 512

// NewISCSI returns a body that runs a command.
func NewISCSI(options ISCSIOptions) (*ISCSI, error) {
	if len(options.Command) == 0 {
		return nil, ErrNoCommand
	}
	if options.Timeout <= 0 {
		options.Timeout = 30 * time.Second
	}
	c, err := newContents(options.Dir)
	if err != nil {
		return nil, err
	}
	return &ISCSI{options: options, contents: c, attached: map[string]ocisim.BodyAttachment{}}, nil
}

// File is the file that has what is on a volume.
func (i *ISCSI) File(volume string) string { return i.contents.path(volume) }

// Portals implements ocisim.PortalLister.
func (i *ISCSI) Portals() []string { return i.options.Listen }

// Attach implements ocisim.AttachmentBody.
func (i *ISCSI) Attach(ctx context.Context, a ocisim.BodyAttachment) error {
	if _, err := i.contents.ensure(a.Volume, a.Bytes); err != nil {
		return err
	}
	i.mu.Lock()
	i.attached[a.ID] = a
	i.mu.Unlock()
	if err := i.run(ctx, "attach", a); err != nil {
		i.forget(a.ID)
		return err
	}
	return nil
}

// Detach implements ocisim.AttachmentBody.
func (i *ISCSI) Detach(ctx context.Context, a ocisim.BodyAttachment) error {
	if err := i.run(ctx, "detach", a); err != nil {
		return err
	}
	i.forget(a.ID)
	return nil
}

func (i *ISCSI) forget(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.attached, id)
}

// Resize implements ocisim.AttachmentBody.
func (i *ISCSI) Resize(ctx context.Context, volume string, size int64) error {
	if has, err := i.contents.grow(volume, size); err != nil || !has {
		return err
	}
	i.mu.Lock()
	var list []ocisim.BodyAttachment
	for id, a := range i.attached {
		if a.Volume == volume {
			a.Bytes = size
			i.attached[id] = a
			list = append(list, a)
		}
	}
	i.mu.Unlock()
	for _, a := range list {
		if err := i.run(ctx, "resize", a); err != nil {
			return err
		}
	}
	return nil
}

// Copy implements ocisim.AttachmentBody. Of an attached volume it takes what the target has written to the file.
func (i *ISCSI) Copy(ctx context.Context, from, to string) error {
	return i.contents.copy(ctx, from, to)
}

// Delete implements ocisim.AttachmentBody.
func (i *ISCSI) Delete(_ context.Context, id string) error { return i.contents.remove(id) }

// Clear implements ocisim.AttachmentBody.
func (i *ISCSI) Clear(ctx context.Context) error {
	i.mu.Lock()
	list := make([]ocisim.BodyAttachment, 0, len(i.attached))
	for _, a := range i.attached {
		list = append(list, a)
	}
	i.mu.Unlock()
	var errs []error
	for _, a := range list {
		errs = append(errs, i.Detach(ctx, a))
	}
	return errors.Join(append(errs, i.contents.clear())...)
}

// run calls the command.
func (i *ISCSI) run(ctx context.Context, action string, a ocisim.BodyAttachment) error {
	ctx, cancel := context.WithTimeout(ctx, i.options.Timeout)
	defer cancel()
	argv := append(append([]string(nil), i.options.Command...), action)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), i.environment(a)...)
	cmd.WaitDelay = time.Second // for what the command started and did not stop
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(complaint.String())
		if len(text) > maxComplaint {
			text = text[len(text)-maxComplaint:]
		}
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("%s %s of %s: %w: %s", argv[0], action, a.ID, err, text)
	}
	return nil
}

// environment tells the command about an attachment.
func (i *ISCSI) environment(a ocisim.BodyAttachment) []string {
	pairs := [][2]string{
		{"ATTACHMENT", a.ID},
		{"VOLUME", a.Volume},
		{"INSTANCE", a.Instance},
		{"TYPE", a.Type},
		{"DEVICE", a.Device},
		{"FILE", i.contents.path(a.Volume)},
		{"BYTES", strconv.FormatInt(a.Bytes, 10)},
		{"SERIAL", serial(a.Volume)},
		{"READ_ONLY", strconv.FormatBool(a.ReadOnly)},
	}
	if a.IQN != "" {
		portals := make([]string, 0, len(a.Portals))
		for _, p := range a.Portals {
			portals = append(portals, net.JoinHostPort(p, strconv.Itoa(a.Port)))
		}
		pairs = append(pairs, [][2]string{
			{"IQN", a.IQN},
			{"PORTALS", strings.Join(portals, " ")},
			{"LUN", strconv.Itoa(a.LUN)},
		}...)
	}
	if a.CHAPUser != "" {
		pairs = append(pairs, [2]string{"CHAP_USER", a.CHAPUser}, [2]string{"CHAP_SECRET", a.CHAPSecret})
	}
	list := make([]string, 0, len(pairs))
	for _, p := range pairs {
		list = append(list, "OCISIM_"+p[0]+"="+p[1])
	}
	return list
}
