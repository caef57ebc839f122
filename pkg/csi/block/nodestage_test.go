// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package block_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
	"github.com/oracle/oci-cloud-controller-manager/pkg/host"
)

const testIQN = "iqn.2015-12.com.oracleiaas:0123"

// oldISCSI is the publish context of an iSCSI attachment as release v1.35 has it (contract storage.md §3.1).
func oldISCSI(changes ...string) map[string]string {
	return with(map[string]string{
		"attachment-type": "iscsi", "iscci_iqn": testIQN, "iscsi_ip": "169.254.2.2", "iscsi_port": "3260",
		"device": "/dev/oracleoci/oraclevdb", "vpusPerGB": "10", "needResize": "false", "newSize": "",
		"multipathEnabled": "false", "multipathDevices": "",
	}, changes)
}

// oldParavirtualized is that of a paravirtualized one.
func oldParavirtualized(changes ...string) map[string]string {
	return with(map[string]string{
		"attachment-type": "paravirtualized", "device": "/dev/oracleoci/oraclevdb", "vpusPerGB": "10", "needResize": "",
		"newSize": "", "multipathEnabled": "false",
	}, changes)
}

// with sets keys; a value of "-" removes one.
func with(c map[string]string, changes []string) map[string]string {
	for i := 0; i+1 < len(changes); i += 2 {
		if c[changes[i]] = changes[i+1]; changes[i+1] == "-" {
			delete(c, changes[i])
		}
	}
	return c
}

func target(address string) host.Target {
	return host.Target{IQN: testIQN, Portal: netip.MustParseAddrPort(address), LUN: -1}
}

func iscsi(changes ...func(*host.StageRequest)) host.StageRequest {
	return request(host.Attachment{Type: host.ISCSI, Targets: []host.Target{target("169.254.2.2:3260")}, Device: "/dev/oracleoci/oraclevdb"}, changes)
}

func paravirtualized(changes ...func(*host.StageRequest)) host.StageRequest {
	return request(host.Attachment{Type: host.Paravirtualized, Device: "/dev/oracleoci/oraclevdb"}, changes)
}

func request(a host.Attachment, changes []func(*host.StageRequest)) host.StageRequest {
	r := host.StageRequest{
		Volume: nodeVolume, Staging: "/staging", Attachment: a,
		Filesystem: &host.Filesystem{Type: host.Ext4, Format: host.FormatIfBlank},
	}
	for _, f := range changes {
		f(&r)
	}
	return r
}

