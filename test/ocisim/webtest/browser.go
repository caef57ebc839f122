// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package webtest drives a headless Chromium, in order to test the simulator's web page as a user meets it.
//
// It speaks the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/) over a pair of pipes, which needs
// no port, no WebSocket and no module: messages are JSON, each ended by a NUL byte.
package webtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Find returns the path of an installed Chromium or Chrome, "" without one.
func Find() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Browser is a running Chromium.
type Browser struct {
	command *exec.Cmd
	to      *os.File // requests

	mu      sync.Mutex
	lastID  int
	waiting map[int]chan message
	pages   map[string]*Page // by session
	ended   error
	done    chan struct{}
}

// message is a request, an answer, or an event of the protocol.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

var errEnded = errors.New("the browser has ended")

// Start runs a browser with a fresh profile in a directory. Close ends it.
func Start(path, profile string) (*Browser, error) {
	requests, to, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the browser: %w", err)
	}
	from, answers, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the browser: %w", err)
	}
	command := exec.Command(path,
		"--headless", "--no-sandbox", "--remote-debugging-pipe", "--user-data-dir="+profile, "--no-first-run", "--disable-gpu",
		"--disable-dev-shm-usage", "--no-proxy-server", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--force-color-profile=srgb", "--lang=en-US", "about:blank")
	command.ExtraFiles = []*os.File{requests, answers} // as file descriptors 3 and 4
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the browser: %w", err)
	}
	_ = requests.Close()
	_ = answers.Close()
	b := &Browser{command: command, to: to, waiting: map[int]chan message{}, pages: map[string]*Page{}, done: make(chan struct{})}
	go b.read(from)
	return b, nil
}

// Close ends the browser and its helper processes.
func (b *Browser) Close() {
	_ = syscall.Kill(-b.command.Process.Pid, syscall.SIGKILL)
	<-b.done
	_ = b.to.Close()
	_ = b.command.Wait()
}

// read takes what the browser says until it ends.
func (b *Browser) read(from *os.File) {
	defer close(b.done)
	defer from.Close()
	in := bufio.NewReader(from)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			b.end(err)
			return
		}
		var m message
		if err := json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m); err != nil {
			b.end(fmt.Errorf("what the browser says is no JSON: %w", err))
			return
		}
		b.deliver(m)
	}
}

func (b *Browser) deliver(m message) {
	b.mu.Lock()
	answer, page := b.waiting[m.ID], b.pages[m.Session]
	delete(b.waiting, m.ID)
	b.mu.Unlock()
	switch {
	case answer != nil:
		answer <- m
	case page != nil && m.Method != "":
		page.event(m)
	}
}

func (b *Browser) end(err error) {
	if errors.Is(err, io.EOF) {
		err = errEnded
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = err
	for _, answer := range b.waiting {
		close(answer)
	}
	b.waiting = map[int]chan message{}
}

// call makes a request of the protocol and decodes the result, if into is not nil.
func (b *Browser) call(ctx context.Context, session, method string, params, into any) error {
	answer, err := b.send(session, method, params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case m, ok := <-answer:
		switch {
		case !ok:
			return fmt.Errorf("%s: %w", method, errEnded)
		case m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		case into == nil:
			return nil
		}
		if err := json.Unmarshal(m.Result, into); err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

func (b *Browser) send(session, method string, params any) (<-chan message, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil {
		return nil, b.ended
	}
	b.lastID++
	text, err := json.Marshal(message{ID: b.lastID, Session: session, Method: method, Params: raw})
	if err != nil {
		return nil, err
	}
	answer := make(chan message, 1)
	b.waiting[b.lastID] = answer
	if _, err := b.to.Write(append(text, 0)); err != nil {
		return nil, err
	}
	return answer, nil
}
