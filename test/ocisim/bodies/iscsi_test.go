// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package bodies_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/workrequests"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/bodies"
)

// fakeTarget is a command in the place of the one that makes targets: it writes down how it was called, one line of
// sorted variables for each call, and fails while a file named after the action exists.
const fakeTarget = `#!/bin/sh
for last; do :; done
printf '%s' "$#:$last" >>"$1/calls"
env | grep ^OCISIM_ | sort | while IFS= read -r line; do printf '|%s' "$line" >>"$1/calls"; done
echo >>"$1/calls"
if [ -e "$1/fail-$last" ]; then echo "some noise" >&2; echo "no room for $OCISIM_LUN" >&2; exit 3; fi
if [ -e "$1/hang-$last" ]; then sleep 60; fi
exit 0
`

// target is a lab whose attachments are made by the fake command.
type target struct {
	*lab

	dir string
}

func newTarget(t *testing.T, options bodies.ISCSIOptions) *target {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "target")
	if err := os.WriteFile(script, []byte(fakeTarget), 0o755); err != nil {
		t.Fatal(err)
	}
	options.Command, options.Dir = []string{"/bin/sh", script, dir}, filepath.Join(dir, "volumes")
	body, err := bodies.NewISCSI(options)
	if err != nil {
		t.Fatal(err)
	}
	return &target{lab: newLab(t, body), dir: dir}
}

type targetCall struct {
	action string
	args   string
	env    map[string]string
}

// calls reads what the command was called with.
func (l *target) calls() []targetCall {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join(l.dir, "calls"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		l.t.Fatal(err)
	}
	var list []targetCall
	for line := range strings.Lines(string(text)) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		args, action, _ := strings.Cut(parts[0], ":")
		c := targetCall{action: action, args: args, env: map[string]string{}}
		for _, pair := range parts[1:] {
			name, v, _ := strings.Cut(pair, "=")
			c.env[strings.TrimPrefix(name, "OCISIM_")] = v
		}
		list = append(list, c)
	}
	return list
}

func (l *target) actions() string {
	var list []string
	for _, c := range l.calls() {
		list = append(list, c.action)
	}
	return strings.Join(list, " ")
}

func (l *target) mark(name string) (unmark func()) {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		l.t.Fatal(err)
	}
	return func() { _ = os.Remove(path) }
}

