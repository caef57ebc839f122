// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package version says what a binary was built from.
//
// A release build sets the variables of component-base, so that its metrics and logs agree with ours:
//
//	go build -ldflags "-X k8s.io/component-base/version.gitVersion=v1.37.0
//	                   -X k8s.io/component-base/version.gitCommit=$(git rev-parse HEAD)
//	                   -X k8s.io/component-base/version.buildDate=2026-01-31T12:00:00Z"
//
// Any other build says what the go command knows about the checkout.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	apimachinery "k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/version"
)

const unknown = "unknown"

// Info describes a build. No field is empty.
type Info struct {
	Version   string // "v1.37.0"
	Commit    string // full hash; with the suffix "-dirty" if the checkout had changes
	BuildDate string // RFC 3339, UTC
	GoVersion string // "go1.26.1"
	Platform  string // "linux/amd64"
}

// Get returns the build of this binary.
func Get() Info {
	build, _ := debug.ReadBuildInfo()
	return from(version.Get(), build)
}

// String gives the build in one line.
func (i Info) String() string {
	return fmt.Sprintf("%s (commit %s, built %s, %s, %s)", i.Version, i.Commit, i.BuildDate, i.GoVersion, i.Platform)
}

// UserAgent is what a component calls itself in requests to the OCI API: "oci-cloud-controller-manager/v1.37.0 (linux/amd64)".
func UserAgent(component string) string {
	i := Get()
	return fmt.Sprintf("%s/%s (%s)", component, i.Version, i.Platform)
}

// from prefers what the linker set over what the go command noted in build, which may be nil.
func from(linked apimachinery.Info, build *debug.BuildInfo) Info {
	i := Info{
		Version:   linked.GitVersion,
		Commit:    linked.GitCommit,
		BuildDate: linked.BuildDate,
		GoVersion: runtime.Version(),
		Platform:  runtime.GOOS + "/" + runtime.GOARCH,
	}
	dirty := linked.GitTreeState == "dirty"
	// Without the linker's flags component-base holds a template of git archive.
	if strings.Contains(linked.GitVersion, "$Format") {
		i.Version, i.Commit, i.BuildDate = "", "", ""
		if build != nil {
			i.Version = build.Main.Version
			i.Commit, i.BuildDate = setting(build, "vcs.revision"), setting(build, "vcs.time")
			dirty = setting(build, "vcs.modified") == "true"
		}
	}
	if i.Commit != "" && dirty {
		i.Commit += "-dirty"
	}
	for _, field := range []*string{&i.Version, &i.Commit, &i.BuildDate} {
		if *field == "" {
			*field = unknown
		}
	}
	return i
}

func setting(build *debug.BuildInfo, key string) string {
	for _, s := range build.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
