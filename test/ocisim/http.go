// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
)

// maxBody is the largest request body that is read.
const maxBody = 16 << 20

// ErrDropped is the error that the in-process transport returns where a network would lose the connection. It wraps
// ECONNRESET.
var ErrDropped = fmt.Errorf("ocisim: connection dropped: %w", syscall.ECONNRESET)

// ServeHTTP implements http.Handler: the API of all services, told apart by their paths.
func (r *Region) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			WriteError(w, &APIError{Status: http.StatusRequestEntityTooLarge, Code: "PayloadTooLarge", Message: "The request is too large."})
		}
		return
	}
	out, err := r.serve(req.Context(), &request{
		SignedRequest: SignedRequest{
			Method: req.Method, URI: req.RequestURI, Host: req.Host, Header: req.Header, Body: body,
		},
		path: req.URL.EscapedPath(), query: req.URL.Query(),
	})
	if err != nil || out.drop {
		// The client is gone, or must think so of us.
		panic(http.ErrAbortHandler)
	}
	header := w.Header()
	for name, values := range out.header {
		header[name] = values
	}
	if out.status != http.StatusNoContent {
		header.Set("Content-Length", strconv.Itoa(len(out.body)))
	}
	w.WriteHeader(out.status)
	if !out.half {
		// A failed write means that the client went away.
		_, _ = w.Write(out.body)
		return
	}
	_, _ = w.Write(out.body[:len(out.body)/2])
	// Without the flush the half would still be in the buffer when the connection is cut.
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// WriteError answers with an API error outside the engine, for endpoints that are not operations of the region.
func WriteError(w http.ResponseWriter, e *APIError) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_, _ = w.Write(e.Body())
}

// Transport returns a round tripper that hands requests to the region without a network. It starts no goroutine and
// uses no timer but the delays that faults and latencies ask for.
func (r *Region) Transport() http.RoundTripper { return transport{r} }

type transport struct {
	region *Region
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		closeErr := req.Body.Close()
		if err = errors.Join(err, closeErr); err != nil {
			return nil, fmt.Errorf("read request body: %w", err)
		}
	}
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	out, err := t.region.serve(req.Context(), &request{
		SignedRequest: SignedRequest{
			Method: req.Method, URI: req.URL.RequestURI(), Host: host, Header: req.Header, Body: body,
		},
		path: req.URL.EscapedPath(), query: req.URL.Query(),
	})
	if err != nil {
		return nil, err
	}
	if out.drop {
		return nil, ErrDropped
	}
	return &http.Response{
		Status:        strings.TrimSpace(strconv.Itoa(out.status) + " " + http.StatusText(out.status)),
		StatusCode:    out.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        out.header,
		Body:          responseBody(out),
		ContentLength: int64(len(out.body)),
		Request:       req,
	}, nil
}

func responseBody(out *outcome) io.ReadCloser {
	if !out.half {
		return io.NopCloser(bytes.NewReader(out.body))
	}
	half := bytes.NewReader(out.body[:len(out.body)/2])
	return io.NopCloser(io.MultiReader(half, brokenReader{}))
}

// brokenReader is the end of a connection that broke.
type brokenReader struct{}

// Read implements io.Reader.
func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
