// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// GetVolumeGroup reads a volume group.
func (s *BlockStorage) GetVolumeGroup(ctx context.Context, id string) (*VolumeGroup, error) {
	o := readOp(ServiceBlockStorage, "GetVolumeGroup", "volume_group", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.GetVolumeGroupResponse, *http.Response, error) {
		r, err := s.client.blockStorage.GetVolumeGroup(ctx, core.GetVolumeGroupRequest{VolumeGroupId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	g := groupFromSDK(r.VolumeGroup)
	g.ID = id
	return g, nil
}

// ListVolumeGroups lists the volume groups of a compartment in every state. An empty displayName means no filter;
// otherwise it has to match exactly.
func (s *BlockStorage) ListVolumeGroups(ctx context.Context, compartmentID, displayName string) ([]*VolumeGroup, error) {
	return listAll(ctx, s.client, readOp(ServiceBlockStorage, "ListVolumeGroups", "volume_group", "list"), groupFromSDK,
		func(ctx context.Context, token *string) (page[core.VolumeGroup], *http.Response, error) {
			r, err := s.client.blockStorage.ListVolumeGroups(ctx, core.ListVolumeGroupsRequest{
				CompartmentId: &compartmentID,
				DisplayName:   present(displayName),
				Limit:         &s.client.pageSize,
				Page:          token,
			})
			return page[core.VolumeGroup]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// CreateVolumeGroup asks for a group of the volumes g.VolumeIDs, which stay what they are.
func (s *BlockStorage) CreateVolumeGroup(ctx context.Context, g *VolumeGroup, token string) (*VolumeGroup, error) {
	request := core.CreateVolumeGroupRequest{
		CreateVolumeGroupDetails: core.CreateVolumeGroupDetails{
			CompartmentId:      &g.CompartmentID,
			AvailabilityDomain: &g.AvailabilityDomain,
			DisplayName:        present(g.DisplayName),
			SourceDetails:      core.VolumeGroupSourceFromVolumesDetails{VolumeIds: orEmpty(g.VolumeIDs)},
			FreeformTags:       g.Freeform,
			DefinedTags:        g.Defined,
		},
		OpcRetryToken: retryToken(token),
	}
	r, err := invoke(ctx, s.client, writeOp(ServiceBlockStorage, "CreateVolumeGroup", "volume_group", "create"),
		func(ctx context.Context) (core.CreateVolumeGroupResponse, *http.Response, error) {
			r, err := s.client.blockStorage.CreateVolumeGroup(ctx, request)
			return r, r.RawResponse, err
		})
	if err != nil {
		return nil, err
	}
	made := groupFromSDK(r.VolumeGroup)
	s.client.remember(made.ID)
	return made, nil
}

// DeleteVolumeGroup asks for the deletion of a group. Its volumes stay. One that is gone already is ErrNotFound.
func (s *BlockStorage) DeleteVolumeGroup(ctx context.Context, id string) error {
	return s.delete(ctx, "DeleteVolumeGroup", "volume_group", id, func(ctx context.Context) (*http.Response, error) {
		r, err := s.client.blockStorage.DeleteVolumeGroup(ctx, core.DeleteVolumeGroupRequest{VolumeGroupId: &id})
		return r.RawResponse, err
	})
}

// GetVolumeGroupBackup reads the backup of a group.
func (s *BlockStorage) GetVolumeGroupBackup(ctx context.Context, id string) (*VolumeGroupBackup, error) {
	o := readOp(ServiceBlockStorage, "GetVolumeGroupBackup", "volume_group_backup", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.GetVolumeGroupBackupResponse, *http.Response, error) {
		r, err := s.client.blockStorage.GetVolumeGroupBackup(ctx, core.GetVolumeGroupBackupRequest{VolumeGroupBackupId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	b := groupBackupFromSDK(r.VolumeGroupBackup)
	b.ID = id
	return b, nil
}

// ListVolumeGroupBackups lists the backups of groups in a compartment in every state. An empty displayName means no
// filter; otherwise it has to match exactly.
func (s *BlockStorage) ListVolumeGroupBackups(ctx context.Context, compartmentID, displayName string) ([]*VolumeGroupBackup, error) {
	return listAll(ctx, s.client, readOp(ServiceBlockStorage, "ListVolumeGroupBackups", "volume_group_backup", "list"), groupBackupFromSDK,
		func(ctx context.Context, token *string) (page[core.VolumeGroupBackup], *http.Response, error) {
			r, err := s.client.blockStorage.ListVolumeGroupBackups(ctx, core.ListVolumeGroupBackupsRequest{
				CompartmentId: &compartmentID,
				DisplayName:   present(displayName),
				Limit:         &s.client.pageSize,
				Page:          token,
			})
			return page[core.VolumeGroupBackup]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// CreateVolumeGroupBackup asks for a backup of the group b.GroupID: of all of its volumes, at one moment.
func (s *BlockStorage) CreateVolumeGroupBackup(ctx context.Context, b *VolumeGroupBackup, token string) (*VolumeGroupBackup, error) {
	request := core.CreateVolumeGroupBackupRequest{
		CreateVolumeGroupBackupDetails: core.CreateVolumeGroupBackupDetails{
			VolumeGroupId: &b.GroupID,
			CompartmentId: present(b.CompartmentID),
			DisplayName:   present(b.DisplayName),
			Type:          core.CreateVolumeGroupBackupDetailsTypeIncremental,
			FreeformTags:  b.Freeform,
			DefinedTags:   b.Defined,
		},
		OpcRetryToken: retryToken(token),
	}
	if b.Full {
		request.Type = core.CreateVolumeGroupBackupDetailsTypeFull
	}
	r, err := invoke(ctx, s.client, writeOp(ServiceBlockStorage, "CreateVolumeGroupBackup", "volume_group_backup", "create"),
		func(ctx context.Context) (core.CreateVolumeGroupBackupResponse, *http.Response, error) {
			r, err := s.client.blockStorage.CreateVolumeGroupBackup(ctx, request)
			return r, r.RawResponse, err
		})
	if err != nil {
		return nil, err
	}
	made := groupBackupFromSDK(r.VolumeGroupBackup)
	for _, id := range append(made.BackupIDs, made.ID) {
		s.client.remember(id)
	}
	return made, nil
}

// DeleteVolumeGroupBackup asks for the deletion of the backup of a group, with the backups of its volumes. One that is
// gone already is ErrNotFound.
func (s *BlockStorage) DeleteVolumeGroupBackup(ctx context.Context, id string) error {
	return s.delete(ctx, "DeleteVolumeGroupBackup", "volume_group_backup", id, func(ctx context.Context) (*http.Response, error) {
		r, err := s.client.blockStorage.DeleteVolumeGroupBackup(ctx, core.DeleteVolumeGroupBackupRequest{VolumeGroupBackupId: &id})
		return r.RawResponse, err
	})
}
