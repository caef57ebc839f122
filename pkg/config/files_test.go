// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// certificate returns a self-signed certificate in PEM form.
func certificate(t *testing.T) string {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(1<<32, 0)}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// write puts files into a directory and returns the path of cloud-provider.yaml in it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "cloud-provider.yaml")
}

func withKeyFile(name string) string {
	return strings.Replace(user, `key: "`+privateKey+`"`, "keyFile: "+name, 1)
}

func TestReadFile(t *testing.T) {
	key := strings.ReplaceAll(privateKey, `\n`, "\n")
	path := write(t, map[string]string{"cloud-provider.yaml": withKeyFile("k.pem") + "caFile: ca.pem\n", "k.pem": key, "ca.pem": certificate(t) + certificate(t)})
	c, report := ReadFile(path, true)
	if len(report.Problems) > 0 {
		t.Fatal(messages(report))
	}
	if string(c.Auth.Key) != key || c.Origin("auth.key").String() != "file "+filepath.Join(filepath.Dir(path), "k.pem") {
		t.Errorf("key of %d bytes from %v", len(c.Auth.Key), c.Origin("auth.key"))
	}
	if n := strings.Count(c.CABundle, "BEGIN CERTIFICATE"); n != 2 {
		t.Errorf("%d certificates, want 2", n)
	}
}

func TestReadFileErrors(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
		is    error
	}{
		{"no config", nil, "cloud-provider.yaml: error: cannot read the cloud config:", fs.ErrNotExist},
		{"no key", map[string]string{"cloud-provider.yaml": withKeyFile("k.pem")}, "cloud-provider.yaml:5: error: auth.keyFile: cannot be read:", fs.ErrNotExist},
		{"key of a wrong kind", map[string]string{"cloud-provider.yaml": withKeyFile("k.pem"), "k.pem": "MARKED"}, "want a private key in PEM form", nil},
		{"encrypted key", map[string]string{"cloud-provider.yaml": withKeyFile("k.pem"), "k.pem": strings.ReplaceAll(encryptedKey, `\n`, "\n")}, "the private key is encrypted, but there is no passphrase", nil},
		{"no CA", map[string]string{"cloud-provider.yaml": user + "caFile: ca.pem\n"}, "cloud-provider.yaml:7: error: caFile: cannot be read:", fs.ErrNotExist},
		{"empty CA", map[string]string{"cloud-provider.yaml": user + "caFile: ca.pem\n", "ca.pem": ""}, "want certificates in PEM form, found none", nil},
		{"key as CA", map[string]string{"cloud-provider.yaml": user + "caFile: ca.pem\n", "ca.pem": strings.ReplaceAll(privateKey, `\n`, "\n")}, `want certificates only, got a PEM block of type "RSA PRIVATE KEY"`, nil},
		{"broken CA", map[string]string{"cloud-provider.yaml": user + "caFile: ca.pem\n", "ca.pem": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}, "certificate 1 cannot be read", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, report := ReadFile(write(t, test.files), false)
			err := report.Err()
			if err == nil || len(report.Problems) != 1 || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("the cause of %v is lost", err)
			}
			check(t, test.name, err.Error())
		})
	}
}

