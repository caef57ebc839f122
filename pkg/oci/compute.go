// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// Compute reads instances and their attachments, and attaches volumes to them.
type Compute struct {
	client *Client
}

// Compute returns the compute service.
func (c *Client) Compute() *Compute { return &Compute{c} }

// GetInstance reads one instance. An instance that was terminated a while ago, or that this principal may not read, is
// ErrNotFound; see Presence for telling the two apart.
func (s *Compute) GetInstance(ctx context.Context, id string) (*Instance, error) {
	o := readOp(ServiceCompute, "GetInstance", "instance", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.GetInstanceResponse, *http.Response, error) {
		r, err := s.client.compute.GetInstance(ctx, core.GetInstanceRequest{InstanceId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	i := instanceFromSDK(r.Instance)
	if i.ID == "" {
		i.ID = id
	}
	i.ETag = value(r.Etag)
	return i, nil
}

// UpdateInstanceTags replaces the tags of an instance, if it still has that etag (ErrPrecondition otherwise).
func (s *Compute) UpdateInstanceTags(ctx context.Context, id string, tags Tags, etag string) error {
	request := core.UpdateInstanceRequest{
		InstanceId:            &id,
		UpdateInstanceDetails: core.UpdateInstanceDetails{FreeformTags: tags.Freeform, DefinedTags: tags.Defined},
		OpcRetryToken:         retryToken(""),
		IfMatch:               present(etag),
	}
	_, err := invoke(ctx, s.client, writeOp(ServiceCompute, "UpdateInstance", "instance", "update"),
		func(ctx context.Context) (core.UpdateInstanceResponse, *http.Response, error) {
			r, err := s.client.compute.UpdateInstance(ctx, request)
			return r, r.RawResponse, err
		})
	return err
}

// ListInstances lists the instances of a compartment in every state, TERMINATED ones included. An empty displayName
// means no filter; otherwise it has to match exactly.
func (s *Compute) ListInstances(ctx context.Context, compartmentID, displayName string) ([]*Instance, error) {
	return listAll(ctx, s.client, readOp(ServiceCompute, "ListInstances", "instance", "list"), instanceFromSDK,
		func(ctx context.Context, token *string) (page[core.Instance], *http.Response, error) {
			r, err := s.client.compute.ListInstances(ctx, core.ListInstancesRequest{
				CompartmentId: &compartmentID,
				DisplayName:   present(displayName),
				Limit:         &s.client.pageSize,
				Page:          token,
			})
			return page[core.Instance]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// ListVNICAttachments lists the VNIC attachments of a compartment in every state. An empty instanceID means all instances.
func (s *Compute) ListVNICAttachments(ctx context.Context, compartmentID, instanceID string) ([]*VNICAttachment, error) {
	return listAll(ctx, s.client, readOp(ServiceCompute, "ListVnicAttachments", "vnic_attachment", "list"), vnicAttachmentFromSDK,
		func(ctx context.Context, token *string) (page[core.VnicAttachment], *http.Response, error) {
			r, err := s.client.compute.ListVnicAttachments(ctx, core.ListVnicAttachmentsRequest{
				CompartmentId: &compartmentID,
				InstanceId:    present(instanceID),
				Limit:         &s.client.pageSize,
				Page:          token,
			})
			return page[core.VnicAttachment]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

func instanceFromSDK(i core.Instance) *Instance {
	out := &Instance{
		ID:                 value(i.Id),
		CompartmentID:      value(i.CompartmentId),
		AvailabilityDomain: value(i.AvailabilityDomain),
		FaultDomain:        value(i.FaultDomain),
		Region:             value(i.Region),
		Shape:              value(i.Shape),
		DisplayName:        value(i.DisplayName),
		State:              string(i.LifecycleState),
		Metadata:           i.Metadata,
		TimeCreated:        timeValue(i.TimeCreated),
		Tags:               Tags{Freeform: i.FreeformTags, Defined: i.DefinedTags},
	}
	if i.LaunchOptions != nil {
		out.PVEncryption = value(i.LaunchOptions.IsPvEncryptionInTransitEnabled)
	}
	return out
}

func vnicAttachmentFromSDK(a core.VnicAttachment) *VNICAttachment {
	return &VNICAttachment{
		ID:                 value(a.Id),
		CompartmentID:      value(a.CompartmentId),
		AvailabilityDomain: value(a.AvailabilityDomain),
		InstanceID:         value(a.InstanceId),
		VNICID:             value(a.VnicId),
		SubnetID:           value(a.SubnetId),
		State:              string(a.LifecycleState),
		NICIndex:           value(a.NicIndex),
	}
}
