// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// silent never answers.
func silent(_ int, r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestCallWithoutDeadlineGetsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestClient(t, silent)
		started := time.Now()
		err := call(context.WithoutCancel(t.Context()), c, testRead)
		if err == nil {
			t.Fatal("no error from a service that never answers")
		}
		if took := time.Since(started); took > defaultDeadline {
			t.Errorf("took %v, want at most %v", took, defaultDeadline)
		}
	})
}

func TestSilentConnectionIsGivenUpAndTheReadRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, wire := newTestClient(t, func(n int, r *http.Request) (*http.Response, error) {
			if n == 1 {
				return silent(n, r)
			}
			return answer(200, runningInstance), nil
		})
		started := time.Now()
		if err := call(t.Context(), c, testRead); err != nil {
			t.Error(err)
		}
		if took := time.Since(started); took != attemptTimeout+firstDelay || wire.count() != 2 {
			t.Errorf("%d requests in %v", wire.count(), took)
		}
		// Nobody knows whether the create was carried out.
		c, wire = newTestClient(t, silent)
		if err := call(t.Context(), c, testCreate); !errors.Is(err, context.DeadlineExceeded) || wire.count() != 1 {
			t.Errorf("error %v after %d requests", err, wire.count())
		}
	})
}

func TestCallerEndsTheCall(t *testing.T) {
	for name, w := range map[string]responder{
		"while the service is silent": silent,
		"between two attempts": func(int, *http.Request) (*http.Response, error) {
			return refusal(429, "TooManyRequests", "Retry-After", "60"), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, wire := newTestClient(t, w)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				time.AfterFunc(3*time.Second, cancel)
				started := time.Now()
				err := call(ctx, c, testRead)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("error %v, want that of the context", err)
				}
				if took := time.Since(started); took != 3*time.Second || wire.count() != 1 {
					t.Errorf("%d requests in %v", wire.count(), took)
				}
				synctest.Wait()
			})
		})
	}
}

// stuck is a principal that waits for its token.
type stuck struct {
	common.ConfigurationProvider
	release chan struct{}
}

func (p *stuck) credentials() (credentials, error) {
	<-p.release
	return credentials{testUser, pki.SigningKey()}, nil
}

func TestCallerNeedNotWaitForTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		principal := &stuck{testPrincipal(t), make(chan struct{})}
		c, wire := newTestClient(t, always(200, runningInstance), func(o *Options) { o.Provider = principal })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		started := time.Now()
		if err := call(ctx, c, testCreate); !errors.Is(err, context.DeadlineExceeded) || time.Since(started) != time.Second {
			t.Errorf("error %v after %v", err, time.Since(started))
		}
		close(principal.release)
		synctest.Wait()
		if wire.count() != 0 {
			t.Error("the create that was given up was sent when the token came")
		}
	})
}

func TestRequestsAreSignedAndSaySo(t *testing.T) {
	c, wire := newTestClient(t, always(200, runningInstance))
	if err := call(t.Context(), c, testRead); err != nil {
		t.Fatal(err)
	}
	r := wire.requests[0]
	if got := r.Header.Get("Authorization"); !strings.Contains(got, `keyId="`+testTenancy+"/"+testUser+"/"+testFingerprint+`"`) ||
		!strings.Contains(got, `headers="date (request-target) host"`) {
		t.Errorf("signed with %q", got)
	}
	if got := r.URL.String(); got != "https://iaas.us-ashburn-1.oraclecloud.com/20160918/instances/"+testInstance {
		t.Errorf("sent to %s", got)
	}
}

// One line per request at V(4); no key, token, header or body at any verbosity.
func TestLogNamesTheCallAndKeepsSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const marker = "MARKED-SECRET"
		principal, err := UserPrincipal(UserCredentials{
			Tenancy: testTenancy, User: testUser, Region: testRegion, Fingerprint: testFingerprint,
			PrivateKey: pki.SigningKeyPEM() + marker, Passphrase: marker,
		})
		if err != nil {
			t.Fatal(err)
		}
		c, wire := newTestClient(t, func(n int, _ *http.Request) (*http.Response, error) {
			if n == 1 {
				return refusal(500, "InternalServerError", "Set-Cookie", marker), nil
			}
			return answer(200, `{"id":"i","lifecycleState":"RUNNING","metadata":{"user_data":"`+marker+`"}}`), nil
		}, func(o *Options) { o.Provider = principal })

		var out bytes.Buffer
		logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(10), textlogger.Output(&out)))
		if _, err := c.Compute().GetInstance(klog.NewContext(t.Context(), logger), testInstance); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 {
			t.Fatalf("%d lines for two requests:\n%s", len(lines), out.String())
		}
		for i, want := range []string{"500", "200"} {
			for _, part := range []string{`operation="GetInstance"`, "status=" + want, `opcRequestID="/REQ/1"`, testInstance} {
				if !strings.Contains(lines[i], part) {
					t.Errorf("line %d lacks %s: %s", i, part, lines[i])
				}
			}
		}
		signature := wire.requests[0].Header.Get("Authorization")
		for _, secret := range []string{marker, signature, "PRIVATE KEY", "rsa-sha256"} {
			if strings.Contains(out.String(), secret) {
				t.Errorf("the log holds %q", secret)
			}
		}

		out.Reset()
		quiet := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(3), textlogger.Output(&out)))
		if _, err := c.Compute().GetInstance(klog.NewContext(t.Context(), quiet), testInstance); err != nil {
			t.Fatal(err)
		}
		if out.Len() != 0 {
			t.Errorf("logged at V(3): %s", out.String())
		}
	})
}

