// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

func TestDefaults(t *testing.T) {
	o, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	// Those of release v1.35.
	want := options{endpoint: "unix://tmp/csi.sock", fssEndpoint: "unix://tmp/csi-fss.sock", lustreEndpoint: "unix://tmp/csi-lustre.sock"}
	if *o != want {
		t.Errorf("defaults %+v", *o)
	}
}

func TestFlags(t *testing.T) {
	o, err := parse([]string{"-endpoint=unix:///csi.sock", "--strict-parameters", "--list-volumes-published-nodes", "--v=4", "--kubeconfig", "k"}, io.Discard)
	if err != nil || o.endpoint != "unix:///csi.sock" || !o.strictParameters || !o.publishedNodes || o.kubeconfig != "k" {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := parse([]string{"--strict-parameter"}, io.Discard); err == nil || !strings.Contains(err.Error(), "--help") {
		t.Errorf("a misspelt flag: %v", err)
	}
	if _, err := parse([]string{"serve"}, io.Discard); err == nil || !strings.Contains(err.Error(), "serve") {
		t.Errorf("an argument: %v", err)
	}
	var help bytes.Buffer
	if _, err := parse([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-list-volumes-published-nodes") ||
		strings.Contains(help.String(), "log_dir") {
		t.Errorf("help (%v):\n%s", err, help.String())
	}
}

// TestManifestsStartIt: the arguments of the shipped manifest and of that of release v1.35 are accepted.
func TestManifestsStartIt(t *testing.T) {
	const shipped = "../../manifests/container-storage-interface/oci-csi-controller-driver.yaml"
	for _, path := range []string{shipped, "../../test/fixtures/v1.35/csi-controller.yaml"} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var d appsv1.Deployment
		if err := yaml.Unmarshal(data, &d); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, c := range d.Spec.Template.Spec.Containers {
			if c.Name != programName {
				continue
			}
			found = true
			o, err := parse(c.Args, io.Discard)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if !strings.HasSuffix(o.endpoint, "/csi.sock") || path == shipped && o.httpEndpoint == "" {
				t.Errorf("%s: %+v", path, o)
			}
			if !slices.Contains(c.Command, "/usr/local/bin/"+programName) {
				t.Errorf("%s runs %q", path, c.Command)
			}
		}
		if !found {
			t.Errorf("%s has no container %s", path, programName)
		}
	}
}

func TestConfigFile(t *testing.T) {
	dir := t.TempDir()
	oldName, newName := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "cloud-provider.yaml")
	paths := []string{oldName, newName}
	write := func(path string) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what, flag, variable, want string) {
		t.Helper()
		if got, err := configFile(flag, variable, paths); err != nil || got != want {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	_, err := configFile("", "", paths)
	if err == nil || !strings.Contains(err.Error(), oldName) || !strings.Contains(err.Error(), newName) || !strings.Contains(err.Error(), "CONFIG_YAML_FILENAME") {
		t.Errorf("no file: %v", err)
	}
	write(newName)
	expect("the name of the CCM's", "", "", newName)
	write(oldName)
	expect("both: as before", "", "", oldName)
	expect("the variable", "", "/etc/c.yaml", "/etc/c.yaml")
	expect("the flag", "/etc/f.yaml", "/etc/c.yaml", "/etc/f.yaml")
}
