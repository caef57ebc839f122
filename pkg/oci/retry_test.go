// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
)

func TestRetryByFailure(t *testing.T) {
	service := func(status int, code string) responder {
		return func(int, *http.Request) (*http.Response, error) { return refusal(status, code), nil }
	}
	network := func(err error) responder {
		return func(int, *http.Request) (*http.Response, error) { return nil, err }
	}
	broken := func(int, *http.Request) (*http.Response, error) {
		r := answer(200, "")
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"id":"oc`), failingReader{}))
		return r, nil
	}
	const once, repeated = 1, 2 // requests seen when the second would succeed
	nlb := func(o op) op { o.service = ServiceNetworkLoadBalancer; return o }
	tests := []struct {
		name                string
		first               responder
		read, write, create int // for a read, a repeatable write, a create without token
		nlb                 bool
	}{
		{"429", service(429, "TooManyRequests"), repeated, repeated, repeated, false},
		{"409 IncorrectState", service(409, "IncorrectState"), repeated, repeated, repeated, false},
		{"409 LockConflict", service(409, "LockConflict"), repeated, repeated, repeated, false},
		{"409 Conflict", service(409, "Conflict"), once, once, once, false},
		{"409 Conflict of an NLB", service(409, "Conflict"), repeated, repeated, repeated, true},
		{"409 NotAuthorizedOrResourceAlreadyExists", service(409, "NotAuthorizedOrResourceAlreadyExists"), once, once, once, true},
		{"409 InvalidatedRetryToken", service(409, "InvalidatedRetryToken"), once, once, once, false},
		{"500", service(500, "InternalServerError"), repeated, repeated, once, false},
		{"502 of a proxy", func(int, *http.Request) (*http.Response, error) { return answer(502, "<html>"), nil }, repeated, repeated, once, false},
		{"503", service(503, "ServiceUnavailable"), repeated, repeated, once, false},
		{"504", service(504, "ExternalServerTimeout"), repeated, repeated, once, false},
		{"501", service(501, "MethodNotImplemented"), once, once, once, false},
		{"400", service(400, "InvalidParameter"), once, once, once, false},
		{"400 LimitExceeded", service(400, "LimitExceeded"), once, once, once, false},
		{"401 of a user", service(401, "NotAuthenticated"), once, once, once, false},
		{"403", service(403, "NotAllowed"), once, once, once, false},
		{"404", service(404, "NotAuthorizedOrNotFound"), once, once, once, false},
		{"412", service(412, "NoEtagMatch"), once, once, once, false},
		{"connection reset", network(&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}), repeated, repeated, once, false},
		{"EOF", network(io.EOF), repeated, repeated, once, false},
		{"connection refused", network(&net.OpError{Op: "dial", Err: errors.New("connection refused")}), repeated, repeated, repeated, false},
		{"name server away", network(&net.DNSError{Name: "iaas.x", IsTemporary: true}), repeated, repeated, repeated, false},
		{"no such host", network(&net.DNSError{Name: "iaas.x", IsNotFound: true}), once, once, once, false},
		{"unknown CA", network(x509.UnknownAuthorityError{}), once, once, once, false},
		{"half an answer", broken, repeated, repeated, once, false},
	}
	for _, tt := range tests {
		for _, kind := range []struct {
			op   op
			want int
		}{{testRead, tt.read}, {testWrite, tt.write}, {testCreate, tt.create}} {
			t.Run(tt.name+"/"+kind.op.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, wire := newTestClient(t, func(n int, r *http.Request) (*http.Response, error) {
						if n == 1 {
							return tt.first(n, r)
						}
						return answer(200, runningInstance), nil
					})
					o := kind.op
					if tt.nlb {
						o = nlb(o)
					}
					err := call(t.Context(), c, o)
					if got := wire.count(); got != kind.want {
						t.Errorf("%d requests, want %d (error: %v)", got, kind.want, err)
					}
					if (err == nil) != (kind.want == repeated) {
						t.Errorf("error %v after %d requests", err, kind.want)
					}
				})
			})
		}
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestRetryEndsAfterMaxAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, wire := newTestClient(t, func(int, *http.Request) (*http.Response, error) {
			return refusal(500, "InternalServerError"), nil
		})
		started := time.Now()
		err := call(t.Context(), c, testRead)
		var failure *Error
		if !errors.As(err, &failure) || failure.Status != 500 || failure.Attempts != maxAttempts || wire.count() != maxAttempts {
			t.Errorf("error %#v after %d requests, want a 500 after %d", err, wire.count(), maxAttempts)
		}
		// 0.5 + 1 + 2 + 4 + 8 + 10 + 10 s.
		if took := time.Since(started); took != 35500*time.Millisecond {
			t.Errorf("took %v, want 35.5s", took)
		}
	})
}

func TestThrottledWaitsUntilTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, wire := newTestClient(t, func(int, *http.Request) (*http.Response, error) {
			return refusal(429, "TooManyRequests"), nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		started := time.Now()
		err := call(ctx, c, testRead)
		if !errors.Is(err, ErrThrottled) || !errors.Is(err, errNoTimeLeft) {
			t.Errorf("error %v, want a 429 that says that there is no time left", err)
		}
		if took := time.Since(started); took > 10*time.Minute || took < 10*time.Minute-2*maxDelay {
			t.Errorf("gave up after %v", took)
		}
		if wire.count() <= maxAttempts {
			t.Errorf("%d requests, want more than %d", wire.count(), maxAttempts)
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	for _, tt := range []struct {
		name, header string
		status       int
		want         time.Duration
	}{
		{"seconds", "7", 429, 7 * time.Second},
		{"fraction", "7.5", 503, 7500 * time.Millisecond},
		{"shorter than the back-off", "0.1", 429, firstDelay},
		{"nonsense", "soon", 429, firstDelay},
		{"negative", "-3", 429, firstDelay},
		{"absurd", "864000", 429, maxRetryAfter},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := newTestClient(t, func(n int, _ *http.Request) (*http.Response, error) {
					if n == 1 {
						return refusal(tt.status, "TooManyRequests", "Retry-After", tt.header), nil
					}
					return answer(200, runningInstance), nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				started := time.Now()
				if err := call(ctx, c, testRead); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(started); took != tt.want {
					t.Errorf("came back after %v, want %v", took, tt.want)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(9 * time.Second)
		got := retryAfter(refusal(429, "TooManyRequests", "Retry-After", at.UTC().Format(http.TimeFormat)))
		if got != 9*time.Second {
			t.Errorf("a date 9 s ahead gives %v", got)
		}
	})
}

func TestBackoffIsSpread(t *testing.T) {
	for attempts := 1; attempts < 100; attempts++ {
		low := backoff(attempts, func() float64 { return 0 })
		high := backoff(attempts, func() float64 { return 0.999 })
		if low <= 0 || high > maxDelay*3/2 || high < low*2 {
			t.Errorf("after %d attempts between %v and %v", attempts, low, high)
		}
	}
}

// A read of what this process created a moment ago may answer 404 for a while.
func TestNotFoundOfARecentCreate(t *testing.T) {
	appearsAfter := func(delay time.Duration) responder {
		born := time.Now()
		return func(int, *http.Request) (*http.Response, error) {
			if time.Since(born) < delay {
				return refusal(404, "NotAuthorizedOrNotFound"), nil
			}
			return answer(200, runningInstance), nil
		}
	}
	tests := []struct {
		name    string
		created bool // by this process
		idle    time.Duration
		appears time.Duration
		found   bool
	}{
		{"ours, appears", true, 0, 20 * time.Second, true},
		{"ours, never appears", true, 0, time.Hour, false},
		{"ours, but long ago", true, 61 * time.Second, 70 * time.Second, false},
		{"not ours", false, 0, time.Second, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, wire := newTestClient(t, appearsAfter(tt.appears))
				if tt.created {
					c.remember(testInstance)
				}
				time.Sleep(tt.idle)
				started := time.Now()
				_, err := c.Compute().GetInstance(t.Context(), testInstance)
				if (err == nil) != tt.found || err != nil && !errors.Is(err, ErrNotFound) {
					t.Errorf("error %v, want found %t", err, tt.found)
				}
				if took := time.Since(started); took > 75*time.Second {
					t.Errorf("took %v", took)
				}
				if !tt.created && wire.count() != 1 {
					t.Errorf("%d requests for a resource of somebody else, want 1", wire.count())
				}
			})
		})
	}
}

func TestRecentCreatesForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecentCreates(time.Minute)
		for range 1000 {
			r.add(time.Now().String())
			time.Sleep(time.Second)
		}
		r.add("") // no OCID yet
		if n := len(r.at); n > 61 {
			t.Errorf("%d entries kept, want those of one minute", n)
		}
		if r.has("") {
			t.Error("the empty OCID is remembered")
		}
	})
}

// A write is never repeated for a 404, whatever this process created.
func TestNotFoundOfAWriteStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, wire := newTestClient(t, func(int, *http.Request) (*http.Response, error) {
			return refusal(404, "NotAuthorizedOrNotFound"), nil
		})
		c.remember(testInstance)
		o := testWrite
		o.target = testInstance
		if err := call(t.Context(), c, o); !errors.Is(err, ErrNotFound) || wire.count() != 1 {
			t.Errorf("error %v after %d requests", err, wire.count())
		}
	})
}

// refreshing is a principal whose token the service stops accepting.
type refreshing struct {
	common.ConfigurationProvider
	refreshes int
	fail      error
}

func (p *refreshing) refresh(time.Time) error { p.refreshes++; return p.fail }

func TestUnauthorizedIsTriedOnceMoreWithAFreshToken(t *testing.T) {
	tests := []struct {
		name      string
		refusals  int
		fail      error
		requests  int
		refreshes int
	}{
		{"accepted then", 1, nil, 2, 1},
		{"still refused", 99, nil, 2, 1},
		{"no fresh token", 99, &AuthError{"test", "no"}, 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				principal := &refreshing{ConfigurationProvider: testPrincipal(t), fail: tt.fail}
				c, wire := newTestClient(t, func(n int, _ *http.Request) (*http.Response, error) {
					if n <= tt.refusals {
						return refusal(401, "NotAuthenticated"), nil
					}
					return answer(200, runningInstance), nil
				}, func(o *Options) { o.Provider = principal })
				err := call(t.Context(), c, testCreate)
				if (err == nil) != (tt.refusals == 1) || err != nil && !errors.Is(err, ErrUnauthorized) {
					t.Errorf("error %v", err)
				}
				if wire.count() != tt.requests || principal.refreshes != tt.refreshes {
					t.Errorf("%d requests and %d refreshes, want %d and %d", wire.count(), principal.refreshes, tt.requests, tt.refreshes)
				}
			})
		})
	}
}
