// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

//go:debug rsa1024min=0

// Package sanity_test runs csi-sanity, the conformance suite of CSI, against our controller and node services: over gRPC, with a
// simulated region whose volumes have content, and real mounts on this machine.
package sanity_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster"
)

// unserved are the tests that csi-sanity leaves out, since our services do not say that they can do this, and why they do not.
func unserved() map[string]string {
	const health = "optional; what the cloud knows of a volume's health is its state, and no sidecar that is shipped asks"
	return map[string]string{
		"ControllerGetVolumeHealth":                           health,
		"ControllerListVolumeHealth":                          health,
		"NodeGetVolumeHealth":                                 health,
		"NodeGetStorageHealth":                                health,
		"GetCapacity":                                         "the cloud tells no capacity; a create that finds none is ResourceExhausted",
		"creating a snapshot with accessibility requirements": "a backup belongs to the region, and can be restored in any availability domain",
	}
}

// TestSanityOfMountedVolumes: C085, C103, C104, C114 and all else that csi-sanity looks at.
func TestSanityOfMountedVolumes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("mount", "")
}

// TestSanityOfRawBlockVolumes: what differs for them.
func TestSanityOfRawBlockVolumes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("block", "Node Service")
}

// result is what csi-sanity reports of one of its tests.
type result struct {
	Type    string   `json:"LeafNodeType"`
	Leaf    string   `json:"LeafNodeText"`
	Above   []string `json:"ContainerHierarchyTexts"`
	State   string   `json:"State"`
	Failure struct{ Message string }
}

func (r result) name() string { return strings.Join(append(slices.Clone(r.Above), r.Leaf), ": ") }

// run runs the tests whose names match, all if focus is empty.
func (r *rig) run(access, focus string) {
	r.Helper()
	programs, err := cluster.BuildSidecars(r.Context(), "", os.Stderr)
	r.must(err)
	report := r.at("report.json")
	arguments := []string{
		"--csi.endpoint=unix://" + r.nodeSocket, "--csi.controllerendpoint=unix://" + r.controllerSocket,
		"--csi.mountdir=" + r.at("kubelet", "mount"), "--csi.stagingdir=" + r.at("kubelet", "staging"),
		"--csi.testvolumesize=53687091200", "--csi.testvolumeexpandsize=64424509440",
		"--csi.testvolumeaccesstype=" + access, "--csi.testnodevolumeattachlimit",
		"--csi.testvolumeparameters=" + r.file("parameters.yaml", "attachment-type: paravirtualized\n"),
		"--csi.testvolumemutableparameters=" + r.file("mutable.yaml", "vpusPerGB: \"20\"\n"),
		"--ginkgo.json-report=" + report, "--ginkgo.no-color",
	}
	if focus != "" {
		arguments = append(arguments, "--ginkgo.focus="+focus)
	}
	command := exec.CommandContext(r.Context(), filepath.Join(programs, "csi-sanity"), arguments...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err = command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.Fatal(err)
	}
	passed, skipped := r.read(report, out.String())
	if err != nil && !r.Failed() {
		r.Fatalf("csi-sanity: %v\n%s", err, out.String())
	}
	r.Logf("%d passed, %d left out", passed, len(skipped))
	if focus != "" {
		return
	}
	for name := range unserved() {
		if !skipped[name] {
			r.Errorf("%s: it is in the list of what is left out, and was not", name)
		}
	}
}

// read fails the test for what failed, and for what was left out without a reason.
func (r *rig) read(report, out string) (passed int, skipped map[string]bool) {
	r.Helper()
	text, err := os.ReadFile(report)
	if err != nil {
		r.Fatalf("%v\n%s", err, out)
	}
	var suites []struct {
		Specs []result `json:"SpecReports"`
	}
	r.must(json.Unmarshal(text, &suites))
	skipped = map[string]bool{}
	reasons := slices.Collect(maps.Keys(unserved()))
	for _, s := range suites[0].Specs {
		switch {
		case s.Type != "It", s.State == "pending":
		case s.State == "passed":
			passed++
		case s.State == "skipped" && slices.ContainsFunc(reasons, func(name string) bool { return strings.Contains(s.name(), name) }):
			for _, name := range reasons {
				skipped[name] = skipped[name] || strings.Contains(s.name(), name)
			}
		case s.State == "skipped" && s.Failure.Message == "": // not in focus
		default:
			r.Errorf("%s: %s: %s", s.name(), s.State, brief(s.Failure.Message))
		}
	}
	return passed, skipped
}

// brief is the message of a failure without the insides of an error.
func brief(message string) string {
	head, _, _ := strings.Cut(message, "\n    {")
	return head
}
