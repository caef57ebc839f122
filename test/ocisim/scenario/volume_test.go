// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
)

// volume is one volume of the workload, as its owner wants it.
type volume struct {
	clients     *clients
	nodes       *nodes
	compartment string
	cluster     string
	owner       string
	domain      string
	iscsi       bool

	wanted    bool
	gigabytes int64
	attached  bool // to any living node of the domain

	node       string // OCID of the instance that was chosen; lost with it
	id         string
	generation int // of the retry tokens
}

// String implements fmt.Stringer.
func (v *volume) String() string { return fmt.Sprintf("volume of %s (%s)", v.owner, v.id) }

func (v *volume) forget() { v.id = "" }

func (v *volume) token(what string) *string {
	return common.String(v.cluster + "-" + v.owner + "-" + what + strconv.Itoa(v.generation))
}

// find returns the volume, or nil when it is certainly not there.
func (v *volume) find(ctx context.Context) (*core.Volume, error) {
	for n := range misses {
		if n > 0 {
			if err := sleep(ctx, 10*time.Second); err != nil {
				return nil, err
			}
		}
		found, err := v.look(ctx)
		if found != nil || err != nil {
			return found, err
		}
	}
	v.id = ""
	return nil, nil
}

// look reads the volume once; nil and no error is a miss. Terminated volumes stay visible for long.
func (v *volume) look(ctx context.Context) (*core.Volume, error) {
	var refused error
	if v.id != "" {
		r, err := attempt(ctx, func(ctx context.Context) (core.GetVolumeResponse, error) {
			return v.clients.block.GetVolume(ctx, core.GetVolumeRequest{VolumeId: &v.id})
		})
		switch {
		case err == nil && r.LifecycleState != core.VolumeLifecycleStateTerminated:
			return &r.Volume, nil
		case err != nil && !absent(err):
			return nil, err
		}
		refused = err
	}
	list, err := pages(ctx, func(ctx context.Context, page *string) ([]core.Volume, *string, error) {
		r, err := v.clients.block.ListVolumes(ctx, core.ListVolumesRequest{CompartmentId: &v.compartment, DisplayName: &v.owner, Page: page})
		return r.Items, r.OpcNextPage, err
	})
	if err != nil {
		return nil, err
	}
	for i := range list {
		if found := &list[i]; found.LifecycleState != core.VolumeLifecycleStateTerminated {
			if v.id == *found.Id && refused != nil {
				return nil, refused // it is there, and may not be read
			}
			v.id = *found.Id
			return found, nil
		}
	}
	return nil, nil
}

// step implements thing.
func (v *volume) step(ctx context.Context) (bool, error) {
	got, err := v.find(ctx)
	switch {
	case err != nil:
		return false, err
	case got == nil && !v.wanted:
		return true, nil
	case got == nil:
		return false, v.create(ctx)
	}
	switch got.LifecycleState {
	case core.VolumeLifecycleStateAvailable, core.VolumeLifecycleStateFaulty:
	default:
		return false, sleep(ctx, 6*time.Second)
	}
	keep := v.wanted && got.LifecycleState == core.VolumeLifecycleStateAvailable
	settled, err := v.place(ctx, keep && v.attached)
	switch {
	case err != nil || !settled:
		return false, err
	case !keep:
		return false, v.remove(ctx)
	case *got.SizeInGBs < v.gigabytes:
		return false, v.resize(ctx)
	}
	return true, nil
}

func (v *volume) create(ctx context.Context) error {
	r, err := attempt(ctx, func(ctx context.Context) (core.CreateVolumeResponse, error) {
		return v.clients.block.CreateVolume(ctx, core.CreateVolumeRequest{
			OpcRetryToken: v.token("volume"),
			CreateVolumeDetails: core.CreateVolumeDetails{
				CompartmentId: &v.compartment, AvailabilityDomain: &v.domain, DisplayName: &v.owner, SizeInGBs: common.Int64(v.gigabytes),
				FreeformTags: map[string]string{oracle.TagCluster: v.cluster, oracle.TagOwner: v.owner},
			},
		})
	})
	if tokenSpent(err) {
		v.generation++
	}
	if err != nil {
		return err
	}
	v.id = *r.Id
	return sleep(ctx, 8*time.Second)
}

