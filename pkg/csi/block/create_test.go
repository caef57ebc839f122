// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// TestCreateVolume: what a class and the provisioner ask for is what the cloud has, and what the PV gets (C107, C108).
func TestCreateVolume(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		b.start(func(o *block.ControllerOptions) {
			o.Tags = oci.Tags{Freeform: map[string]string{"from": "config"}}
			o.CommonTags = oci.Tags{Freeform: map[string]string{"common": "yes"}}
		})
		time.Sleep(time.Minute)
		got := must(b, b.c.CreateVolume, b.ask(func(r *spec.CreateVolumeRequest) {
			r.Parameters = map[string]string{
				"vpusPerGB": "20", "attachment-type": "Paravirtualized", "kms-key-id": "ocid1.key.oc1..k", "auto-tune-detached": "true",
				"oci.oraclecloud.com/initial-freeform-tags-override": `{"team":"a"}`,
				"csi.storage.k8s.io/pvc/name":                        "data", "csi.storage.k8s.io/pvc/namespace": "shop.example", "csi.storage.k8s.io/pv/name": newName,
			}
		})).GetVolume()
		zone := blockvolume.ShortDomain(b.ad)
		want := &spec.Volume{
			VolumeId: got.GetVolumeId(), CapacityBytes: 50 * gib,
			VolumeContext: map[string]string{"attachment-type": "paravirtualized", "vpusPerGB": "20", "needResize": "false", "newSize": ""},
			AccessibleTopology: []*spec.Topology{
				{Segments: map[string]string{"topology.kubernetes.io/zone": zone}},
				{Segments: map[string]string{"failure-domain.beta.kubernetes.io/zone": zone}},
			},
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			b.Error(diff)
		}
		made, _ := b.region.Volume(got.GetVolumeId())
		tags := maps.Clone(made.FreeformTags)
		delete(tags, "oci-k8s-cluster")
		if diff := cmp.Diff(map[string]string{
			"team": "a", "common": "yes", "oci-k8s-owner": newName, "oci-k8s-pvc": "data", "oci-k8s-namespace": "shop.example", "oci-k8s-pv": newName,
		}, tags); diff != "" {
			b.Error(diff)
		}
		if *made.DisplayName != newName || *made.VpusPerGB != 20 || *made.KmsKeyId != "ocid1.key.oc1..k" || len(made.AutotunePolicies) != 1 {
			b.Errorf("made %+v", made)
		}
		if len(b.cluster.events) != 0 {
			b.Errorf("events %v", b.cluster.events)
		}
	})
}

// TestParameters: C108, C110. A bad value costs no call to the cloud; an unknown key is told of, or refused.
func TestParameters(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		with := func(key, value string) *spec.CreateVolumeRequest {
			return b.ask(func(r *spec.CreateVolumeRequest) { r.Parameters = map[string]string{key: value} })
		}
		for key, values := range map[string][]string{
			"vpusPerGB": {"130", "-1", "abc", "10.5"}, "attachment-type": {"emulated", "nvme"}, "auto-tune-detached": {"perhaps"},
			"auto-tune-max-vpus-per-gb":                          {"130"},
			"oci.oraclecloud.com/initial-freeform-tags-override": {"{", `{"a":{"b":"c"}}`, "[]"},
			"oci.oraclecloud.com/initial-defined-tags-override":  {`{"a":"b"}`},
		} {
			for _, value := range values {
				_, err := call(b, b.c.CreateVolume, with(key, value))
				b.refused(err, codes.InvalidArgument)
				if err != nil && !strings.Contains(err.Error(), key) {
					b.Errorf("%s=%s: the error does not name it: %v", key, value, err)
				}
			}
		}
		strange := map[string]string{
			"attachmentType": "attachment-type", "kms-key": "kms-key-id", "VpusPerGB": "vpusPerGB", "fstype": "csi.storage.k8s.io/fstype", "replicas": "remove it",
		}
		b.start(func(o *block.ControllerOptions) { o.StrictParameters = true })
		for key, says := range strange {
			_, err := call(b, b.c.CreateVolume, with(key, "x"))
			b.refused(err, codes.InvalidArgument)
			if err != nil && !strings.Contains(err.Error(), says) {
				b.Errorf("%s: %v, want it to name %s", key, err, says)
			}
		}
		if n := len(b.region.Calls()); n != 0 {
			b.Errorf("%d calls to the cloud for requests that are refused", n)
		}
		b.start()
		time.Sleep(time.Minute)
		must(b, b.c.CreateVolume, b.ask(func(r *spec.CreateVolumeRequest) {
			r.Parameters = map[string]string{"csi.storage.k8s.io/whatever": "x", "vpusPerGB": "", "kms-key-id": ""}
			for key := range strange {
				r.Parameters[key] = "x"
			}
		}))
		if len(b.cluster.events) != len(strange) {
			b.Errorf("%d events, want %d: %v", len(b.cluster.events), len(strange), b.cluster.events)
		}
		for key, says := range strange {
			if !strings.Contains(strings.Join(b.cluster.events, "\n"), says) || !strings.HasPrefix(b.cluster.events[0], "shop/data UnknownParameter: StorageClass: ") {
				b.Errorf("%s is not told of: %v", key, b.cluster.events)
			}
		}
	})
}

