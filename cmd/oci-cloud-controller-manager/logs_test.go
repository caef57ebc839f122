// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// logTo makes everything be logged into the returned buffer, through setLogger.
func logTo(t *testing.T, fields map[string]string) *strings.Builder {
	t.Helper()
	var out strings.Builder
	state := klog.CaptureState()
	t.Cleanup(state.Restore)
	klog.SetLoggerWithOptions(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out), textlogger.Verbosity(10))), klog.ContextualLogger(true))
	setLogger(fields)
	return &out
}

// C157: a token that the API server answers is not logged, whatever the verbosity, and neither is what is sent.
func TestBodiesAreNotLogged(t *testing.T) {
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		out := logTo(t, nil)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","status":{"token":"MARKED-token"}}`)
		}))
		client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: contentType}})
		if err != nil {
			t.Fatal(err)
		}
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"MARKED-audience"}}}
		answer, err := client.CoreV1().ServiceAccounts("kube-system").CreateToken(t.Context(), "node-controller", request, metav1.CreateOptions{})
		server.Close()
		if err != nil || answer.Status.Token != "MARKED-token" {
			t.Fatalf("answer %v, %v", answer, err)
		}
		text := out.String()
		if !strings.Contains(text, `"Response Body" body="[redacted]"`) || !strings.Contains(text, `"Request Body" body="[redacted]"`) {
			t.Errorf("%s: the bodies do not appear as left out:\n%s", contentType, text)
		}
		if strings.Contains(text, "MARKED") || strings.Contains(text, "|") {
			t.Errorf("%s: a body is logged:\n%s", contentType, text)
		}
	}
}

// Everything else is logged as before, with the place of the caller and with the fields.
func TestLogLines(t *testing.T) {
	for _, fields := range []map[string]string{nil, {"cluster": "c1", "az": "a"}} {
		out := logTo(t, fields)
		ctx := klog.NewContext(context.Background(), klog.Background())
		logger := klog.FromContext(ctx).WithName("part").WithValues("node", "n1")
		logger.V(10).Info("Structured", "key", "value")
		logger.Error(errors.New("boom"), "Failed")
		klog.InfoS("Global", "key", "value")
		klog.ErrorS(errors.New("boom"), "Global failure")
		klog.Infof("no %s", "structure")
		want := []string{`"Structured" logger="part"`, `"Failed" err="boom" logger="part"`, `"Global"`, `"Global failure" err="boom"`, `no structure`}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != len(want) {
			t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), out)
		}
		place := regexp.MustCompile(`^[IE]\d{4} [0-9:.]+ +\d+ logs_test\.go:\d+\] `)
		for i, line := range lines {
			if !place.MatchString(line) || !strings.Contains(line, want[i]) {
				t.Errorf("line %q, want %q with the place of its caller", line, want[i])
			}
			if fields != nil && !strings.Contains(line, `az="a" cluster="c1"`) {
				t.Errorf("no fields in %q", line)
			}
		}
	}
}
