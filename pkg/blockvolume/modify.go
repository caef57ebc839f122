// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"maps"
	"reflect"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Modification is what becomes of a volume. Nil fields leave everything as it is.
type Modification struct {
	VPUsPerGB *int64
	// AutoTune changes each of its policies by itself.
	AutoTune AutoTuneChange
	// Tags are laid over those that the volume has: other tags stay.
	Tags oci.Tags
}

// AutoTuneChange is what becomes of oci.AutoTune. Nil fields leave everything as it is.
type AutoTuneChange struct {
	Detached *bool
	MaxVPUs  *int64
}

// Over returns what becomes of the given policies.
func (c AutoTuneChange) Over(t oci.AutoTune) oci.AutoTune {
	if c.Detached != nil {
		t.Detached = *c.Detached
	}
	if c.MaxVPUs != nil {
		t.MaxVPUs = *c.MaxVPUs
	}
	return t
}

// Modify changes performance and tags of a volume, and waits until that has taken effect. What is as wanted already is not
// written.
//
// Errors: ErrInvalid, ErrNotFound, ErrPending, ErrFailed, ErrForbidden, ErrUnavailable.
func (s *Service) Modify(ctx context.Context, id string, m Modification) (*oci.Volume, error) {
	if m.VPUsPerGB != nil {
		if err := CheckVPUs(*m.VPUsPerGB); err != nil {
			return nil, err
		}
	}
	for _, mark := range []string{TagCluster, TagOwner} {
		if _, there := m.Tags.Freeform[mark]; there {
			return nil, problem(ErrInvalid, "tag %s tells what a volume belongs to, and cannot be set", mark)
		}
	}
	return s.change(ctx, id, "modify", m.differences, m.performs)
}

// performs says whether a volume has the performance that is wanted.
func (m Modification) performs(v *oci.Volume) bool {
	return (m.VPUsPerGB == nil || v.VPUsPerGB == nil || *m.VPUsPerGB == *v.VPUsPerGB) && m.AutoTune.Over(v.AutoTune) == v.AutoTune
}

// differences is what has to be written. Tags are replaced as a whole by the API, so without those that the volume has, none
// can be written.
func (m Modification) differences(v *oci.Volume) (c oci.VolumeChange, some bool, err error) {
	if m.VPUsPerGB != nil && (v.VPUsPerGB == nil || *m.VPUsPerGB != *v.VPUsPerGB) {
		c.VPUsPerGB, some = m.VPUsPerGB, true
	}
	if wanted := m.AutoTune.Over(v.AutoTune); wanted != v.AutoTune {
		c.AutoTune, some = &wanted, true
	}
	if len(m.Tags.Freeform) > 0 {
		if v.Freeform == nil {
			return c, false, problem(ErrUnavailable, "modify volume %s: the answer of the cloud leaves out its tags", v.ID)
		}
		if all := over(v.Freeform, m.Tags.Freeform); !maps.Equal(all, v.Freeform) {
			c.Freeform, some = all, true
		}
	}
	if len(m.Tags.Defined) > 0 {
		if v.Defined == nil {
			return c, false, problem(ErrUnavailable, "modify volume %s: the answer of the cloud leaves out its defined tags", v.ID)
		}
		all := maps.Clone(v.Defined)
		for namespace, tags := range m.Tags.Defined {
			merged := maps.Clone(all[namespace])
			if merged == nil {
				merged = map[string]any{}
			}
			maps.Copy(merged, tags)
			all[namespace] = merged
		}
		if !reflect.DeepEqual(all, v.Defined) {
			c.Defined, some = all, true
		}
	}
	return c, some, nil
}
