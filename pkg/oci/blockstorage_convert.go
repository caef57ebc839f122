// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

func volumeFromSDK(v core.Volume) *Volume {
	out := &Volume{
		ID:                 value(v.Id),
		CompartmentID:      value(v.CompartmentId),
		AvailabilityDomain: value(v.AvailabilityDomain),
		DisplayName:        value(v.DisplayName),
		State:              string(v.LifecycleState),
		SizeBytes:          volumeBytes(v.SizeInGBs, v.SizeInMBs),
		VPUsPerGB:          v.VpusPerGB,
		AutoTune:           autoTuneFromSDK(v.IsAutoTuneEnabled, v.AutotunePolicies),
		KMSKeyID:           value(v.KmsKeyId),
		Hydrated:           v.IsHydrated == nil || *v.IsHydrated,
		GroupID:            value(v.VolumeGroupId),
		TimeCreated:        timeValue(v.TimeCreated),
		Tags:               Tags{Freeform: v.FreeformTags, Defined: v.DefinedTags},
	}
	switch source := v.SourceDetails.(type) {
	case core.VolumeSourceFromVolumeDetails:
		out.SourceVolumeID = value(source.Id)
	case core.VolumeSourceFromVolumeBackupDetails:
		out.SourceBackupID = value(source.Id)
	}
	return out
}

func bootVolumeFromSDK(v core.BootVolume) *Volume {
	return &Volume{
		ID:                 value(v.Id),
		CompartmentID:      value(v.CompartmentId),
		AvailabilityDomain: value(v.AvailabilityDomain),
		DisplayName:        value(v.DisplayName),
		State:              string(v.LifecycleState),
		SizeBytes:          volumeBytes(v.SizeInGBs, v.SizeInMBs),
		VPUsPerGB:          v.VpusPerGB,
		AutoTune:           autoTuneFromSDK(v.IsAutoTuneEnabled, v.AutotunePolicies),
		KMSKeyID:           value(v.KmsKeyId),
		Hydrated:           v.IsHydrated == nil || *v.IsHydrated,
		GroupID:            value(v.VolumeGroupId),
		TimeCreated:        timeValue(v.TimeCreated),
		Tags:               Tags{Freeform: v.FreeformTags, Defined: v.DefinedTags},
	}
}

// volumeBytes prefers the mandatory field, which is the finer one.
func volumeBytes(gigabytes, megabytes *int64) int64 {
	if megabytes != nil {
		return *megabytes * mebibyte
	}
	return value(gigabytes) * gibibyte
}

// autoTuneFromSDK reads both forms: the flag is the older one, and means the same as a policy for detached volumes.
func autoTuneFromSDK(enabled *bool, policies []core.AutotunePolicy) AutoTune {
	tune := AutoTune{Detached: value(enabled)}
	for _, policy := range policies {
		switch p := policy.(type) {
		case core.DetachedVolumeAutotunePolicy:
			tune.Detached = true
		case core.PerformanceBasedAutotunePolicy:
			tune.MaxVPUs = value(p.MaxVpusPerGB)
		}
	}
	return tune
}

// policies is never nil: a list that is left out changes nothing.
func (t AutoTune) policies() []core.AutotunePolicy {
	list := []core.AutotunePolicy{}
	if t.Detached {
		list = append(list, core.DetachedVolumeAutotunePolicy{})
	}
	if t.MaxVPUs != 0 {
		list = append(list, core.PerformanceBasedAutotunePolicy{MaxVpusPerGB: common.Int64(t.MaxVPUs)})
	}
	return list
}

func createVolumeDetails(v *Volume) core.CreateVolumeDetails {
	d := core.CreateVolumeDetails{
		CompartmentId:      &v.CompartmentID,
		AvailabilityDomain: present(v.AvailabilityDomain),
		DisplayName:        present(v.DisplayName),
		SizeInGBs:          present(v.SizeGB()),
		VpusPerGB:          v.VPUsPerGB,
		KmsKeyId:           present(v.KMSKeyID),
		FreeformTags:       v.Freeform,
		DefinedTags:        v.Defined,
	}
	if v.AutoTune != (AutoTune{}) {
		d.AutotunePolicies = v.AutoTune.policies()
	}
	switch {
	case v.SourceVolumeID != "":
		d.SourceDetails = core.VolumeSourceFromVolumeDetails{Id: &v.SourceVolumeID}
	case v.SourceBackupID != "":
		d.SourceDetails = core.VolumeSourceFromVolumeBackupDetails{Id: &v.SourceBackupID}
	}
	return d
}

func updateVolumeDetails(c VolumeChange) core.UpdateVolumeDetails {
	d := core.UpdateVolumeDetails{
		SizeInGBs:    present(c.SizeGB),
		VpusPerGB:    c.VPUsPerGB,
		FreeformTags: c.Freeform,
		DefinedTags:  c.Defined,
	}
	if c.AutoTune != nil {
		d.AutotunePolicies = c.AutoTune.policies()
	}
	return d
}

func backupFromSDK(b core.VolumeBackup) *VolumeBackup {
	return &VolumeBackup{
		ID:            value(b.Id),
		CompartmentID: value(b.CompartmentId),
		DisplayName:   value(b.DisplayName),
		State:         string(b.LifecycleState),
		VolumeID:      value(b.VolumeId),
		GroupBackupID: value(b.VolumeGroupBackupId),
		Full:          b.Type == core.VolumeBackupTypeFull,
		SizeBytes:     volumeBytes(b.SizeInGBs, b.SizeInMBs),
		TimeCreated:   timeValue(b.TimeCreated),
		Tags:          Tags{Freeform: b.FreeformTags, Defined: b.DefinedTags},
	}
}

func groupFromSDK(g core.VolumeGroup) *VolumeGroup {
	return &VolumeGroup{
		ID:                 value(g.Id),
		CompartmentID:      value(g.CompartmentId),
		AvailabilityDomain: value(g.AvailabilityDomain),
		DisplayName:        value(g.DisplayName),
		State:              string(g.LifecycleState),
		VolumeIDs:          g.VolumeIds,
		TimeCreated:        timeValue(g.TimeCreated),
		Tags:               Tags{Freeform: g.FreeformTags, Defined: g.DefinedTags},
	}
}

func groupBackupFromSDK(b core.VolumeGroupBackup) *VolumeGroupBackup {
	return &VolumeGroupBackup{
		ID:            value(b.Id),
		CompartmentID: value(b.CompartmentId),
		DisplayName:   value(b.DisplayName),
		State:         string(b.LifecycleState),
		GroupID:       value(b.VolumeGroupId),
		BackupIDs:     b.VolumeBackupIds,
		Full:          b.Type == core.VolumeGroupBackupTypeFull,
		TimeCreated:   timeValue(b.TimeCreated),
		Tags:          Tags{Freeform: b.FreeformTags, Defined: b.DefinedTags},
	}
}