// TestSizes: C083.
func TestSizes(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		for _, tt := range []struct {
			required, limit, want int64
			code                  codes.Code
		}{
			{0, 0, 50 * gib, codes.OK}, {gib, 0, 50 * gib, codes.OK}, {50_000_000_000, 0, 50 * gib, codes.OK}, {50*gib + 1, 0, 51 * gib, codes.OK},
			{70 * gib, 100 * gib, 70 * gib, codes.OK}, {32 << 40, 0, 32 << 40, codes.OK}, {33 << 40, 0, 0, codes.OutOfRange},
			{0, 10 * gib, 0, codes.OutOfRange}, {100 * gib, 70 * gib, 0, codes.OutOfRange}, {60*gib + 1, 60*gib + 2, 0, codes.OutOfRange},
		} {
			answer, err := call(b, b.c.CreateVolume, b.ask(func(r *spec.CreateVolumeRequest) {
				r.Name += time.Now().String()
				r.CapacityRange = &spec.CapacityRange{RequiredBytes: tt.required, LimitBytes: tt.limit}
			}))
			if codeOf(err) != tt.code || answer.GetVolume().GetCapacityBytes() != tt.want {
				b.Errorf("%d to %d: %d bytes, %v; want %d, %s", tt.required, tt.limit, answer.GetVolume().GetCapacityBytes(), err, tt.want, tt.code)
			}
		}
		if got := must(b, b.c.CreateVolume, b.ask(func(r *spec.CreateVolumeRequest) { r.CapacityRange = nil })).GetVolume().GetCapacityBytes(); got != 50*gib {
			b.Errorf("%d bytes without a range", got)
		}
	})
}

// TestAccessModes: C103.
func TestAccessModes(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		const readers = spec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
		for name, tt := range map[string]struct {
			use  []*spec.VolumeCapability
			code codes.Code
		}{
			"mount RWO":         {[]*spec.VolumeCapability{mounted(writer)}, codes.OK},
			"mount RWOP":        {[]*spec.VolumeCapability{mounted(spec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER)}, codes.OK},
			"block RWO":         {[]*spec.VolumeCapability{device(writer)}, codes.OK},
			"block RWX":         {[]*spec.VolumeCapability{device(many)}, codes.OK},
			"mount RWX":         {[]*spec.VolumeCapability{mounted(many)}, codes.InvalidArgument},
			"mount ROX":         {[]*spec.VolumeCapability{mounted(readers)}, codes.InvalidArgument},
			"block ROX":         {[]*spec.VolumeCapability{device(readers)}, codes.InvalidArgument},
			"both":              {[]*spec.VolumeCapability{device(writer), mounted(writer)}, codes.InvalidArgument},
			"none":              {nil, codes.InvalidArgument},
			"empty":             {[]*spec.VolumeCapability{{}}, codes.InvalidArgument},
			"no access mode":    {[]*spec.VolumeCapability{{AccessType: mounted(writer).GetAccessType()}}, codes.InvalidArgument},
			"no type, but mode": {[]*spec.VolumeCapability{{AccessMode: mounted(writer).GetAccessMode()}}, codes.InvalidArgument},
		} {
			_, err := call(b, b.c.CreateVolume, b.ask(func(r *spec.CreateVolumeRequest) { r.Name, r.VolumeCapabilities = "csi-"+name, tt.use }))
			if codeOf(err) != tt.code {
				b.Errorf("%s: %v, want %s", name, err, tt.code)
			}
		}
		_, err := call(b, b.c.CreateVolume, b.ask(func(r *spec.CreateVolumeRequest) {
			r.VolumeCapabilities, r.Parameters = []*spec.VolumeCapability{device(writer)}, map[string]string{"vpusPerGB": "30"}
		}))
		b.refused(err, codes.InvalidArgument)
	})
}

