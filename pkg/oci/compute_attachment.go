// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
)

// GetVolumeAttachment reads an attachment.
func (s *Compute) GetVolumeAttachment(ctx context.Context, id string) (*VolumeAttachment, error) {
	o := readOp(ServiceCompute, "GetVolumeAttachment", "volume_attachment", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.GetVolumeAttachmentResponse, *http.Response, error) {
		r, err := s.client.compute.GetVolumeAttachment(ctx, core.GetVolumeAttachmentRequest{VolumeAttachmentId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	a := volumeAttachmentFromSDK(r.VolumeAttachment)
	a.ID = id
	return a, nil
}

// ListVolumeAttachments lists the attachments to the instances of a compartment in every state, DETACHED ones included.
// The volumes may be anywhere.
func (s *Compute) ListVolumeAttachments(ctx context.Context, compartmentID string, filter AttachmentFilter) ([]*VolumeAttachment, error) {
	return listAll(ctx, s.client, readOp(ServiceCompute, "ListVolumeAttachments", "volume_attachment", "list"), volumeAttachmentFromSDK,
		func(ctx context.Context, token *string) (page[core.VolumeAttachment], *http.Response, error) {
			r, err := s.client.compute.ListVolumeAttachments(ctx, core.ListVolumeAttachmentsRequest{
				CompartmentId: &compartmentID,
				InstanceId:    present(filter.InstanceID),
				VolumeId:      present(filter.VolumeID),
				Limit:         &s.client.pageSize,
				Page:          token,
			})
			return page[core.VolumeAttachment]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// AttachVolume asks for an attachment. Volumes that are not AVAILABLE are ErrNotFound; those that are attached already, and
// device paths that are taken, ErrConflict.
func (s *Compute) AttachVolume(ctx context.Context, a Attach, token string) (*VolumeAttachment, error) {
	request := core.AttachVolumeRequest{AttachVolumeDetails: attachDetails(a), OpcRetryToken: retryToken(token)}
	r, err := invoke(ctx, s.client, writeOp(ServiceCompute, "AttachVolume", "volume_attachment", "create"),
		func(ctx context.Context) (core.AttachVolumeResponse, *http.Response, error) {
			r, err := s.client.compute.AttachVolume(ctx, request)
			return r, r.RawResponse, err
		})
	if err != nil {
		return nil, err
	}
	made := volumeAttachmentFromSDK(r.VolumeAttachment)
	s.client.remember(made.ID)
	return made, nil
}

// DetachVolume asks for the end of an attachment. One that is DETACHED is ErrNotFound.
func (s *Compute) DetachVolume(ctx context.Context, id string) error {
	_, err := invoke(ctx, s.client, writeOp(ServiceCompute, "DetachVolume", "volume_attachment", "delete"),
		func(ctx context.Context) (core.DetachVolumeResponse, *http.Response, error) {
			r, err := s.client.compute.DetachVolume(ctx, core.DetachVolumeRequest{VolumeAttachmentId: &id})
			return r, r.RawResponse, err
		})
	if err == nil {
		s.client.forget(id)
	}
	return err
}

// ListInstanceDevices lists the consistent device paths of an instance, free and taken. An instance whose image has no
// consistent device names has none.
func (s *Compute) ListInstanceDevices(ctx context.Context, instanceID string) ([]Device, error) {
	o := readOp(ServiceCompute, "ListInstanceDevices", "instance_device", "list")
	o.target = instanceID
	return listAll(ctx, s.client, o, func(d core.Device) Device { return Device{Path: value(d.Name), Free: value(d.IsAvailable)} },
		func(ctx context.Context, token *string) (page[core.Device], *http.Response, error) {
			r, err := s.client.compute.ListInstanceDevices(ctx, core.ListInstanceDevicesRequest{
				InstanceId: &instanceID,
				Limit:      &s.client.pageSize,
				Page:       token,
			})
			return page[core.Device]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

func attachDetails(a Attach) core.AttachVolumeDetails {
	if a.Type == AttachParavirtualized {
		return core.AttachParavirtualizedVolumeDetails{
			InstanceId:                     &a.InstanceID,
			VolumeId:                       &a.VolumeID,
			DisplayName:                    present(a.DisplayName),
			Device:                         present(a.Device),
			IsShareable:                    common.Bool(a.Shareable),
			IsReadOnly:                     present(a.ReadOnly),
			IsPvEncryptionInTransitEnabled: present(a.EncryptPV),
		}
	}
	return core.AttachIScsiVolumeDetails{
		InstanceId:                   &a.InstanceID,
		VolumeId:                     &a.VolumeID,
		DisplayName:                  present(a.DisplayName),
		Device:                       present(a.Device),
		IsShareable:                  common.Bool(a.Shareable),
		IsReadOnly:                   present(a.ReadOnly),
		UseChap:                      present(a.CHAP),
		IsAgentAutoIscsiLoginEnabled: present(a.AgentLogin),
	}
}

func volumeAttachmentFromSDK(a core.VolumeAttachment) *VolumeAttachment {
	if a == nil {
		return &VolumeAttachment{} // an answer without a body
	}
	out := &VolumeAttachment{
		ID:            value(a.GetId()),
		CompartmentID: value(a.GetCompartmentId()),
		DisplayName:   value(a.GetDisplayName()),
		State:         string(a.GetLifecycleState()),
		InstanceID:    value(a.GetInstanceId()),
		VolumeID:      value(a.GetVolumeId()),
		Device:        value(a.GetDevice()),
		Shareable:     value(a.GetIsShareable()),
		ReadOnly:      value(a.GetIsReadOnly()),
		EncryptedPV:   value(a.GetIsPvEncryptionInTransitEnabled()),
		Multipath:     value(a.GetIsMultipath()),
		LoginState:    string(a.GetIscsiLoginState()),
		TimeCreated:   timeValue(a.GetTimeCreated()),
	}
	switch typed := a.(type) {
	case core.IScsiVolumeAttachment:
		out.Type = AttachISCSI
		out.IQN, out.IPv4, out.Port = value(typed.Iqn), value(typed.Ipv4), value(typed.Port)
		out.CHAPUser, out.CHAPSecret = value(typed.ChapUsername), config.Secret(value(typed.ChapSecret))
		for _, path := range typed.MultipathDevices {
			out.Paths = append(out.Paths, Path{IPv4: value(path.Ipv4), IQN: value(path.Iqn), Port: value(path.Port)})
		}
	case core.ParavirtualizedVolumeAttachment:
		out.Type = AttachParavirtualized
	case core.EmulatedVolumeAttachment:
		out.Type = "emulated"
	case core.NvmeVolumeAttachment:
		out.Type = "nvme"
	}
	return out
}