func TestISCSIProtocol(t *testing.T) {
	l := newTarget(t, bodies.ISCSIOptions{})
	volume := l.region.AddVolume(ocisim.Volume{AvailabilityDomain: l.ad, VpusPerGB: common.Int64(40)})
	id, _ := l.request(core.AttachIScsiVolumeDetails{
		InstanceId: &l.instance, VolumeId: &volume, UseChap: common.Bool(true), IsReadOnly: common.Bool(true),
		Device: common.String("/dev/oracleoci/oraclevdb"),
	})
	l.await("attachment", func() bool { return l.attachmentState(id) == core.VolumeAttachmentLifecycleStateAttached })
	a, _ := l.region.VolumeAttachment(id)
	shown, ok := a.(core.IScsiVolumeAttachment)
	if !ok {
		t.Fatalf("attachment %v", a)
	}
	calls := l.calls()
	if len(calls) != 1 {
		t.Fatalf("calls %v", calls)
	}
	env := calls[0].env
	want := map[string]string{
		"ATTACHMENT": id, "VOLUME": volume, "INSTANCE": l.instance, "TYPE": "iscsi", "DEVICE": "/dev/oracleoci/oraclevdb",
		"BYTES": fmt.Sprint(50 << 30), "READ_ONLY": "true", "LUN": "1", "IQN": *shown.Iqn,
		"PORTALS":   "169.254.2.2:3260 169.254.2.3:3260 169.254.2.4:3260",
		"CHAP_USER": *shown.ChapUsername, "CHAP_SECRET": *shown.ChapSecret,
		"FILE": env["FILE"], "SERIAL": env["SERIAL"],
	}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if calls[0].action != "attach" || calls[0].args != "2" || len(env["SERIAL"]) != 32 || *shown.Ipv4 != "169.254.2.2" {
		t.Errorf("call %v", calls[0])
	}
	if info, err := os.Stat(env["FILE"]); err != nil || info.Size() != 50<<30 {
		t.Errorf("file %v: %v", info, err)
	}

	l.resize(volume, 55)
	l.detach(id)
	calls = l.calls()
	if l.actions() != "attach resize detach" || calls[1].env["BYTES"] != fmt.Sprint(55<<30) || calls[2].env["IQN"] != *shown.Iqn {
		t.Errorf("calls %v", calls)
	}
	if info, err := os.Stat(env["FILE"]); err != nil || info.Size() != 55<<30 {
		t.Errorf("the file stays and has grown: %v %v", info, err)
	}
	// A disk of another type is the command's business as well, without a target.
	id = l.attach(l.instance, volume, "", false)
	last := l.calls()[3].env
	if _, has := last["IQN"]; has || last["TYPE"] != "paravirtualized" || last["SERIAL"] != env["SERIAL"] || last["READ_ONLY"] != "false" {
		t.Errorf("environment %v", last)
	}
	if err := l.region.Close(); err != nil {
		t.Fatal(err)
	}
	if l.actions() != "attach resize detach attach detach" || l.calls()[4].env["ATTACHMENT"] != id {
		t.Errorf("calls %v", l.calls())
	}
	if _, err := os.Stat(env["FILE"]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

// TestISCSIListen gives all targets the same addresses, which attachments then show.
func TestISCSIListen(t *testing.T) {
	l := newTarget(t, bodies.ISCSIOptions{Listen: []string{"192.0.2.1", "192.0.2.2"}})
	plain := l.volume()
	fast := l.region.AddVolume(ocisim.Volume{AvailabilityDomain: l.ad, VpusPerGB: common.Int64(120)})
	var got []string
	for _, volume := range []string{plain, fast} {
		id, _ := l.request(core.AttachIScsiVolumeDetails{InstanceId: &l.instance, VolumeId: &volume})
		a, _ := l.region.VolumeAttachment(id)
		shown, _ := a.(core.IScsiVolumeAttachment)
		got = append(got, *shown.Ipv4)
		for _, d := range shown.MultipathDevices {
			got = append(got, *d.Ipv4)
		}
	}
	if !slices.Equal(got, []string{"192.0.2.1", "192.0.2.1", "192.0.2.2"}) {
		t.Errorf("addresses %v", got)
	}
}

// TestISCSIFailures lets the command fail: the work request says why, and the states are those of before.
func TestISCSIFailures(t *testing.T) {
	l := newTarget(t, bodies.ISCSIOptions{})
	volume := l.volume()
	unmark := l.mark("fail-attach")
	id, work := l.request(core.AttachIScsiVolumeDetails{InstanceId: &l.instance, VolumeId: &volume})
	l.await("end", func() bool { return l.attachmentState(id) == core.VolumeAttachmentLifecycleStateDetached })
	r, err := l.work.ListWorkRequestErrors(t.Context(), workrequests.ListWorkRequestErrorsRequest{WorkRequestId: &work})
	if err != nil || len(r.Items) != 1 || !strings.HasSuffix(*r.Items[0].Message, "exit status 3: some noise\nno room for 1") {
		t.Errorf("errors %v: %v", r.Items, err)
	}
	unmark()
	id = l.attach(l.instance, volume, "", false)
	unmark = l.mark("fail-detach")
	if _, err := l.compute.DetachVolume(t.Context(), core.DetachVolumeRequest{VolumeAttachmentId: &id}); err != nil {
		t.Fatal(err)
	}
	l.await("return", func() bool { return l.attachmentState(id) == core.VolumeAttachmentLifecycleStateAttached })
	unmark()
	l.detach(id)
	if n := len(l.region.BodyErrors()); n != 2 {
		t.Errorf("errors %v", l.region.BodyErrors())
	}
}

func TestISCSITimeout(t *testing.T) {
	l := newTarget(t, bodies.ISCSIOptions{Timeout: 50 * time.Millisecond})
	volume := l.volume()
	unmark := l.mark("hang-attach")
	id, _ := l.request(core.AttachIScsiVolumeDetails{InstanceId: &l.instance, VolumeId: &volume})
	l.await("end", func() bool { return l.attachmentState(id) == core.VolumeAttachmentLifecycleStateDetached })
	unmark()
}

func TestNoCommand(t *testing.T) {
	if _, err := bodies.NewISCSI(bodies.ISCSIOptions{}); !errors.Is(err, bodies.ErrNoCommand) {
		t.Errorf("error %v", err)
	}
}
