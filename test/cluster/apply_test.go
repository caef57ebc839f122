// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoadManifests(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	single := write("single.yml", "kind: Service\napiVersion: v1\nmetadata: {name: single}\n")
	write("many/b.yaml", "# a comment alone\n---\nkind: Secret\napiVersion: v1\nmetadata: {name: b1}\n---\n---\nkind: Secret\napiVersion: v1\nmetadata: {name: b2}\n")
	write("many/a.yaml", "kind: List\napiVersion: v1\nitems:\n- {kind: ConfigMap, apiVersion: v1, metadata: {name: a1}}\n- {kind: ConfigMap, apiVersion: v1, metadata: {name: a2}}\n")
	write("many/README.md", "not: [yaml")
	write("many/below/c.yaml", "not: [yaml")

	objects, err := LoadManifests(single, filepath.Join(dir, "many"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, object := range objects {
		got = append(got, object.GetKind()+" "+object.GetName())
	}
	want := []string{"Service single", "ConfigMap a1", "ConfigMap a2", "Secret b1", "Secret b2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}

	for name, path := range map[string]string{
		"no such file":            filepath.Join(dir, "none.yaml"),
		"directory without YAML":  filepath.Dir(write("empty/x.txt", "")),
		"not YAML":                write("broken.yaml", "not: [yaml"),
		"an object without kind":  write("unkind.yaml", "metadata: {name: x}\n"),
		"directory with bad YAML": filepath.Join(dir, "many", "below"),
	} {
		if objects, err := LoadManifests(path); err == nil {
			t.Errorf("%s: no error, %d objects", name, len(objects))
		}
	}
}
