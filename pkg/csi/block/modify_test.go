// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/oracle/oci-go-sdk/v65/core"
	"google.golang.org/grpc/codes"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// TestModify: performance and tags follow a VolumeAttributesClass, and what is right already is not written.
func TestModify(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		volume := must(b, b.c.CreateVolume, b.ask(func(r *spec.CreateVolumeRequest) { r.MutableParameters = map[string]string{"vpusPerGB": "0"} })).GetVolume().GetVolumeId()
		if v, _ := b.region.Volume(volume); *v.VpusPerGB != 0 {
			b.Errorf("made with %d units", *v.VpusPerGB)
		}
		change := &spec.ControllerModifyVolumeRequest{VolumeId: volume, MutableParameters: map[string]string{
			"vpusPerGB": "20", "oci.oraclecloud.com/freeform-tags": `{"tier":"gold"}`,
		}}
		must(b, b.c.ControllerModifyVolume, change)
		v, _ := b.region.Volume(volume)
		if *v.VpusPerGB != 20 || v.FreeformTags["tier"] != "gold" || v.FreeformTags["oci-k8s-owner"] != newName {
			b.Errorf("volume %v", v)
		}
		b.region.ResetCalls()
		must(b, b.c.ControllerModifyVolume, change)
		if w := b.writes(); len(w) != 0 {
			b.Errorf("writes %v", w)
		}
		for _, bad := range []map[string]string{{"vpusPerGB": "200"}, {"vpusPerGb": "20"}, {"oci.oraclecloud.com/freeform-tags": `{"oci-k8s-owner":"me"}`}} {
			_, err := call(b, b.c.ControllerModifyVolume, &spec.ControllerModifyVolumeRequest{VolumeId: volume, MutableParameters: bad})
			b.refused(err, codes.InvalidArgument)
		}
		_, err := call(b, b.c.ControllerModifyVolume, &spec.ControllerModifyVolumeRequest{VolumeId: "ocid1.volume.oc1.iad.none", MutableParameters: change.GetMutableParameters()})
		b.refused(err, codes.NotFound)
	})
}

// TestAutoTune: C108. What a VolumeAttributesClass does not speak of stays as it is: one policy of auto-tune does not end the other.
func TestAutoTune(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		volume := must(b, b.c.CreateVolume, b.ask(func(r *spec.CreateVolumeRequest) {
			r.Parameters = map[string]string{"auto-tune-detached": "true"}
			r.MutableParameters = map[string]string{"auto-tune-max-vpus-per-gb": "40"}
		})).GetVolume().GetVolumeId()
		policies := func() (detached bool, most int64) {
			v, _ := b.region.Volume(volume)
			for _, p := range v.AutotunePolicies {
				switch p := p.(type) {
				case core.DetachedVolumeAutotunePolicy:
					detached = true
				case core.PerformanceBasedAutotunePolicy:
					most = *p.MaxVpusPerGB
				}
			}
			return detached, most
		}
		if detached, most := policies(); !detached || most != 40 {
			b.Errorf("made with detached %t and %d units", detached, most)
		}
		for _, step := range []struct {
			class    map[string]string
			detached bool
			most     int64
		}{
			{map[string]string{"vpusPerGB": "20"}, true, 40},
			{map[string]string{"auto-tune-max-vpus-per-gb": "60"}, true, 60},
			{map[string]string{"auto-tune-detached": "false"}, false, 60},
			{map[string]string{"auto-tune-detached": "true"}, true, 60},
			{map[string]string{"auto-tune-max-vpus-per-gb": "0"}, true, 0},
		} {
			must(b, b.c.ControllerModifyVolume, &spec.ControllerModifyVolumeRequest{VolumeId: volume, MutableParameters: step.class})
			if detached, most := policies(); detached != step.detached || most != step.most {
				b.Errorf("after %v: detached %t and %d units", step.class, detached, most)
			}
		}
	})
}
