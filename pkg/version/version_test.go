// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimachinery "k8s.io/apimachinery/pkg/version"
)

func TestFrom(t *testing.T) {
	template := apimachinery.Info{GitVersion: "v0.0.0-master+$Format:%H$", GitCommit: "$Format:%H$", BuildDate: "1970-01-01T00:00:00Z"}
	checkout := &debug.BuildInfo{
		Main: debug.Module{Version: "v1.37.1-0.20260131120000-0123456789ab"},
		Settings: []debug.BuildSetting{
			{Key: "vcs", Value: "git"},
			{Key: "vcs.revision", Value: "0123456789abcdef"},
			{Key: "vcs.time", Value: "2026-01-31T12:00:00Z"},
			{Key: "vcs.modified", Value: "true"},
		},
	}
	for _, test := range []struct {
		name   string
		linked apimachinery.Info
		build  *debug.BuildInfo
		want   Info
	}{
		{
			name:   "the linker's values win",
			linked: apimachinery.Info{GitVersion: "v1.37.0", GitCommit: "abc", BuildDate: "2026-02-01T00:00:00Z", GitTreeState: "clean"},
			build:  checkout,
			want:   Info{Version: "v1.37.0", Commit: "abc", BuildDate: "2026-02-01T00:00:00Z"},
		},
		{
			name:   "a release from a dirty tree says so",
			linked: apimachinery.Info{GitVersion: "v1.37.0", GitCommit: "abc", BuildDate: "2026-02-01T00:00:00Z", GitTreeState: "dirty"},
			want:   Info{Version: "v1.37.0", Commit: "abc-dirty", BuildDate: "2026-02-01T00:00:00Z"},
		},
		{
			name:   "without them the checkout counts",
			linked: template,
			build:  checkout,
			want:   Info{Version: "v1.37.1-0.20260131120000-0123456789ab", Commit: "0123456789abcdef-dirty", BuildDate: "2026-01-31T12:00:00Z"},
		},
		{
			name:   "without a checkout nothing is made up",
			linked: template,
			build:  &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}},
			want:   Info{Version: "(devel)", Commit: "unknown", BuildDate: "unknown"},
		},
		{
			name:   "no build information at all",
			linked: template,
			want:   Info{Version: "unknown", Commit: "unknown", BuildDate: "unknown"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want.GoVersion, test.want.Platform = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
			if diff := cmp.Diff(test.want, from(test.linked, test.build)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestString(t *testing.T) {
	got := Info{"v1.37.0", "abc", "2026-02-01T00:00:00Z", "go1.26.1", "linux/arm64"}.String()
	if want := "v1.37.0 (commit abc, built 2026-02-01T00:00:00Z, go1.26.1, linux/arm64)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUserAgent(t *testing.T) {
	got := UserAgent("oci-cloud-controller-manager")
	name, rest, ok := strings.Cut(got, "/")
	if !ok || name != "oci-cloud-controller-manager" || !strings.HasSuffix(rest, " ("+runtime.GOOS+"/"+runtime.GOARCH+")") {
		t.Errorf("got %q", got)
	}
	if strings.HasPrefix(rest, " ") || strings.Contains(rest, "$Format") {
		t.Errorf("%q has no version", got)
	}
}