// TestWhatIsStaged: what becomes of publish contexts, volume contexts and capabilities, of this release and of v1.35. C101, C103.
func TestWhatIsStaged(t *testing.T) {
	restored := func(r *host.StageRequest) { r.Filesystem.Format, r.Filesystem.Grow = host.FormatNever, true }
	noFilesystem := func(r *host.StageRequest) { r.Filesystem = nil }
	const multipath = `[{"ipv4":"169.254.2.3","iqn":"` + testIQN + `","port":3260},{"ipv4":"169.254.2.2","iqn":"` + testIQN + `","port":3260}]`
	for name, c := range map[string]struct {
		publish, volume map[string]string
		capability      *spec.VolumeCapability
		labels          []string
		want            host.StageRequest
	}{
		"iSCSI":                  {publish: oldISCSI(), want: iscsi()},
		"no type is iSCSI":       {publish: oldISCSI("attachment-type", ""), want: iscsi()},
		"no device":              {publish: oldISCSI("device", "-"), want: iscsi(func(r *host.StageRequest) { r.Attachment.Device = "" })},
		"paravirtualized":        {publish: oldParavirtualized(), want: paravirtualized()},
		"with the size":          {publish: oldISCSI("size", "53687091200"), want: iscsi(func(r *host.StageRequest) { r.Attachment.Size = 50 << 30 })},
		"20 units":               {publish: oldISCSI("vpusPerGB", "20"), want: iscsi(func(r *host.StageRequest) { r.Attachment.QueueDepth = 128 })},
		"21 units":               {publish: oldISCSI("vpusPerGB", "21"), want: iscsi()},
		"CHAP":                   {publish: oldISCSI(block.ContextCHAPUser, "u", block.ContextCHAPSecret, "s"), want: iscsi(func(r *host.StageRequest) { r.Attachment.CHAP = &host.CHAP{User: "u", Secret: "s"} })},
		"larger than its source": {publish: oldISCSI("needResize", "true", "newSize", "1"), want: iscsi(restored)},
		"restored":               {publish: oldISCSI(), volume: map[string]string{block.ContextContentSource: "snapshot"}, want: iscsi(restored)},
		"formatPolicy never":     {publish: oldISCSI(), volume: map[string]string{"formatPolicy": "never"}, want: iscsi(func(r *host.StageRequest) { r.Filesystem.Format = host.FormatNever })},
		"formatPolicy ifBlank":   {publish: oldISCSI(), volume: map[string]string{"formatPolicy": "ifBlank"}, want: iscsi()},
		"raw block":              {publish: oldISCSI(), capability: capability(raw), want: iscsi(noFilesystem)},
		"raw block of many":      {publish: oldISCSI(), capability: capability(raw, mode(spec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)), want: iscsi(noFilesystem)},
		"raw block, no mode":     {publish: oldISCSI(), capability: capability(raw, func(c *spec.VolumeCapability) { c.AccessMode = nil }), want: iscsi(noFilesystem)},
		"read by many":           {publish: oldISCSI(), capability: capability(mode(spec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY)), want: iscsi(func(r *host.StageRequest) { r.Filesystem.ReadOnly = true })},
		"xfs":                    {publish: oldISCSI(), capability: capability(fsType("xfs")), want: iscsi(func(r *host.StageRequest) { r.Filesystem.Type = host.XFS })},
		"an unknown one is ext4": {publish: oldISCSI(), capability: capability(fsType("zfs")), want: iscsi()},
		"mount options": {
			publish: oldISCSI(), capability: capability(func(c *spec.VolumeCapability) { c.GetMount().MountFlags = []string{"noatime"} }),
			want: iscsi(func(r *host.StageRequest) { r.Filesystem.Options = []string{"noatime"} }),
		},
		"multipath": {
			publish: oldISCSI("multipathEnabled", "true", "multipathDevices", multipath, "vpusPerGB", "30"),
			want: iscsi(func(r *host.StageRequest) {
				r.Attachment.Multipath = true
				r.Attachment.Targets = []host.Target{target("169.254.2.2:3260"), target("169.254.2.3:3260"), target("169.254.2.2:3260")}
			}),
		},
		"IPv6 preferred": {
			publish: oldISCSI(), labels: []string{"oci.oraclecloud.com/ip-family-preferred", "ipv6"},
			want: iscsi(func(r *host.StageRequest) {
				r.Attachment.Targets = []host.Target{target("[fd00:c1::a9fe:202]:3260")}
			}),
		},
		"IPv4 preferred": {
			publish: oldISCSI(), labels: []string{"oci.oraclecloud.com/ip-family-preferred", "IPv4", "oci.oraclecloud.com/ip-family-ipv6", "true"},
			want: iscsi(),
		},
		"IPv6 alone": {
			publish: oldISCSI(), labels: []string{"oci.oraclecloud.com/ip-family-ipv6", "true"},
			want: iscsi(func(r *host.StageRequest) {
				r.Attachment.Targets = []host.Target{target("[fd00:c1::a9fe:202]:3260")}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machine{}
			o := nodeOptions(m)
			o.Labels = labels(c.labels...)
			if c.capability == nil {
				c.capability = capability()
			}
			_, err := block.NewNode(o).NodeStageVolume(t.Context(), &spec.NodeStageVolumeRequest{
				VolumeId: nodeVolume, StagingTargetPath: "/staging", PublishContext: c.publish, VolumeContext: c.volume, VolumeCapability: c.capability,
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]host.StageRequest{c.want}, m.staged, cmpopts.EquateComparable(netip.AddrPort{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("staged (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsNotStaged: requests that can never be done are InvalidArgument, and say why. C103.
func TestWhatIsNotStaged(t *testing.T) {
	m := &machine{}
	client := serveNode(t, nodeOptions(m))
	for name, c := range map[string]struct {
		publish, volume map[string]string
		capability      *spec.VolumeCapability
		says            string
	}{
		"not attached":           {says: "publish context"},
		"no IQN":                 {publish: oldISCSI("iscci_iqn", "-"), says: "iscci_iqn"},
		"no address":             {publish: oldISCSI("iscsi_ip", ""), says: "iscsi_ip"},
		"no port":                {publish: oldISCSI("iscsi_port", "-"), says: "iscsi_port"},
		"a port of letters":      {publish: oldISCSI("iscsi_port", "x"), says: "iscsi_port"},
		"a port too high":        {publish: oldISCSI("iscsi_port", "65536"), says: "65536"},
		"no such address":        {publish: oldISCSI("iscsi_ip", "169.254.2.2.2"), says: "169.254.2.2.2"},
		"paths that are no JSON": {publish: oldISCSI("multipathEnabled", "true", "multipathDevices", "{"), says: "multipathDevices"},
		"no device path":         {publish: oldParavirtualized("device", ""), says: "device"},
		"emulated":               {publish: oldISCSI("attachment-type", "emulated"), says: "emulated"},
		"a size of letters":      {publish: oldISCSI("size", "50Gi"), says: "size"},
		"a policy misspelt":      {publish: oldISCSI(), volume: map[string]string{"formatPolicy": "nevr"}, says: "formatPolicy"},
		"a file system of many":  {publish: oldISCSI(), capability: capability(mode(spec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)), says: "volumeMode Block"},
		"neither block nor file": {publish: oldISCSI(), capability: &spec.VolumeCapability{}, says: "access type"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.capability == nil {
				c.capability = capability()
			}
			_, err := client.NodeStageVolume(t.Context(), &spec.NodeStageVolumeRequest{
				VolumeId: nodeVolume, StagingTargetPath: "/staging", PublishContext: c.publish, VolumeContext: c.volume, VolumeCapability: c.capability,
			})
			refusedWith(t, err, codes.InvalidArgument, c.says)
		})
	}
	if len(m.staged) > 0 {
		t.Errorf("staged %+v", m.staged)
	}
}

// TestWhatIsPublished: a bind mount with the options of the request. C104.
func TestWhatIsPublished(t *testing.T) {
	plain := host.PublishRequest{Volume: nodeVolume, Staging: "/staging", Target: "/target"}
	for name, c := range map[string]struct {
		readOnly   bool
		capability *spec.VolumeCapability
		change     func(*host.PublishRequest)
	}{
		"a file system":    {capability: capability(), change: func(*host.PublishRequest) {}},
		"read-only":        {capability: capability(), readOnly: true, change: func(r *host.PublishRequest) { r.ReadOnly = true }},
		"read by many":     {capability: capability(mode(spec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY)), change: func(r *host.PublishRequest) { r.ReadOnly = true }},
		"raw block":        {capability: capability(raw), change: func(r *host.PublishRequest) { r.Block = true }},
		"ReadWriteOncePod": {capability: capability(mode(spec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER)), change: func(r *host.PublishRequest) { r.Exclusive = true }},
		"with mount options": {
			capability: capability(func(c *spec.VolumeCapability) { c.GetMount().MountFlags = []string{"noexec"} }),
			change:     func(r *host.PublishRequest) { r.Options = []string{"noexec"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, want := &machine{}, plain
			c.change(&want)
			_, err := block.NewNode(nodeOptions(m)).NodePublishVolume(t.Context(), &spec.NodePublishVolumeRequest{
				VolumeId: nodeVolume, StagingTargetPath: "/staging", TargetPath: "/target", VolumeCapability: c.capability, Readonly: c.readOnly,
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]host.PublishRequest{want}, m.published); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLabelsUnknown: an iSCSI volume is not staged by a guess when the API has never answered, and is when it has. C087.
func TestLabelsUnknown(t *testing.T) {
	m := &machine{}
	o := nodeOptions(m)
	failing := errors.New("no route to host")
	fail := true
	o.Labels = func(context.Context) (map[string]string, error) {
		if fail {
			return nil, failing
		}
		return map[string]string{"oci.oraclecloud.com/ip-family-preferred": "IPv6"}, nil
	}
	client := serveNode(t, o)
	stage := func(publish map[string]string) error {
		_, err := client.NodeStageVolume(t.Context(), &spec.NodeStageVolumeRequest{
			VolumeId: nodeVolume, StagingTargetPath: "/staging", PublishContext: publish, VolumeCapability: capability(),
		})
		return err
	}
	refusedWith(t, stage(oldISCSI()), codes.Unavailable, "no route to host")
	if err := stage(oldParavirtualized()); err != nil {
		t.Errorf("a paravirtualized volume needs no label: %v", err)
	}
	fail = false
	if err := stage(oldISCSI()); err != nil {
		t.Fatal(err)
	}
	if got := m.staged[len(m.staged)-1].Attachment.Targets[0].Portal; got != netip.MustParseAddrPort("[fd00:c1::a9fe:202]:3260") {
		t.Errorf("portal %s", got)
	}
}

// TestCodesOfTheNode: each error of the host has the code that lets the kubelet do the right thing, and keeps its text.
func TestCodesOfTheNode(t *testing.T) {
	m := &machine{}
	client := serveNode(t, nodeOptions(m))
	for want, errs := range map[codes.Code][]error{
		codes.Aborted:            {&host.BusyError{Volume: nodeVolume, Doing: "umount"}},
		codes.InvalidArgument:    {host.ErrInvalid},
		codes.Unavailable:        {host.ErrNotProven, host.ErrNoDaemon, host.ErrTooSmall, host.ErrNotLoggedOut, &host.MissingToolError{Tool: "mkfs.xfs"}, fmt.Errorf("%w; %w", host.ErrNotBlank, host.ErrLeftBehind)},
		codes.NotFound:           {host.ErrNotMounted, host.ErrOtherVolume},
		codes.FailedPrecondition: {host.ErrNotBlank, host.ErrNotFormatted, host.ErrOtherFilesystem, host.ErrDamaged, host.ErrInUse, host.ErrNotStaged, host.ErrOtherMount, host.ErrPublished, host.ErrCredentials},
		codes.DeadlineExceeded:   {fmt.Errorf("%w: %w", context.DeadlineExceeded, &host.BusyError{})},
		codes.Internal:           {&host.CommandError{Argv: []string{"mount"}}},
	} {
		for _, err := range errs {
			m.err = fmt.Errorf("volume: %w", err)
			_, got := client.NodeUnstageVolume(t.Context(), &spec.NodeUnstageVolumeRequest{VolumeId: nodeVolume, StagingTargetPath: "/staging"})
			refusedWith(t, got, want, err.Error())
		}
	}
}

// TestRequestsThatLackSomething: each is InvalidArgument, but for a path without which nothing can be staged.
func TestRequestsThatLackSomething(t *testing.T) {
	n := serveNode(t, nodeOptions(&machine{}))
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"stage": func() error {
			_, err := n.NodeStageVolume(ctx, &spec.NodeStageVolumeRequest{VolumeId: "v"})
			return err
		},
		"unstage": func() error {
			_, err := n.NodeUnstageVolume(ctx, &spec.NodeUnstageVolumeRequest{VolumeId: "v"})
			return err
		},
		"publish": func() error {
			_, err := n.NodePublishVolume(ctx, &spec.NodePublishVolumeRequest{VolumeId: "v"})
			return err
		},
		"unpublish": func() error {
			_, err := n.NodeUnpublishVolume(ctx, &spec.NodeUnpublishVolumeRequest{VolumeId: "v"})
			return err
		},
		"stats": func() error {
			_, err := n.NodeGetVolumeStats(ctx, &spec.NodeGetVolumeStatsRequest{VolumePath: "/p"})
			return err
		},
		"expand": func() error {
			_, err := n.NodeExpandVolume(ctx, &spec.NodeExpandVolumeRequest{VolumeId: "v"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { refusedWith(t, call(), codes.InvalidArgument) })
	}
	_, err := n.NodePublishVolume(ctx, &spec.NodePublishVolumeRequest{VolumeId: "v", TargetPath: "/p", VolumeCapability: capability()})
	refusedWith(t, err, codes.FailedPrecondition, "staging path")
	_, err = n.NodeGetVolumeStats(ctx, &spec.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: "some/path"})
	refusedWith(t, err, codes.NotFound)
}
