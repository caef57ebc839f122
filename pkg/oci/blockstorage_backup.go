// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// GetVolumeBackup reads a backup.
func (s *BlockStorage) GetVolumeBackup(ctx context.Context, id string) (*VolumeBackup, error) {
	o := readOp(ServiceBlockStorage, "GetVolumeBackup", "volume_backup", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.GetVolumeBackupResponse, *http.Response, error) {
		r, err := s.client.blockStorage.GetVolumeBackup(ctx, core.GetVolumeBackupRequest{VolumeBackupId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	b := backupFromSDK(r.VolumeBackup)
	b.ID = id
	return b, nil
}

// ListVolumeBackups lists the backups of a compartment in every state. Empty filters match all; displayName has to match
// exactly.
func (s *BlockStorage) ListVolumeBackups(ctx context.Context, compartmentID, volumeID, displayName string) ([]*VolumeBackup, error) {
	return listAll(ctx, s.client, readOp(ServiceBlockStorage, "ListVolumeBackups", "volume_backup", "list"), backupFromSDK,
		func(ctx context.Context, token *string) (page[core.VolumeBackup], *http.Response, error) {
			r, err := s.client.blockStorage.ListVolumeBackups(ctx, core.ListVolumeBackupsRequest{
				CompartmentId: &compartmentID,
				VolumeId:      present(volumeID),
				DisplayName:   present(displayName),
				Limit:         &s.client.pageSize,
				Page:          token,
			})
			return page[core.VolumeBackup]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// CreateVolumeBackup asks for a backup of b.VolumeID. It is made in the compartment of the volume.
func (s *BlockStorage) CreateVolumeBackup(ctx context.Context, b *VolumeBackup, token string) (*VolumeBackup, error) {
	request := core.CreateVolumeBackupRequest{
		CreateVolumeBackupDetails: core.CreateVolumeBackupDetails{
			VolumeId:     &b.VolumeID,
			DisplayName:  present(b.DisplayName),
			Type:         core.CreateVolumeBackupDetailsTypeIncremental,
			FreeformTags: b.Freeform,
			DefinedTags:  b.Defined,
		},
		OpcRetryToken: retryToken(token),
	}
	if b.Full {
		request.Type = core.CreateVolumeBackupDetailsTypeFull
	}
	r, err := invoke(ctx, s.client, writeOp(ServiceBlockStorage, "CreateVolumeBackup", "volume_backup", "create"),
		func(ctx context.Context) (core.CreateVolumeBackupResponse, *http.Response, error) {
			r, err := s.client.blockStorage.CreateVolumeBackup(ctx, request)
			return r, r.RawResponse, err
		})
	if err != nil {
		return nil, err
	}
	made := backupFromSDK(r.VolumeBackup)
	s.client.remember(made.ID)
	return made, nil
}

// DeleteVolumeBackup asks for the deletion of a backup. One that is gone already is ErrNotFound.
func (s *BlockStorage) DeleteVolumeBackup(ctx context.Context, id string) error {
	return s.delete(ctx, "DeleteVolumeBackup", "volume_backup", id, func(ctx context.Context) (*http.Response, error) {
		r, err := s.client.blockStorage.DeleteVolumeBackup(ctx, core.DeleteVolumeBackupRequest{VolumeBackupId: &id})
		return r.RawResponse, err
	})
}
