// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runValidateConfig runs the sub-command and returns its exit code and output.
func runValidateConfig(t *testing.T, args ...string) (code int, out, errOut string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := validateConfigCommand(func(c int) { code = c })
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	err = cmd.ExecuteContext(t.Context())
	return code, stdout.String(), stderr.String(), err
}

func TestValidateConfigAcceptsTheExamples(t *testing.T) {
	files, err := filepath.Glob("../../manifests/cloud-controller-manager/provider-config-*example.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("examples are %q, %v", files, err)
	}
	for _, file := range files {
		code, out, errOut, err := runValidateConfig(t, "--cloud-config", file)
		if code != 0 || err != nil || errOut != "" {
			t.Errorf("%s: exit code %d, %v\n%s", file, code, err, errOut)
		}
		for _, want := range []string{"compartment: ocid1.compartment.oc1..aaaaaaaaexamplecompartment", filepath.Base(file) + ":", "# default"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", file, want, out)
			}
		}
	}
}

func TestValidateConfigNamesEveryMistake(t *testing.T) {
	code, out, errOut, err := runValidateConfig(t, "--cloud-config", "../../pkg/config/testdata/five-mistakes.yaml")
	if code != 1 || err != nil || out != "" {
		t.Errorf("exit code %d, %v, output %q", code, err, out)
	}
	messages := strings.Split(strings.TrimSpace(errOut), "\n")
	if len(messages) != 5 {
		t.Fatalf("%d messages, want 5:\n%s", len(messages), errOut)
	}
	for i, line := range []string{"5", "13", "15", "16", "18"} {
		if !strings.Contains(messages[i], "five-mistakes.yaml:"+line+":") {
			t.Errorf("message %d is not about line %s: %s", i+1, line, messages[i])
		}
	}
}

func TestValidateConfigNeedsAFile(t *testing.T) {
	if _, _, _, err := runValidateConfig(t); err == nil || !strings.Contains(err.Error(), "cloud-config") {
		t.Errorf("got %v", err)
	}
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	if code, _, errOut, _ := runValidateConfig(t, "--cloud-config", missing); code != 1 || !strings.Contains(errOut, missing) {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

func TestValidateConfigAsksMetadataOnRequest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"compartmentId":"ocid1.compartment.oc1..instance","region":"iad","canonicalRegionName":"us-ashburn-1"}`))
	}))
	defer server.Close()
	t.Setenv("OCI_METADATA_BASE_URL", server.URL+"/opc/v2")
	file := filepath.Join(t.TempDir(), "cloud-provider.yaml")
	if err := os.WriteFile(file, []byte("useInstancePrincipals: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, out, _, _ := runValidateConfig(t, "--cloud-config", file); strings.Contains(out, "us-ashburn-1") {
		t.Errorf("metadata was asked:\n%s", out)
	}
	code, out, errOut, _ := runValidateConfig(t, "--cloud-config", file, "--instance-metadata")
	if code != 0 || !strings.Contains(out, "us-ashburn-1") || !strings.Contains(out, "ocid1.compartment.oc1..instance") {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
}
