// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
)

// Ports of a pod.
const (
	podPort     = 8080 // requests
	podStatPort = 8081 // what it has done, for the test
)

// answer is what a pod says to a request.
type answer struct {
	Request string `json:"request"` // the path, which is different for every request
	Pod     string `json:"pod"`
	Peer    string `json:"peer"`             // address and port that the connection comes from
	Client  string `json:"client,omitempty"` // those that the PROXY protocol tells
}

// podStats is what a pod says about itself.
type podStats struct {
	Requests int64 `json:"requests"`
	Open     int64 `json:"open"` // connections
}

// servePod is the program of a pod.
func servePod(name string) error {
	var requests, open atomic.Int64
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", podPort))
	if err != nil {
		return err
	}
	server := &http.Server{
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed, http.StateHijacked:
				open.Add(-1)
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			a := answer{Request: r.URL.Path, Pod: name, Peer: r.RemoteAddr}
			if c, ok := r.Context().Value(connKey{}).(*announced); ok {
				a.Client = c.client
			}
			_ = json.NewEncoder(w).Encode(a)
		}),
	}
	stats := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(podStats{requests.Load(), open.Load()})
	})
	failed := make(chan error, 2)
	go func() { failed <- http.ListenAndServe(fmt.Sprintf(":%d", podStatPort), stats) }()
	go func() { failed <- server.Serve(announcing{listener}) }()
	return <-failed
}

type connKey struct{}

// announcing is a listener whose connections may begin with a header of the PROXY protocol.
type announcing struct{ net.Listener }

func (l announcing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &announced{Conn: c, in: bufio.NewReader(c)}, nil
}

// announced is such a connection. Only the goroutine of the connection reads it before the first request is handled.
type announced struct {
	net.Conn

	in     *bufio.Reader
	parsed bool
	client string
}

func (c *announced) Read(b []byte) (int, error) {
	if !c.parsed {
		c.parsed = true
		var err error
		if c.client, err = readProxyHeader(c.in); err != nil {
			return 0, err
		}
	}
	return c.in.Read(b)
}

var (
	proxySignature = []byte("\r\n\r\n\x00\r\nQUIT\n")
	errProxyHeader = errors.New("broken PROXY header")
)

// readProxyHeader takes a header of either version off the stream, if there is one, and returns the client in it.
func readProxyHeader(in *bufio.Reader) (client string, err error) {
	first, err := in.Peek(1)
	if err != nil {
		return "", err
	}
	switch first[0] {
	case 'P': // PROXY, or POST and PUT, which nobody sends here
		line, err := in.ReadString('\n')
		if err != nil {
			return "", err
		}
		words := strings.Fields(line)
		if len(words) != 6 || words[0] != "PROXY" {
			return "", fmt.Errorf("%w: %q", errProxyHeader, line)
		}
		return net.JoinHostPort(words[2], words[4]), nil
	case proxySignature[0]:
		head := make([]byte, 16)
		if _, err := io.ReadFull(in, head); err != nil {
			return "", err
		}
		body := make([]byte, binary.BigEndian.Uint16(head[14:]))
		if _, err := io.ReadFull(in, body); err != nil {
			return "", err
		}
		if !bytes.HasPrefix(head, proxySignature) || head[13] != 0x11 || len(body) < 12 { // TCP over IPv4
			return "", fmt.Errorf("%w: % x", errProxyHeader, head)
		}
		address, _ := netip.AddrFromSlice(body[:4])
		return net.JoinHostPort(address.String(), strconv.Itoa(int(binary.BigEndian.Uint16(body[8:])))), nil
	}
	return "", nil
}