// What /metrics serves after a read that was throttled once, a refused write, and a read that got no answer.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestClient(t, func(n int, r *http.Request) (*http.Response, error) {
			switch n {
			case 1:
				return refusal(429, "TooManyRequests"), nil
			case 2:
				return answer(200, runningInstance), nil
			case 3:
				return refusal(409, "NotAuthorizedOrResourceAlreadyExists"), nil
			case 4:
				b := answer(200, "")
				b.Body = io.NopCloser(failingReader{})
				return b, nil
			default:
				return nil, errors.New("no route to host")
			}
		}, limited(1, 1))
		kind := func(name, verb string, write, repeatable bool) op {
			return op{service: ServiceCompute, name: name, resource: "metrics_test", verb: verb, write: write, repeatable: repeatable}
		}
		if err := call(t.Context(), c, kind("MetricRead", "get", false, true)); err != nil {
			t.Error(err)
		}
		if err := call(t.Context(), c, kind("MetricUpdate", "update", true, false)); !errors.Is(err, ErrConflict) {
			t.Error(err)
		}
		for range 2 {
			if err := call(t.Context(), c, kind("MetricDelete", "delete", true, false)); err == nil {
				t.Error("no error without an answer")
			}
		}

		for _, want := range []struct {
			metric string
			labels map[string]string
			value  float64
		}{
			{"oci_requests_total", map[string]string{"resource": "metrics_test", "verb": "get", "code": "200"}, 1},
			{"oci_requests_total", map[string]string{"resource": "metrics_test", "verb": "get", "code": "429"}, 0},
			{"oci_requests_total", map[string]string{"resource": "metrics_test", "verb": "update", "code": "409"}, 1},
			{"oci_requests_total", map[string]string{"resource": "metrics_test", "verb": "delete", "code": "555"}, 2},
			{"oci_client_requests_total", map[string]string{"service": "compute", "operation": "MetricRead", "code": "429"}, 1},
			{"oci_client_requests_total", map[string]string{"service": "compute", "operation": "MetricRead", "code": "200"}, 1},
			{"oci_client_requests_total", map[string]string{"service": "compute", "operation": "MetricDelete", "code": "555"}, 2},
			{"oci_client_request_duration_seconds", map[string]string{"service": "compute", "operation": "MetricRead"}, 2},
			{"oci_client_retries_total", map[string]string{"service": "compute", "operation": "MetricRead", "reason": "throttled"}, 1},
			{"oci_client_retries_total", map[string]string{"service": "compute", "operation": "MetricDelete", "reason": "network"}, 0},
		} {
			if got := gathered(t, want.metric, want.labels); got != want.value {
				t.Errorf("%s%v is %v, want %v", want.metric, want.labels, got, want.value)
			}
		}
		if got := gathered(t, "oci_client_rate_limiter_duration_seconds", map[string]string{"service": "compute", "direction": "write"}); got < 3 {
			t.Errorf("%v waits of writes observed, want one per request", got)
		}
	})
}

// gathered reads a counter's value or a histogram's number of observations from the registry behind /metrics; 0 if there
// is no such series.
func gathered(t *testing.T, name string, labels map[string]string) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
	series:
		for _, m := range family.GetMetric() {
			if len(m.GetLabel()) != len(labels) {
				t.Errorf("%s has labels %v, want those of %v", name, m.GetLabel(), labels)
			}
			for _, l := range m.GetLabel() {
				if labels[l.GetName()] != l.GetValue() {
					continue series
				}
			}
			if h := m.GetHistogram(); h != nil {
				return float64(h.GetSampleCount())
			}
			return m.GetCounter().GetValue()
		}
	}
	return 0
}
