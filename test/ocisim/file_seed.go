// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"errors"
	"fmt"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/filestorage"
)

// FileSystem of the File Storage service. Seeded ones count against the service limits, but are not refused by them.
type FileSystem struct {
	ID                 string `json:"id,omitempty"`
	Compartment        string `json:"compartment,omitempty"`
	Name               string `json:"name,omitempty"`
	AvailabilityDomain string `json:"availabilityDomain,omitempty"` // default: the first
	KMSKey             string `json:"kmsKey,omitempty"`             // OCID

	Tags `json:",inline"`
}

// MountTarget of the File Storage service, with its export set.
type MountTarget struct {
	ID                 string   `json:"id,omitempty"`
	ExportSet          string   `json:"exportSet,omitempty"` // OCID of the export set, which is made
	Compartment        string   `json:"compartment,omitempty"`
	Name               string   `json:"name,omitempty"`
	AvailabilityDomain string   `json:"availabilityDomain,omitempty"` // default: that of the subnet, else the first
	Subnet             string   `json:"subnet,omitempty"`             // default: the first
	Address            string   `json:"address,omitempty"`            // default: the next free one; an IPv6 one is possible
	Hostname           string   `json:"hostname,omitempty"`
	SecurityGroups     []string `json:"securityGroups,omitempty"`

	Tags `json:",inline"`
}

// Export of a file system through a mount target.
type Export struct {
	ID          string `json:"id,omitempty"`
	FileSystem  string `json:"fileSystem,omitempty"`  // default: the first
	MountTarget string `json:"mountTarget,omitempty"` // default: the first
	Path        string `json:"path"`
}

// AddFileSystem adds a file system and returns its OCID.
func (r *Region) AddFileSystem(f FileSystem) string { return add(r, f, seeder.fileSystem) }

// AddMountTarget adds a mount target with its export set and returns its OCID.
func (r *Region) AddMountTarget(m MountTarget) string { return add(r, m, seeder.mountTarget) }

// AddExport adds an export and returns its OCID.
func (r *Region) AddExport(e Export) string { return add(r, e, seeder.export) }

// FileSystems returns all file systems, deleted ones included while they are visible.
func (r *Region) FileSystems() []filestorage.FileSystem { return inspect(r, fileSystems, "") }

// FileSystem returns one file system.
func (r *Region) FileSystem(id string) (filestorage.FileSystem, bool) {
	return inspectOne(r, fileSystems, id)
}

// MountTargets returns all mount targets, deleted ones included while they are visible.
func (r *Region) MountTargets() []filestorage.MountTarget { return inspect(r, mountTargets, "") }

// MountTarget returns one mount target.
func (r *Region) MountTarget(id string) (filestorage.MountTarget, bool) {
	return inspectOne(r, mountTargets, id)
}

// ExportSets returns all export sets, deleted ones included while they are visible.
func (r *Region) ExportSets() []filestorage.ExportSet { return inspect(r, exportSets, "") }

// Exports returns all exports, deleted ones included while they are visible.
func (r *Region) Exports() []filestorage.Export {
	var list []filestorage.Export
	for _, e := range inspect(r, exports, "") {
		list = append(list, e.Export)
	}
	return list
}

// FileSnapshots returns all snapshots of file systems, deleted ones included while they are visible.
func (r *Region) FileSnapshots() []filestorage.Snapshot {
	var list []filestorage.Snapshot
	for _, s := range inspect(r, fileSnapshots, "") {
		list = append(list, s.Snapshot)
	}
	return list
}

// FileSystem changes a file system.
func (f *Foreign) FileSystem(id string, change func(*filestorage.FileSystem)) error {
	return mutate(f, fileSystems, id, change)
}

// MountTarget changes a mount target. Its addresses are better changed through the API.
func (f *Foreign) MountTarget(id string, change func(*filestorage.MountTarget)) error {
	return mutate(f, mountTargets, id, change)
}

// Export changes an export.
func (f *Foreign) Export(id string, change func(*filestorage.Export)) error {
	return mutate(f, exports, id, func(e *fileExport) { change(&e.Export) })
}

func (s seeder) fileDomain(wanted string) (string, error) {
	all := s.cl.options.AvailabilityDomains
	if wanted == "" {
		return all[0], nil
	}
	if !contains(all, wanted) {
		return "", fmt.Errorf("seed: no availability domain %q", wanted)
	}
	return wanted, nil
}