// TestTopology: the first preferred domain that has room is taken, and no other (contract storage.md §2.5).
func TestTopology(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		term := func(key, value string) *spec.Topology { return &spec.Topology{Segments: map[string]string{key: value}} }
		near, far := blockvolume.ShortDomain(b.ad), blockvolume.ShortDomain(b.elsewhere)
		for name, tt := range map[string]struct {
			of   *spec.TopologyRequirement
			want string
			code codes.Code
		}{
			"preferred first":   {&spec.TopologyRequirement{Preferred: []*spec.Topology{term(block.TopologyZone, far)}, Requisite: []*spec.Topology{term(block.TopologyZone, near)}}, b.elsewhere, codes.OK},
			"requisite":         {&spec.TopologyRequirement{Requisite: []*spec.Topology{term(block.TopologyLegacyZone, far)}}, b.elsewhere, codes.OK},
			"in another case":   {&spec.TopologyRequirement{Preferred: []*spec.Topology{term(block.TopologyZone, strings.ToLower(far))}}, b.elsewhere, codes.OK},
			"a part of a name":  {&spec.TopologyRequirement{Preferred: []*spec.Topology{term(block.TopologyZone, far[1:])}}, "", codes.InvalidArgument},
			"no known key":      {&spec.TopologyRequirement{Preferred: []*spec.Topology{term("rack", "7")}}, "", codes.InvalidArgument},
			"nothing":           {nil, "", codes.InvalidArgument},
			"one without room":  {&spec.TopologyRequirement{Preferred: []*spec.Topology{term(block.TopologyZone, near)}, Requisite: []*spec.Topology{term(block.TopologyZone, far)}}, "", codes.ResourceExhausted},
			"then the next one": {&spec.TopologyRequirement{Preferred: []*spec.Topology{term(block.TopologyZone, near), term(block.TopologyZone, far)}}, b.elsewhere, codes.OK},
		} {
			var fault func()
			if strings.Contains(name, "room") || strings.Contains(name, "next") {
				fault = b.region.Fault(ocisim.Fault{Operation: "CreateVolume", Status: 500, Code: "InternalError", Message: "Out of host capacity.", Nth: 1, Times: 1})
			}
			answer, err := call(b, b.c.CreateVolume, b.ask(func(r *spec.CreateVolumeRequest) { r.Name, r.AccessibilityRequirements = "csi-"+name, tt.of }))
			if fault != nil {
				fault()
			}
			made, _ := b.region.Volume(answer.GetVolume().GetVolumeId())
			if codeOf(err) != tt.code || err == nil && *made.AvailabilityDomain != tt.want {
				b.Errorf("%s: in %v, %v; want %s, %s", name, made, err, tt.want, tt.code)
			}
		}
		b.start(func(o *block.ControllerOptions) { o.IPv6SingleStack = true })
		time.Sleep(time.Minute)
		b.region.ResetCalls()
		must(b, b.c.CreateVolume, b.ask(func(r *spec.CreateVolumeRequest) {
			r.Name = "csi-6"
			r.AccessibilityRequirements = &spec.TopologyRequirement{Preferred: []*spec.Topology{{Segments: map[string]string{
				block.TopologyZone: far, block.TopologyFullDomain: strings.Replace(b.elsewhere, ":", ".", 1),
			}}}}
		}))
		if n := b.region.Counts()["identity.ListAvailabilityDomains"]; n != 0 {
			b.Errorf("%d calls of the identity service, which a cluster without IPv4 cannot reach", n)
		}
	})
}

