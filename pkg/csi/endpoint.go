// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"syscall"
	"time"
)

// socketProbe bounds how long an existing socket is asked whether anybody serves it.
const socketProbe = time.Second

// Listen opens the Unix socket of an endpoint, in the forms that manifests use: unix:///csi/csi.sock is absolute, and
// unix://csi/csi.sock is relative to the working directory (contract storage.md §1.7). A socket that a former process left
// is replaced; one that is served, and anything that is no socket, is an error.
func Listen(ctx context.Context, endpoint string) (net.Listener, error) {
	path, err := SocketPath(endpoint)
	if err != nil {
		return nil, err
	}
	if err := removeLeftSocket(ctx, path); err != nil {
		return nil, fmt.Errorf("endpoint %s: %w", endpoint, err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("endpoint %s: %w", endpoint, err)
	}
	return listener, nil
}

// SocketPath is the file of an endpoint; see Listen.
func SocketPath(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return "", fmt.Errorf("endpoint %q: %w", endpoint, err)
	case u.Scheme != "unix":
		return "", fmt.Errorf("endpoint %q: only unix sockets are served, as in unix:///csi/csi.sock", endpoint)
	}
	path := u.Host + u.Path
	if u.Opaque != "" { // unix:csi.sock
		path = u.Opaque
	}
	if path == "" {
		return "", fmt.Errorf("endpoint %q names no file, as in unix:///csi/csi.sock", endpoint)
	}
	return path, nil
}

// errServed says that another process serves a socket. To take it away would cut that process off.
var errServed = errors.New("another process serves this socket; stop it first")

func removeLeftSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there already, and no socket; remove it", path)
	}
	dialer := net.Dialer{Timeout: socketProbe}
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		return errServed
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("ask whether the socket is served: %w", err)
	}
	return os.Remove(path)
}
