// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
)

func TestErrorNamesThePath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cloud-provider.yaml")
	nothing := func(string) (string, bool) { return "", false }
	if _, _, err := Read(path, false, nothing); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte("useInstancePrincipals: true\ncompartmnt: ocid1.compartment.oc1..c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, _, err := Read(path, false, nothing); err != nil || c.Environment.BlockVolumeDriver == "" {
		t.Errorf("a stray key: %v", err)
	}
	if _, _, err := Read(path, true, nothing); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a stray key, strictly: %v", err)
	}
}

// Each principal can be made from a config without a call to anybody.
func TestPrincipals(t *testing.T) {
	for name, c := range map[string]*config.Config{
		"instance": {UseInstancePrincipals: true},
		"workload": {UseWorkloadIdentity: true, Environment: config.Environment{WorkloadIdentity: config.WorkloadIdentityEnvironment{
			DomainURL: "https://idcs.example.com", ResourceType: "cluster", ClientID: "id", ClientSecret: "secret",
		}}},
		"workload, instance asks": {UseWorkloadIdentity: true, Environment: config.Environment{WorkloadIdentity: config.WorkloadIdentityEnvironment{
			DomainURL: "https://idcs.example.com", ResourceType: "cluster", UseInstancePrincipal: true,
		}}},
	} {
		c.Auth.Region = "us-ashburn-1"
		if _, err := New(c, "cluster"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := New(&config.Config{Auth: config.Auth{Region: "us-ashburn-1", Tenancy: "t", User: "u", Fingerprint: "f", Key: "marked", Passphrase: "marked"}}, "")
	if err == nil || strings.Contains(err.Error(), "marked") {
		t.Errorf("user with a bad key: %v", err)
	}
}
