// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// TestValidate: it compares, and says what does not fit.
func TestValidate(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		volume := b.volume()
		ask := func(id string, c ...*spec.VolumeCapability) (*spec.ValidateVolumeCapabilitiesResponse, error) {
			return call(b, b.c.ValidateVolumeCapabilities, &spec.ValidateVolumeCapabilitiesRequest{VolumeId: id, VolumeCapabilities: c})
		}
		if got, err := ask(volume, mounted(writer)); err != nil || len(got.GetConfirmed().GetVolumeCapabilities()) != 1 {
			b.Errorf("%v, %v", got, err)
		}
		if got, err := ask(volume, mounted(writer), mounted(many)); err != nil || got.GetConfirmed() != nil || !strings.Contains(got.GetMessage(), "ReadWriteMany") {
			b.Errorf("%v, %v", got, err)
		}
		for id, want := range map[string]codes.Code{"": codes.InvalidArgument, "x": codes.NotFound, "ocid1.volume.oc1.iad.none": codes.NotFound} {
			_, err := ask(id, mounted(writer))
			b.refused(err, want)
		}
		_, err := ask(volume)
		b.refused(err, codes.InvalidArgument)
		for says, parameters := range map[string][2]map[string]string{
			"":                                    {{"vpusPerGB": "20", "replicas": "2"}, {"auto-tune-detached": "true"}},
			"attachment-type":                     {{"attachment-type": "nvme"}, nil},
			"auto-tune-max-vpus-per-gb":           {nil, {"auto-tune-max-vpus-per-gb": "130"}},
			`did you mean "vpusPerGB"`:            {nil, {"vpusPerGb": "20"}},
			`parameter "kms-key-id" is not known`: {nil, {"kms-key-id": "ocid1.key.oc1..k"}},
		} {
			got, err := call(b, b.c.ValidateVolumeCapabilities, &spec.ValidateVolumeCapabilitiesRequest{
				VolumeId: volume, VolumeCapabilities: []*spec.VolumeCapability{mounted(writer)}, Parameters: parameters[0], MutableParameters: parameters[1],
			})
			if err != nil || (got.GetConfirmed() != nil) != (says == "") || !strings.Contains(got.GetMessage(), says) {
				b.Errorf("%v: %v, %v; want a message with %q", parameters, got, err, says)
			}
		}
	})
}
