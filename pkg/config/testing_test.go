// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", path, diff)
	}
}

// messages gives the problems of a report one by one, as users see them.
func messages(r Report) []string {
	out := []string{}
	for _, p := range r.Problems {
		out = append(out, p.Error())
	}
	return out
}

// user is a complete user principal, to be put before what a test is about. It has userLines lines.
const (
	user = `auth:
  region: us-phoenix-1
  tenancy: ocid1.tenancy.oc1..aaaa
  user: ocid1.user.oc1..aaaa
  key: "` + privateKey + `"
  fingerprint: 8c:bf:17:7b:5f:e0:7d:13:75:11:d6:39:0d:e2:84:74
`
	userLines = 6

	privateKey   = `-----BEGIN RSA PRIVATE KEY-----\nbWFya2VkLXByaXZhdGUta2V5\n-----END RSA PRIVATE KEY-----\n`
	encryptedKey = `-----BEGIN ENCRYPTED PRIVATE KEY-----\nbWFya2VkLXByaXZhdGUta2V5\n-----END ENCRYPTED PRIVATE KEY-----\n`
)

// lines joins lines to a file.
func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }
