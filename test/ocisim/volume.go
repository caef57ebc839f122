// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"slices"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// Sizes of volumes, in GB (which are GiB), and their performance, in units per GB.
const (
	minVolumeGBs     = 50
	maxVolumeGBs     = 32 * 1024
	defaultVolumeGBs = 1024
	defaultVPUs      = 10
	maxVPUs          = 120
	// ultraHighVPUs is where ultra high performance begins, which needs several paths.
	ultraHighVPUs = 30
	maxBlockName  = 255
)

const mbsPerGB = 1024

func volumeOperations() []Operation {
	return blockOperations{
		noun: "Volume", plural: "Volumes", path: "volumes", param: "volumeId", kind: volumes.kindInfo, update: Use,
		listQuery: "availabilityDomain,compartmentId,limit,page,displayName,sortBy,sortOrder,volumeGroupId,clusterPlacementGroupId,lifecycleState",
		partial:   "no replicas, no restores of differences, no backup policies", updatePartial: "no replicas",
		list: listVolumes, creates: createVolume, updates: updateVolume, deletes: deleteVolume,
	}.table()
}

// listVolumes lists a compartment or a volume group; which of the two is up to the caller.
func listVolumes(c *call) (*answer, error) {
	key := c.query.Get("volumeGroupId")
	if key == "" {
		key = c.query.Get("compartmentId")
	}
	if key == "" {
		return nil, errMissing("compartmentId")
	}
	placement := c.query.Get("clusterPlacementGroupId")
	return c.list(listing{kind: volumes.kindInfo, key: key, match: func(res *resource) bool {
		return placement == "" || value(volumes.of(res).ClusterPlacementGroupId) == placement
	}})
}

// volumeSource is what a new volume gets its content from.
type volumeSource struct {
	id, domain string
	gigabytes  int64
	restore    bool // a backup, not a clone
}

func createVolume(c *call) (*answer, error) {
	d, err := decode[core.CreateVolumeDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	v, source, err := c.newVolume(d)
	if err != nil {
		return nil, err
	}
	volumes.insert(c.cloud, v)
	c.provisionVolume(value(v.Id), source, c.failure != nil)
	return c.created(volumes.lookup(c.cloud, value(v.Id))), nil
}

// newVolume checks a create and makes the model of the volume.
func (c *call) newVolume(d *core.CreateVolumeDetails) (*core.Volume, volumeSource, error) {
	source, err := c.volumeSource(d)
	if err != nil {
		return nil, source, err
	}
	domain, err := c.volumeDomain(value(d.AvailabilityDomain), source)
	if err != nil {
		return nil, source, err
	}
	size, err := volumeSize(d.SizeInGBs, d.SizeInMBs, source)
	if err != nil {
		return nil, source, err
	}
	performance, err := newPerformance(d.VpusPerGB, d.IsAutoTuneEnabled, d.AutotunePolicies, nil)
	if err != nil {
		return nil, source, err
	}
	if len(d.BlockVolumeReplicas) > 0 {
		return nil, source, errInvalid("blockVolumeReplicas is not supported.")
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, maxBlockName); err != nil {
			return nil, source, err
		}
	}
	if err := c.volumeRoom(domain, 1, size); err != nil {
		return nil, source, err
	}
	v := &core.Volume{
		Id: common.String(c.newOCID(volumes.ocidType)), CompartmentId: d.CompartmentId, AvailabilityDomain: common.String(domain),
		DisplayName:    common.String(orElse(value(d.DisplayName), "volume"+c.nameSuffix())),
		LifecycleState: core.VolumeLifecycleStateProvisioning, TimeCreated: c.sdkTime(),
		SizeInGBs: common.Int64(size), SizeInMBs: common.Int64(size * mbsPerGB), KmsKeyId: d.KmsKeyId,
		ClusterPlacementGroupId: d.ClusterPlacementGroupId, SourceDetails: source.details(),
		IsHydrated: common.Bool(source.id == ""), IsReservationsEnabled: common.Bool(value(d.IsReservationsEnabled)),
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	performance.applyTo(v)
	setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	return v, source, nil
}

func (s volumeSource) details() core.VolumeSourceDetails {
	switch {
	case s.id == "":
		return nil
	case s.restore:
		return core.VolumeSourceFromVolumeBackupDetails{Id: common.String(s.id)}
	default:
		return core.VolumeSourceFromVolumeDetails{Id: common.String(s.id)}
	}
}

// volumeSource resolves the source of a create; without one it is empty.
func (c *call) volumeSource(d *core.CreateVolumeDetails) (volumeSource, error) {
	details := d.SourceDetails
	if backup := value(d.VolumeBackupId); backup != "" {
		if details != nil {
			return volumeSource{}, errInvalid("volumeBackupId and sourceDetails exclude each other.")
		}
		details = core.VolumeSourceFromVolumeBackupDetails{Id: d.VolumeBackupId}
	}
	switch s := details.(type) {
	case nil:
		return volumeSource{}, nil
	case core.VolumeSourceFromVolumeDetails:
		return c.cloneSource(value(s.Id))
	case core.VolumeSourceFromVolumeBackupDetails:
		return c.backupSource(value(s.Id))
	default:
		return volumeSource{}, errInvalid("The type of sourceDetails is not supported.")
	}
}

func (c *call) cloneSource(id string) (volumeSource, error) {
	v, err := volumes.related(c, id)
	if err != nil {
		return volumeSource{}, err
	}
	if v.LifecycleState != core.VolumeLifecycleStateAvailable {
		if err := c.rule(VolumeSourceNotReady, id, v.LifecycleState); err != nil {
			return volumeSource{}, err
		}
	}
	if !value(v.IsHydrated) {
		if err := c.rule(VolumeSourceHydrating, id); err != nil {
			return volumeSource{}, err
		}
	}
	return volumeSource{id: id, domain: value(v.AvailabilityDomain), gigabytes: value(v.SizeInGBs)}, nil
}

func (c *call) backupSource(id string) (volumeSource, error) {
	b, err := volumeBackups.related(c, id)
	if err != nil {
		return volumeSource{}, err
	}
	if b.LifecycleState != core.VolumeBackupLifecycleStateAvailable {
		if err := c.rule(VolumeSourceNotReady, id, b.LifecycleState); err != nil {
			return volumeSource{}, err
		}
	}
	return volumeSource{id: id, gigabytes: value(b.SizeInGBs), restore: true}, nil
}

// volumeDomain is the availability domain of a new volume. Clones are where their source is.
func (c *call) volumeDomain(wanted string, source volumeSource) (string, error) {
	switch {
	case wanted == "" && source.domain != "":
		return source.domain, nil
	case wanted == "":
		return "", errMissing("availabilityDomain")
	}
	if !slices.Contains(c.options.AvailabilityDomains, wanted) {
		if err := c.rule(UnknownVolumeDomain, wanted); err != nil {
			return "", err
		}
	}
	if source.domain != "" && source.domain != wanted {
		if err := c.rule(VolumeCloneElsewhere, source.domain, wanted); err != nil {
			return "", err
		}
	}
	return wanted, nil
}

// volumeSize is the size of a new volume in GB: as wanted, that of its source, or the default.
func volumeSize(gigabytes, megabytes *int64, source volumeSource) (int64, error) {
	size := max(source.gigabytes, 0)
	switch {
	case gigabytes != nil && megabytes != nil && *gigabytes*mbsPerGB != *megabytes:
		return 0, errInvalid("sizeInGBs and sizeInMBs do not agree.")
	case gigabytes != nil:
		size = *gigabytes
	case megabytes != nil && *megabytes%mbsPerGB != 0:
		return 0, errInvalid("sizeInMBs must be a multiple of %d.", mbsPerGB)
	case megabytes != nil:
		size = *megabytes / mbsPerGB
	case size == 0:
		size = defaultVolumeGBs
	}
	if err := checkNumber("sizeInGBs", int(size), minVolumeGBs, maxVolumeGBs); err != nil {
		return 0, err
	}
	if size < source.gigabytes {
		return 0, errInvalid("The size must be at least the %d GB of the source.", source.gigabytes)
	}
	return size, nil
}

// volumeRoom refuses volumes that the service limits or the capacity of the domain do not allow. Boot volumes count,
// too. count is the number of new volumes and gigabytes the storage that they, or the growth of one, need.
func (cl *cloud) volumeRoom(domain string, count int, gigabytes int64) error {
	used := int64(0)
	add := func(in *string, state string, size *int64) {
		if value(in) == domain && state != string(core.VolumeLifecycleStateTerminated) {
			count++
			used += value(size)
		}
	}
	capacity, bounded := cl.behaviour.VolumeCapacity[domain]
	_, byCount := cl.behaviour.ServiceLimits["volume-count"]
	_, bySize := cl.behaviour.ServiceLimits["total-storage-gb"]
	if !bounded && !byCount && !bySize {
		return nil
	}
	for v := range volumes.under(cl, "") {
		add(v.AvailabilityDomain, string(v.LifecycleState), v.SizeInGBs)
	}
	for v := range bootVolumes.under(cl, "") {
		add(v.AvailabilityDomain, string(v.LifecycleState), v.SizeInGBs)
	}
	if err := cl.serviceLimit("volume-count", count); err != nil {
		return err
	}
	if err := cl.serviceLimit("total-storage-gb", int(used+gigabytes)); err != nil {
		return err
	}
	if bounded && used+gigabytes > capacity {
		return cl.rule(OutOfVolumeCapacity, domain)
	}
	return nil
}