func (v *volume) remove(ctx context.Context) error {
	_, err := attempt(ctx, func(ctx context.Context) (core.DeleteVolumeResponse, error) {
		return v.clients.block.DeleteVolume(ctx, core.DeleteVolumeRequest{VolumeId: &v.id})
	})
	return err
}

func (v *volume) resize(ctx context.Context) error {
	_, err := attempt(ctx, func(ctx context.Context) (core.UpdateVolumeResponse, error) {
		return v.clients.block.UpdateVolume(ctx, core.UpdateVolumeRequest{
			VolumeId: &v.id, UpdateVolumeDetails: core.UpdateVolumeDetails{SizeInGBs: common.Int64(v.gigabytes)},
		})
	})
	return err
}

// place brings the attachments closer to what is wanted by at most one change: one to the chosen node, or none.
func (v *volume) place(ctx context.Context, attached bool) (bool, error) {
	if attached && !v.nodes.lives(v.node) {
		v.node = v.nodes.pick(v.domain)
	}
	list, err := pages(ctx, func(ctx context.Context, page *string) ([]core.VolumeAttachment, *string, error) {
		r, err := v.clients.compute.ListVolumeAttachments(ctx, core.ListVolumeAttachmentsRequest{
			CompartmentId: &v.compartment, VolumeId: &v.id, Page: page,
		})
		return r.Items, r.OpcNextPage, err
	})
	if err != nil {
		return false, err
	}
	there := false
	for _, a := range list {
		switch state := a.GetLifecycleState(); {
		case state == core.VolumeAttachmentLifecycleStateDetached:
		case state != core.VolumeAttachmentLifecycleStateAttached:
			return false, sleep(ctx, 6*time.Second)
		case attached && *a.GetInstanceId() == v.node:
			there = true
		default:
			return false, v.detach(ctx, *a.GetId())
		}
	}
	if there == attached {
		return true, nil
	}
	return false, v.attach(ctx)
}

func (v *volume) detach(ctx context.Context, id string) error {
	_, err := attempt(ctx, func(ctx context.Context) (core.DetachVolumeResponse, error) {
		return v.clients.compute.DetachVolume(ctx, core.DetachVolumeRequest{VolumeAttachmentId: &id})
	})
	return err
}

func (v *volume) attach(ctx context.Context) error {
	var details core.AttachVolumeDetails = core.AttachParavirtualizedVolumeDetails{InstanceId: &v.node, VolumeId: &v.id}
	if v.iscsi {
		details = core.AttachIScsiVolumeDetails{InstanceId: &v.node, VolumeId: &v.id}
	}
	r, err := attempt(ctx, func(ctx context.Context) (core.AttachVolumeResponse, error) {
		return v.clients.compute.AttachVolume(ctx, core.AttachVolumeRequest{AttachVolumeDetails: details, OpcRetryToken: v.token("attachment")})
	})
	if tokenSpent(err) {
		v.generation++
	}
	if err != nil {
		return err
	}
	return v.await(ctx, *r.GetId())
}

// await waits for an attachment to be there, and to be seen.
func (v *volume) await(ctx context.Context, id string) error {
	for range 10 {
		if err := sleep(ctx, 6*time.Second); err != nil {
			return err
		}
		r, err := attempt(ctx, func(ctx context.Context) (core.GetVolumeAttachmentResponse, error) {
			return v.clients.compute.GetVolumeAttachment(ctx, core.GetVolumeAttachmentRequest{VolumeAttachmentId: &id})
		})
		switch {
		case err != nil && !absent(err):
			return err
		case err == nil && r.GetLifecycleState() != core.VolumeAttachmentLifecycleStateAttaching:
			return nil
		}
	}
	return fmt.Errorf("attachment %s is not there after a minute", id)
}