func (s seeder) fileSystem(f FileSystem) (string, error) {
	id, err := s.newID(f.ID, fileSystems.ocidType)
	if err != nil {
		return "", err
	}
	compartment, err := s.compartmentOf(f.Compartment, "")
	if err != nil {
		return "", err
	}
	domain, err := s.fileDomain(f.AvailabilityDomain)
	if err != nil {
		return "", err
	}
	v := &filestorage.FileSystem{
		Id: common.String(id), CompartmentId: common.String(compartment), AvailabilityDomain: common.String(domain),
		DisplayName:    common.String(orElse(f.Name, "FileSystem"+s.cl.nameSuffix())),
		LifecycleState: filestorage.FileSystemLifecycleStateActive, TimeCreated: s.cl.sdkTime(), MeteredBytes: common.Int64(0),
		IsCloneParent: common.Bool(false), IsHydrated: common.Bool(true), CloneCount: common.Int(0),
		FreeformTags: f.freeform(), DefinedTags: f.defined(),
	}
	if f.KMSKey != "" {
		v.KmsKeyId = common.String(f.KMSKey)
	}
	fileSystems.insert(s.cl, v)
	return id, nil
}

func (s seeder) mountTarget(m MountTarget) (string, error) {
	id, err := s.newID(m.ID, mountTargets.ocidType)
	if err != nil {
		return "", err
	}
	set, err := s.newID(m.ExportSet, exportSets.ocidType)
	if err != nil {
		return "", err
	}
	subnet, err := resolve(s.cl, subnets, m.Subnet)
	if err != nil {
		return "", err
	}
	compartment, err := s.compartmentOf(m.Compartment, "")
	if err != nil {
		return "", err
	}
	domain, err := s.fileDomain(orElse(m.AvailabilityDomain, value(subnet.AvailabilityDomain)))
	if err != nil {
		return "", err
	}
	v := &filestorage.MountTarget{
		Id: common.String(id), CompartmentId: common.String(compartment), AvailabilityDomain: common.String(domain),
		DisplayName: common.String(orElse(m.Name, "MountTarget"+s.cl.nameSuffix())), SubnetId: subnet.Id,
		ExportSetId: common.String(set), LifecycleState: filestorage.MountTargetLifecycleStateActive,
		LifecycleDetails: common.String(""), TimeCreated: s.cl.sdkTime(), IdmapType: filestorage.MountTargetIdmapTypeNone,
		PrivateIpIds: []string{}, RequestedThroughput: common.Int64(1), ObservedThroughput: common.Int64(1),
		ReservedStorageCapacity: common.Int64(0), FreeformTags: m.freeform(), DefinedTags: m.defined(),
	}
	for _, reference := range m.SecurityGroups {
		group, err := resolve(s.cl, securityGroups, reference)
		if err != nil {
			return "", err
		}
		v.NsgIds = append(v.NsgIds, value(group.Id))
	}
	place, err := s.cl.placeMountTarget(v, subnet, m.Address, m.Hostname)
	if err != nil {
		return "", fmt.Errorf("seed: mount target %s: %w", m.Name, err)
	}
	v.PrivateIpIds, v.MountTargetIpv6Ids = append(v.PrivateIpIds, place.private...), place.v6
	mountTargets.insert(s.cl, v)
	s.cl.addExportSet(set, v, place.vcn, filestorage.ExportSetLifecycleStateActive)
	return id, nil
}

func (s seeder) export(e Export) (string, error) {
	id, err := s.newID(e.ID, exports.ocidType)
	if err != nil {
		return "", err
	}
	fs, err := resolve(s.cl, fileSystems, e.FileSystem)
	if err != nil {
		return "", err
	}
	target, err := resolve(s.cl, mountTargets, e.MountTarget)
	if err != nil {
		return "", err
	}
	if value(fs.AvailabilityDomain) != value(target.AvailabilityDomain) {
		return "", fmt.Errorf("seed: export %s: file system and mount target are in different availability domains", e.Path)
	}
	if checkExportPath(e.Path) != nil {
		return "", fmt.Errorf("seed: %q is no export path", e.Path)
	}
	set := exportSets.find(s.cl, value(target.ExportSetId))
	if set == nil {
		return "", errors.New("seed: the mount target has no export set")
	}
	exports.insert(s.cl, &fileExport{value(set.CompartmentId), filestorage.Export{
		Id: common.String(id), ExportSetId: set.Id, FileSystemId: fs.Id, Path: common.String(e.Path),
		ExportOptions: defaultExportOptions(s.cl.ipv6Only(*set.Id)), LifecycleState: filestorage.ExportLifecycleStateActive,
		TimeCreated: s.cl.sdkTime(), IsIdmapGroupsForSysAuth: common.Bool(false),
	}})
	return id, nil
}
