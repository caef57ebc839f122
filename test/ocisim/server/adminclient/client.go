// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package adminclient talks to the admin API of an ocisim that runs in another process.
package adminclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
)

// Client is a client of one admin API. Calls end with their context; there are no other timeouts.
type Client struct {
	base string
	http *http.Client
}

// New returns a client for an admin API by its base URL, "http://127.0.0.1:18080". Proxies are not used: the
// environment may well name the simulator's own.
func New(base string) *Client {
	return &Client{base: strings.TrimSuffix(base, "/"), http: &http.Client{Transport: &http.Transport{Proxy: nil}}}
}

// Error is an answer that is not a success.
type Error struct {
	Status  int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("ocisim admin API: %d: %s", e.Status, e.Message) }

// call sends a request with an optional JSON body and decodes the answer into out, which may be nil.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body, out any) error {
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case []byte:
		reader = bytes.NewReader(b)
	default:
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		reader = bytes.NewReader(text)
	}
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	response, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		var answer struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(text, &answer) != nil || answer.Error == "" {
			answer.Error = string(text)
		}
		return &Error{Status: response.StatusCode, Message: answer.Error}
	}
	if out == nil {
		return nil
	}
	if raw, ok := out.(*[]byte); ok {
		*raw = text
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s %s: decode the answer: %w", method, path, err)
	}
	return nil
}

// EnvRequest says for which program an environment is.
type EnvRequest struct {
	User     string // act as this user, made when missing
	Instance string // run on this instance
	NoProxy  []string
}

// Env returns NAME=value lines.
func (c *Client) Env(ctx context.Context, r EnvRequest) (lines []string, err error) {
	q := url.Values{"noProxy": r.NoProxy}
	if r.User != "" {
		q.Set("user", r.User)
	}
	if r.Instance != "" {
		q.Set("instance", r.Instance)
	}
	return lines, c.call(ctx, http.MethodGet, "/env", q, nil, &lines)
}

// User returns a user of the given name, made when missing.
func (c *Client) User(ctx context.Context, name string) (user server.User, err error) {
	return user, c.call(ctx, http.MethodPost, "/users", nil, map[string]string{"name": name}, &user)
}

// State is everything in the region, as JSON.
func (c *Client) State(ctx context.Context) (state []byte, err error) {
	return state, c.call(ctx, http.MethodGet, "/state", nil, nil, &state)
}

// Seed adds a world, in YAML or JSON.
func (c *Client) Seed(ctx context.Context, world []byte) error {
	return c.call(ctx, http.MethodPost, "/seed", nil, world, nil)
}

// CallQuery selects from the call log. Empty fields match everything.
type CallQuery struct {
	Since      uint64
	Operations []string
	Principal  string
	Service    string
	Writes     bool
	Wait       time.Duration // wait this long for the first matching call
}

// Calls returns the calls that match and the sequence number from which to read on.
func (c *Client) Calls(ctx context.Context, query CallQuery) (page server.CallPage, err error) {
	q := url.Values{"operation": query.Operations, "since": {strconv.FormatUint(query.Since, 10)}}
	if query.Principal != "" {
		q.Set("principal", query.Principal)
	}
	if query.Service != "" {
		q.Set("service", query.Service)
	}
	if query.Writes {
		q.Set("writes", "true")
	}
	if query.Wait > 0 {
		q.Set("wait", query.Wait.String())
	}
	return page, c.call(ctx, http.MethodGet, "/calls", q, nil, &page)
}

// Counters returns the number of calls by "service.Operation".
func (c *Client) Counters(ctx context.Context) (counters map[string]int, err error) {
	return counters, c.call(ctx, http.MethodGet, "/counters", nil, nil, &counters)
}

// ResetCounters empties the call log and its counters.
func (c *Client) ResetCounters(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/reset-counters", nil, nil, nil)
}

// Advance moves the region's clock forward.
func (c *Client) Advance(ctx context.Context, d time.Duration) error {
	return c.call(ctx, http.MethodPost, "/clock/advance", nil, map[string]string{"by": d.String()}, nil)
}

// StopAfter arranges for a call to be held after it was applied.
func (c *Client) StopAfter(ctx context.Context, rule server.StopRule) (*Stop, error) {
	var status server.StopStatus
	if err := c.call(ctx, http.MethodPost, "/hooks/stop-after", nil, rule, &status); err != nil {
		return nil, err
	}
	return &Stop{client: c, id: status.ID}, nil
}

// Stop is a hold in the other process.
type Stop struct {
	client *Client
	id     string
}

// pollStop is how long one request waits for a hold.
const pollStop = 30 * time.Second

// Wait blocks until the call is held and returns it.
func (s *Stop) Wait(ctx context.Context) (ocisim.Call, error) {
	for {
		var status server.StopStatus
		q := url.Values{"wait": {pollStop.String()}}
		if err := s.client.call(ctx, http.MethodGet, "/hooks/"+s.id, q, nil, &status); err != nil {
			return ocisim.Call{}, err
		}
		if status.Call != nil {
			return *status.Call, nil
		}
		if status.State == server.StopReleased {
			return ocisim.Call{}, server.ErrWithdrawn
		}
	}
}

// Release lets the held call be answered. A hold that is over already is none of its concern.
func (s *Stop) Release(ctx context.Context) error { return s.end(ctx, nil) }

// Discard is Release, and drops calls that had to wait behind the held one.
func (s *Stop) Discard(ctx context.Context) error {
	return s.end(ctx, url.Values{"discard": {"true"}})
}

func (s *Stop) end(ctx context.Context, q url.Values) error {
	err := s.client.call(ctx, http.MethodDelete, "/hooks/"+s.id, q, nil, nil)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return nil
	}
	return err
}
