// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// inNamespace runs f on a thread in another mount namespace; processes that f starts are in it, too. An empty file is the
// namespace of this process.
func inNamespace(file string, f func() error) error {
	if file == "" {
		return f()
	}
	result := make(chan error, 1)
	go enter(file, f, result)
	return <-result
}

// enter moves the thread of its goroutine to another mount namespace, where nothing else may run ever after: the goroutine keeps the
// thread, so that the thread ends with it.
func enter(file string, f func() error, result chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The first thread of a process cannot end, and is what /proc/self shows. While this goroutine holds it, another one gets
		// another thread.
		defer runtime.UnlockOSThread()
		inner := make(chan error, 1)
		go enter(file, f, inner)
		result <- <-inner
		return
	}
	err := func() error {
		fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("the host's mount namespace: open %s: %w", file, err)
		}
		defer func() { _ = unix.Close(fd) }()
		// Threads share their root and working directory, which the kernel does not let one of them change alone.
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return fmt.Errorf("the host's mount namespace: unshare: %w", err)
		}
		if err := unix.Setns(fd, unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("the host's mount namespace: enter %s: %w", file, err)
		}
		return f()
	}()
	result <- err
}