// TestSources: C101, C102.
func TestSources(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		volume := b.volume(func(v *ocisim.Volume) { v.SizeInGBs = 100 })
		backup := b.region.AddVolumeBackup(ocisim.VolumeBackup{Volume: volume})
		foreign := b.volume(func(v *ocisim.Volume) { v.AvailabilityDomain = b.elsewhere })
		snapshot := func(id string) *spec.VolumeContentSource {
			return &spec.VolumeContentSource{Type: &spec.VolumeContentSource_Snapshot{Snapshot: &spec.VolumeContentSource_SnapshotSource{SnapshotId: id}}}
		}
		clone := func(id string) *spec.VolumeContentSource {
			return &spec.VolumeContentSource{Type: &spec.VolumeContentSource_Volume{Volume: &spec.VolumeContentSource_VolumeSource{VolumeId: id}}}
		}
		for name, tt := range map[string]struct {
			source *spec.VolumeContentSource
			size   int64
			code   codes.Code
			grow   string
		}{
			"restore":              {snapshot(backup), 100, codes.OK, "false"},
			"restore larger":       {snapshot(backup), 200, codes.OK, "true"},
			"restore smaller":      {snapshot(backup), 50, codes.OutOfRange, ""},
			"clone":                {clone(volume), 100, codes.OK, "false"},
			"clone larger":         {clone(volume), 150, codes.OK, "true"},
			"clone from elsewhere": {clone(foreign), 50, codes.ResourceExhausted, ""}, // so that the scheduler looks for a Node where the source is
			"no such backup":       {snapshot("ocid1.volumebackup.oc1.phx.none"), 100, codes.NotFound, ""},
			"no such volume":       {clone("ocid1.volume.oc1.phx.none"), 100, codes.NotFound, ""},
			"no ID of a volume":    {clone("pvc-1"), 100, codes.NotFound, ""},
			"boot volume":          {clone("ocid1.bootvolume.oc1.phx.b"), 100, codes.InvalidArgument, ""},
			"of another kind":      {&spec.VolumeContentSource{}, 100, codes.InvalidArgument, ""},
		} {
			b.region.ResetCalls()
			ask := b.ask(func(r *spec.CreateVolumeRequest) {
				r.Name, r.VolumeContentSource, r.CapacityRange.RequiredBytes = "csi-"+name, tt.source, tt.size*gib
			})
			answer, err := call(b, b.c.CreateVolume, ask)
			for i := 0; i < 3 && codeOf(err) == codes.Aborted; i++ { // the content may take longer than a sidecar waits
				answer, err = call(b, b.c.CreateVolume, ask)
			}
			got := answer.GetVolume()
			kind, _, _ := strings.Cut(name, " ")
			switch {
			case codeOf(err) != tt.code:
				b.Errorf("%s: %v, want %s", name, err, tt.code)
			case err != nil && len(b.writes()) != 0:
				b.Errorf("%s: refused, after %v", name, b.writes())
			case err == nil && (got.GetVolumeContext()["needResize"] != tt.grow || got.GetCapacityBytes() != tt.size*gib || got.GetContentSource() == nil ||
				got.GetVolumeContext()["contentSource"] != map[string]string{"restore": "snapshot", "clone": "volume"}[kind]):
				b.Errorf("%s: %v", name, got)
			}
		}
	})
}

// TestSameName: C085. The same name with one other parameter is no other volume, and never a wrong one.
func TestSameName(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		first := must(b, b.c.CreateVolume, b.ask()).GetVolume()
		b.region.ResetCalls()
		if again := must(b, b.c.CreateVolume, b.ask()).GetVolume(); again.GetVolumeId() != first.GetVolumeId() {
			b.Error("the same request made another volume")
		}
		for name, change := range map[string]func(*spec.CreateVolumeRequest){
			"size": func(r *spec.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 100 * gib },
			"zone": func(r *spec.CreateVolumeRequest) {
				r.AccessibilityRequirements.Preferred[0].Segments[block.TopologyZone] = blockvolume.ShortDomain(b.elsewhere)
			},
			"key":  func(r *spec.CreateVolumeRequest) { r.Parameters = map[string]string{"kms-key-id": "ocid1.key.oc1..k"} },
			"vpus": func(r *spec.CreateVolumeRequest) { r.Parameters = map[string]string{"vpusPerGB": "20"} },
		} {
			_, err := call(b, b.c.CreateVolume, b.ask(change))
			if codeOf(err) != codes.AlreadyExists {
				b.Errorf("another %s: %v", name, err)
			}
		}
		if w := b.writes(); len(w) != 0 {
			b.Errorf("writes %v", w)
		}
	})
}