func TestInlineBundle(t *testing.T) {
	pem := certificate(t)
	c, report := ReadFile(write(t, map[string]string{"cloud-provider.yaml": user + "caBundle: |\n  " + strings.ReplaceAll(strings.TrimSpace(pem), "\n", "\n  ") + "\n"}), true)
	if len(report.Problems) > 0 || c.CABundle != pem {
		t.Fatalf("%v\n%s", messages(report), c.CABundle)
	}
	var out bytes.Buffer
	if err := Describe(&out, c); err != nil || !strings.Contains(out.String(), "caBundle: '[1 certificates]'") {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestKeyFileOfAnotherPrincipalIsNotRead(t *testing.T) {
	c, report := ReadFile(write(t, map[string]string{"cloud-provider.yaml": "useInstancePrincipals: true\nauth: {keyFile: k.pem}\n"}), false)
	if report.Err() != nil || c.Auth.Key != "" {
		t.Errorf("got %v", report.Err())
	}
}

func TestFromEnviron(t *testing.T) {
	read := func(set map[string]string) (Environment, Report) {
		return FromEnviron(func(name string) (string, bool) { v, ok := set[name]; return v, ok })
	}
	e, report := read(nil)
	if len(report.Problems) > 0 || e.EnableFlexCIDR || e.LoadBalancerPrefix != "" || e.IPv6Only() || e.OpenShiftNodeLabel != "node.openshift.io/os_id=rhel" ||
		e.MetricsConfigFile != "/etc/oci/config.yaml" || e.MetadataBaseURL != DefaultMetadataURL || e.WorkloadIdentity.SubjectTokenType != "jwt" ||
		e.WorkloadIdentity.RequestedTokenType != "urn:oci:token-type:oci-rpst" || e.WorkloadIdentity.TokenPath != "/var/run/secrets/kubernetes.io/serviceaccount/token" {
		t.Errorf("defaults: %+v, %v", e, messages(report))
	}
	e, report = read(map[string]string{"LOAD_BALANCER_PREFIX": "prod", "ENABLE_FLEX_CIDR_CONTROLLER": "1", "CLUSTER_IP_FAMILY": "ipv6",
		"OCI_FLEXD_DRIVER_DIRECTORY": "/flexd", "OCI_METADATA_BASE_URL": "http://127.0.0.1:1/opc/v2", "OPENSHIFT_NODE_LABEL_ID": ""})
	if len(report.Problems) > 0 || !e.EnableFlexCIDR || e.LoadBalancerPrefix != "prod-" || !e.IPv6Only() || e.MetricsConfigFile != "/flexd/config.yaml" ||
		e.MetadataBaseURL != "http://127.0.0.1:1/opc/v2" || e.OpenShiftNodeLabel != "node.openshift.io/os_id=rhel" {
		t.Errorf("got %+v, %v", e, messages(report))
	}
	e, report = read(map[string]string{"LOAD_BALANCER_PREFIX": "prod-", "ENABLE_FLEX_CIDR_CONTROLLER": "perhaps", "CLUSTER_IP_FAMILY": "IPv4,IPv6",
		"OCI_FLEXD_DRIVER_DIRECTORY": "/flexd", "CONFIG_YAML_FILENAME": "/etc/c.yaml", "OCI_METADATA_BASE_URL": "metadata"})
	if e.EnableFlexCIDR || e.LoadBalancerPrefix != "prod-" || e.IPv6Only() || e.MetricsConfigFile != "/etc/c.yaml" || e.MetadataBaseURL != DefaultMetadataURL {
		t.Errorf("got %+v", e)
	}
	got := strings.Join(messages(report), "\n")
	if len(report.Warnings()) != 2 || !strings.Contains(got, "environment: warning: ENABLE_FLEX_CIDR_CONTROLLER: want true or false") || !strings.Contains(got, "OCI_METADATA_BASE_URL") {
		t.Errorf("got %s", got)
	}
}

func TestLogFields(t *testing.T) {
	got := LogFields([]string{"LOG_FIELD_cluster=prod=1", "LOG_FIELD_=x", "PATH=/bin", "LOG_FIELD_empty="})
	if len(got) != 2 || got["cluster"] != "prod=1" || got["empty"] != "" {
		t.Errorf("got %v", got)
	}
}

// examples are the shipped configs.
const examples = "../../manifests/cloud-controller-manager/"

func TestValidateCommand(t *testing.T) {
	for name, path := range map[string]string{
		"user":                     examples + "provider-config-example.yaml",
		"instance-principals":      examples + "provider-config-instance-principals-example.yaml",
		"workload-identity":        examples + "provider-config-workload-identity-example.yaml",
		"full, without its CAFile": write(t, map[string]string{"cloud-provider.yaml": strings.Replace(string(readTestdata(t, "full.yaml")), "caFile: ca.pem\n", "", 1)}),
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			code := ValidateCommand(context.Background(), &out, &errOut, ValidateOptions{Path: path})
			for line := range strings.Lines(errOut.String()) {
				if !strings.Contains(line, ": warning: ") || !strings.Contains(line, withoutEffect) {
					t.Errorf("unexpected: %s", line)
				}
			}
			if code != 0 {
				t.Fatalf("exit code %d\n%s", code, &errOut)
			}
			var root yaml.Node
			if err := yaml.Unmarshal(out.Bytes(), &root); err != nil {
				t.Errorf("the output is no YAML: %v\n%s", err, &out)
			}
			text := strings.ReplaceAll(out.String(), path, filepath.Base(path))
			golden(t, "describe-"+strings.Split(name, ",")[0]+".golden", text)
		})
	}
}

func TestValidateCommandFails(t *testing.T) {
	var out, errOut bytes.Buffer
	if code := ValidateCommand(context.Background(), &out, &errOut, ValidateOptions{Path: "testdata/five-mistakes.yaml"}); code != 1 || out.Len() > 0 {
		t.Errorf("exit code %d, output %s", code, &out)
	}
	if n := strings.Count(errOut.String(), "\n"); n != 5 {
		t.Errorf("%d messages, want 5:\n%s", n, &errOut)
	}
}

func TestValidateCommandWithMetadata(t *testing.T) {
	path := write(t, map[string]string{"cloud-provider.yaml": "useInstancePrincipals: true\n"})
	var out, errOut bytes.Buffer
	code := ValidateCommand(context.Background(), &out, &errOut, ValidateOptions{Path: path, Metadata: &fakeMetadata{document: ashburn()}})
	if code != 0 || !strings.Contains(out.String(), "us-ashburn-1") || !strings.Contains(out.String(), "# instance metadata") {
		t.Errorf("exit code %d\n%s%s", code, &out, &errOut)
	}
	out.Reset()
	if code := ValidateCommand(context.Background(), &out, &errOut, ValidateOptions{Path: path, Metadata: &fakeMetadata{}}); code != 1 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"auth.region: required: it is neither set nor known from instance metadata, and there is no default region", "compartment: required"} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("no message %q in\n%s", want, &errOut)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	errOut.Reset()
	code = ValidateCommand(ctx, &out, &errOut, ValidateOptions{Path: path, Metadata: &fakeMetadata{until: time.Now().Add(time.Hour)}})
	if code != 1 || !strings.Contains(errOut.String(), "needed for auth.region and compartment") {
		t.Errorf("exit code %d\n%s", code, &errOut)
	}
}

// TestReferenceIsFresh compares docs/reference/config.md with the key table.
func TestReferenceIsFresh(t *testing.T) {
	var want bytes.Buffer
	if err := WriteReference(&want); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/reference/config.md")
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("docs/reference/config.md is stale: run make generate (%v)", err)
	}
	for _, k := range Keys() {
		if !strings.Contains(want.String(), "| `"+k.Path+"` |") || k.Description == "" || k.Since == "" || k.Type == "" {
			t.Errorf("%s is not documented", k.Path)
		}
		if _, known := newTree().byPath[k.Replacement]; k.Replacement != "" && !known {
			t.Errorf("%s is replaced by the unknown key %s", k.Path, k.Replacement)
		}
	}
}
