// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// BlockStorage manages volumes, their backups and groups of them. Nothing of it has work requests: the state of the
// resource tells how far a change is.
type BlockStorage struct {
	client *Client
}

// BlockStorage returns the block volume service.
func (c *Client) BlockStorage() *BlockStorage { return &BlockStorage{c} }

// GetVolume reads a volume with its ETag.
func (s *BlockStorage) GetVolume(ctx context.Context, id string) (*Volume, error) {
	o := readOp(ServiceBlockStorage, "GetVolume", "volume", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.GetVolumeResponse, *http.Response, error) {
		r, err := s.client.blockStorage.GetVolume(ctx, core.GetVolumeRequest{VolumeId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	v := volumeFromSDK(r.Volume)
	v.ID, v.ETag = id, value(r.Etag)
	return v, nil
}

// GetBootVolume reads a boot volume.
func (s *BlockStorage) GetBootVolume(ctx context.Context, id string) (*Volume, error) {
	o := readOp(ServiceBlockStorage, "GetBootVolume", "boot_volume", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.GetBootVolumeResponse, *http.Response, error) {
		r, err := s.client.blockStorage.GetBootVolume(ctx, core.GetBootVolumeRequest{BootVolumeId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	v := bootVolumeFromSDK(r.BootVolume)
	v.ID, v.ETag = id, value(r.Etag)
	return v, nil
}

// ListVolumes lists the volumes of a compartment in every state, TERMINATED ones included. An empty displayName means no
// filter; otherwise it has to match exactly.
func (s *BlockStorage) ListVolumes(ctx context.Context, compartmentID, displayName string) ([]*Volume, error) {
	return listAll(ctx, s.client, readOp(ServiceBlockStorage, "ListVolumes", "volume", "list"), volumeFromSDK,
		func(ctx context.Context, token *string) (page[core.Volume], *http.Response, error) {
			r, err := s.client.blockStorage.ListVolumes(ctx, core.ListVolumesRequest{
				CompartmentId: &compartmentID,
				DisplayName:   present(displayName),
				Limit:         &s.client.pageSize,
				Page:          token,
			})
			return page[core.Volume]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// CreateVolume asks for a volume. The answer is its first state, usually PROVISIONING.
func (s *BlockStorage) CreateVolume(ctx context.Context, v *Volume, token string) (*Volume, error) {
	request := core.CreateVolumeRequest{CreateVolumeDetails: createVolumeDetails(v), OpcRetryToken: retryToken(token)}
	r, err := invoke(ctx, s.client, writeOp(ServiceBlockStorage, "CreateVolume", "volume", "create"),
		func(ctx context.Context) (core.CreateVolumeResponse, *http.Response, error) {
			r, err := s.client.blockStorage.CreateVolume(ctx, request)
			return r, r.RawResponse, err
		})
	if err != nil {
		return nil, err
	}
	made := volumeFromSDK(r.Volume)
	made.ETag = value(r.Etag)
	s.client.remember(made.ID)
	return made, nil
}

// UpdateVolume changes a volume, if it still has that etag (ErrPrecondition otherwise). Size and performance change in a
// while: the answer may show the old ones.
func (s *BlockStorage) UpdateVolume(ctx context.Context, id string, change VolumeChange, etag string) (*Volume, error) {
	request := core.UpdateVolumeRequest{VolumeId: &id, UpdateVolumeDetails: updateVolumeDetails(change), IfMatch: present(etag)}
	r, err := invoke(ctx, s.client, writeOp(ServiceBlockStorage, "UpdateVolume", "volume", "update"),
		func(ctx context.Context) (core.UpdateVolumeResponse, *http.Response, error) {
			r, err := s.client.blockStorage.UpdateVolume(ctx, request)
			return r, r.RawResponse, err
		})
	if err != nil {
		return nil, err
	}
	v := volumeFromSDK(r.Volume)
	v.ID, v.ETag = id, value(r.Etag)
	return v, nil
}

// DeleteVolume asks for the deletion of a volume. One that is gone already is ErrNotFound; one that is attached is
// ErrConflict.
func (s *BlockStorage) DeleteVolume(ctx context.Context, id string) error {
	return s.delete(ctx, "DeleteVolume", "volume", id, func(ctx context.Context) (*http.Response, error) {
		r, err := s.client.blockStorage.DeleteVolume(ctx, core.DeleteVolumeRequest{VolumeId: &id})
		return r.RawResponse, err
	})
}

// delete sends a deletion, after which a 404 on reads is no surprise any more.
func (s *BlockStorage) delete(ctx context.Context, name, resource, id string, fn func(context.Context) (*http.Response, error)) error {
	_, err := invoke(ctx, s.client, writeOp(ServiceBlockStorage, name, resource, "delete"),
		func(ctx context.Context) (struct{}, *http.Response, error) {
			response, err := fn(ctx)
			return struct{}{}, response, err
		})
	if err == nil {
		s.client.forget(id)
	}
	return err
}