// TestFaulty: C086. A volume that comes out FAULTY is a final error, and goes; the next request makes a good one.
func TestFaulty(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		b.region.Fault(ocisim.Fault{Operation: "CreateVolume", FailWork: true, Nth: 1, Times: 1})
		_, err := call(b, b.c.CreateVolume, b.ask())
		b.refused(err, codes.Internal)
		time.Sleep(time.Minute)
		good := must(b, b.c.CreateVolume, b.ask()).GetVolume().GetVolumeId()
		for _, v := range b.region.Volumes() {
			if *v.Id != good && v.LifecycleState != core.VolumeLifecycleStateTerminated && v.LifecycleState != core.VolumeLifecycleStateTerminating {
				b.Errorf("%s is left, %s", *v.Id, v.LifecycleState)
			}
		}
	})
}

// TestDeleteVolume: C114.
func TestDeleteVolume(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		remove := func(id string) error {
			_, err := call(b, b.c.DeleteVolume, &spec.DeleteVolumeRequest{VolumeId: id})
			return err
		}
		attached := b.volume()
		must(b, b.c.ControllerPublishVolume, publish(attached, "node-1"))
		b.refused(remove(attached), codes.FailedPrecondition)
		plain := b.volume()
		allow := b.region.Deny(ocisim.Policy{ResourceType: "volumes"})
		b.refused(remove(plain), codes.PermissionDenied)
		allow()
		for _, id := range []string{plain, plain, "ocid1.volume.oc1.phx.none", "no-ocid"} {
			if err := remove(id); err != nil {
				b.Errorf("%s: %v", id, err)
			}
		}
		b.refused(remove(""), codes.InvalidArgument)
	})
}

// TestThrottledCreate: C111. What lasts longer than the caller waits is not ResourceExhausted, for which the provisioner would go elsewhere.
func TestThrottledCreate(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		end := b.region.Fault(ocisim.Fault{Operation: "CreateVolume", Status: 429, Code: "TooManyRequests", Nth: 1, Times: 10000})
		_, err := call(b, b.c.CreateVolume, b.ask())
		if got := codeOf(err); got != codes.Unavailable && got != codes.DeadlineExceeded && got != codes.Aborted {
			b.Errorf("code %s: %v", got, err)
		}
		end()
		must(b, b.c.CreateVolume, b.ask())
	})
}

func publish(volume, node string, change ...func(*spec.ControllerPublishVolumeRequest)) *spec.ControllerPublishVolumeRequest {
	r := &spec.ControllerPublishVolumeRequest{VolumeId: volume, NodeId: node, VolumeCapability: mounted(writer), VolumeContext: map[string]string{
		"attachment-type": "", "vpusPerGB": "10", "needResize": "false", "newSize": "",
	}}
	for _, f := range change {
		f(r)
	}
	return r
}

// TestCreateInDoubt: C084. While it cannot be seen what there is, a request is not over: the provisioner would forget a volume that it has asked
// for before.
func TestCreateInDoubt(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		allow := b.region.Deny(ocisim.Policy{ResourceType: "volumes", Verb: "inspect"})
		_, err := call(b, b.c.CreateVolume, b.ask())
		b.refused(err, codes.Aborted)
		allow()
		b.region.Foreign().After(ocisim.Trigger{Operation: "CreateVolume"}, func(*ocisim.Foreign, ocisim.Call) { allow = b.region.Deny(ocisim.Policy{ResourceType: "volumes"}) })
		_, err = call(b, b.c.CreateVolume, b.ask())
		if got := codeOf(err); got != codes.Aborted && got != codes.DeadlineExceeded {
			b.Errorf("code %s: %v", got, err)
		}
		allow()
		must(b, b.c.CreateVolume, b.ask())
		if n := len(b.region.Volumes()); n != 1 {
			b.Errorf("%d volumes", n)
		}
	})
}
