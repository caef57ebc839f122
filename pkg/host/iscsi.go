// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/klog/v2"
)

// Exit statuses of iscsiadm (its manual page, EXIT STATUS).
const (
	exitNoSession     = 2
	exitSessionExists = 15
	exitNoDaemon      = 18
	exitNotConnected  = 20
	exitNoObjects     = 21
	exitLoginRefused  = 24
)

// logoutWait is how long the kernel may take to end a session after the logout, which it does when the disks' last requests are done.
const logoutWait = 20 * time.Second

// iscsiadm runs iscsiadm for the record of a target.
func (h *Host) iscsiadm(ctx context.Context, t Target, secret string, args ...string) error {
	c := newCommand(loginLimit, append([]string{"iscsiadm", "-m", "node", "-T", t.IQN, "-p", t.Portal.String()}, args...)...)
	c.secret = secret
	_, err := h.run(ctx, c)
	switch exitOf(err) {
	case exitNoDaemon, exitNotConnected:
		return fmt.Errorf("%w (%w)", ErrNoDaemon, err)
	case exitLoginRefused:
		return fmt.Errorf("%w (%w)", ErrCredentials, err)
	}
	return err
}

// login makes a session with a target, if there is none. It says whether it has made one.
func (h *Host) login(ctx context.Context, t Target, a Attachment) (bool, error) {
	switch s, found, err := h.sessionOf(t); {
	case err != nil:
		return false, err
	case found && s.state == loggedIn:
		return false, nil
	case found:
		// The daemon is connecting it again. A second login would be refused.
		klog.FromContext(ctx).Info("iSCSI session is not connected; waiting for the daemon", "iqn", t.IQN, "portal", t.Portal, "state", s.state)
		return false, nil
	}
	if err := h.iscsiadm(ctx, t, "", "-o", "new"); err != nil {
		return false, fmt.Errorf("iSCSI target %s: %w", t.IQN, err)
	}
	err := h.configure(ctx, t, a)
	if err == nil {
		err = h.iscsiadm(ctx, t, "", "-l")
	}
	if exitOf(err) == exitSessionExists {
		return false, nil
	}
	if err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), quickLimit)
		defer cancel()
		return false, errors.Join(fmt.Errorf("log in to iSCSI target %s: %w", t.IQN, err), h.forgetTarget(undo, t))
	}
	return true, nil
}

// configure writes into the record of a target how to log in.
func (h *Host) configure(ctx context.Context, t Target, a Attachment) error {
	settings := [][2]string{{"node.startup", "automatic"}} // after a reboot the daemon is faster than the kubelet
	if a.QueueDepth > 0 {
		settings = append(settings, [2]string{"node.session.queue_depth", strconv.Itoa(a.QueueDepth)})
	}
	secret := ""
	if a.CHAP != nil {
		secret = a.CHAP.Secret
		settings = append(settings, [][2]string{
			{"node.session.auth.authmethod", "CHAP"},
			{"node.session.auth.username", a.CHAP.User},
			{"node.session.auth.password", secret},
		}...)
	}
	for _, s := range settings {
		if err := h.iscsiadm(ctx, t, secret, "-o", "update", "-n", s[0], "-v", s[1]); err != nil {
			return err
		}
	}
	return nil
}

// logout ends the session with a target, and returns when the kernel has no such session any more. The record of the target goes,
// too. It is no error if there is none.
func (h *Host) logout(ctx context.Context, t Target) error {
	s, found, err := h.sessionOf(t)
	if err != nil {
		return err
	}
	if found {
		if err := h.idle(s); err != nil {
			return fmt.Errorf("log out from iSCSI target %s: %w", t.IQN, err)
		}
		if err := h.endSession(ctx, t, s); err != nil {
			return fmt.Errorf("log out from iSCSI target %s: %w", t.IQN, err)
		}
	}
	return h.forgetTarget(ctx, t)
}

// endSession logs out and waits for the end.
func (h *Host) endSession(ctx context.Context, t Target, s session) error {
	err := h.iscsiadm(ctx, t, "", "-u")
	if exit := exitOf(err); exit == exitNoObjects || exit == exitNoSession {
		// It has no record of the target, or thinks that there is no session. The kernel knows.
		_, err = h.run(ctx, newCommand(loginLimit, "iscsiadm", "-m", "session", "-r", s.id, "-u"))
		if exit := exitOf(err); exit == exitNoObjects || exit == exitNoSession {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, logoutWait)
	defer cancel()
	for p := newPace(); ; {
		s, found, err := h.sessionOf(t)
		if err != nil || !found {
			return err
		}
		if !p.wait(limited) {
			return fmt.Errorf("%w: session %s is in state %s", ErrNotLoggedOut, s.id, s.state)
		}
	}
}

// forgetTarget deletes the record of a target.
func (h *Host) forgetTarget(ctx context.Context, t Target) error {
	err := h.iscsiadm(ctx, t, "", "-o", "delete")
	var absent *MissingToolError
	if exitOf(err) == exitNoObjects || errors.As(err, &absent) { // without iscsiadm there are no records
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete the record of iSCSI target %s: %w", t.IQN, err)
	}
	return nil
}

// idle makes sure that nothing of a session's disks is mounted or otherwise held.
func (h *Host) idle(s session) error {
	for _, l := range s.disks {
		d, err := h.deviceNamed(l.name)
		if errors.Is(err, errNoDevice) {
			continue
		}
		if err != nil {
			return err
		}
		if err := h.unused(d); err != nil {
			return err
		}
	}
	return nil
}
