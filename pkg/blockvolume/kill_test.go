// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume_test

import (
	"context"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// scenario is something that a process does, and that another one ends if the first is killed: the calls of a sidecar.
type scenario struct {
	name string
	// prepare is done by nobody who is killed. Its result is handed on.
	prepare func(r *rig) string
	do      func(ctx context.Context, r *rig, s *blockvolume.Service, id string) error
	// left are the volumes, attachments, backups and groups at the end.
	left [4]int
}

func scenarios() []scenario {
	create := func(ctx context.Context, r *rig, s *blockvolume.Service, change ...func(*createRequest)) (string, error) {
		v, err := s.Create(ctx, r.request(change...))
		if err != nil {
			return "", err
		}
		return v.ID, nil
	}
	return []scenario{
		{
			name: "create, attach, expand, detach", left: [4]int{1, 0, 0, 0},
			do: func(ctx context.Context, r *rig, s *blockvolume.Service, _ string) error {
				id, err := create(ctx, r, s)
				if err != nil {
					return err
				}
				if _, err := s.Attach(ctx, blockvolume.AttachRequest{VolumeID: id, InstanceID: r.one}); err != nil {
					return err
				}
				if _, err := s.Expand(ctx, id, 70*gib, 0); err != nil {
					return err
				}
				return s.Detach(ctx, blockvolume.DetachRequest{VolumeID: id, InstanceID: r.one})
			},
		},
		{
			// The pod is deleted while its volume is being attached: the repeat detaches at once.
			name: "attach, then detach only", left: [4]int{1, 0, 0, 0},
			prepare: func(r *rig) string { return r.volume() },
			do: func(ctx context.Context, r *rig, s *blockvolume.Service, id string) error {
				if s != r.s { // the process that is killed
					if _, err := s.Attach(ctx, blockvolume.AttachRequest{VolumeID: id, InstanceID: r.one}); err != nil {
						return err
					}
				}
				return s.Detach(ctx, blockvolume.DetachRequest{VolumeID: id, InstanceID: r.one})
			},
		},
		{
			name: "clone", left: [4]int{2, 0, 0, 0}, prepare: func(r *rig) string { return r.volume() },
			do: func(ctx context.Context, r *rig, s *blockvolume.Service, id string) error {
				_, err := create(ctx, r, s, func(q *createRequest) { q.CloneID = id })
				return err
			},
		},
		{
			name: "snapshot and delete the volume", left: [4]int{0, 0, 1, 0}, prepare: func(r *rig) string { return r.volume() },
			do: func(ctx context.Context, _ *rig, s *blockvolume.Service, id string) error {
				for {
					b, err := s.CreateSnapshot(ctx, blockvolume.SnapshotRequest{Name: "snapshot-1", VolumeID: id})
					switch {
					case err != nil:
						return err
					case b.Ready():
						return s.Delete(ctx, id)
					}
					time.Sleep(10 * time.Second)
				}
			},
		},
		{
			name: "group snapshot", left: [4]int{1, 0, 1, 0}, prepare: func(r *rig) string { return r.volume() },
			do: func(ctx context.Context, _ *rig, s *blockvolume.Service, id string) error {
				for {
					g, err := s.CreateGroupSnapshot(ctx, blockvolume.GroupSnapshotRequest{Name: groupName, VolumeIDs: []string{id}})
					if err != nil || g.Ready {
						return err
					}
					time.Sleep(10 * time.Second)
				}
			},
		},
		{
			name: "delete", prepare: func(r *rig) string { return r.volume() },
			do: func(ctx context.Context, _ *rig, s *blockvolume.Service, id string) error { return s.Delete(ctx, id) },
		},
	}
}

// TestKilledAnywhere kills the process with every call, before it arrives and before its answer comes back, and lets another
// one repeat the request, while the first read of everything new lags behind: the end is always the same. C084, C100, C113.
func TestKilledAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds; it is in LONG of the Makefile")
	}
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			points := 0
			for point := range ocisim.KillPoints() {
				simulate(t, ocisim.Options{Seed: 3, EventualReads: 1}, func(r *rig) { s.killed(r, point) })
				points++
			}
			t.Logf("%d kill points", points-1)
		})
	}
}

func (s scenario) killed(r *rig, point *ocisim.KillPoint) {
	id := ""
	if s.prepare != nil {
		id = s.prepare(r)
	}
	ctx, transport := point.Process(r.Context(), r.region.Transport())
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	mortal := r.newService(transport)
	time.Sleep(time.Minute)
	if err := s.do(ctx, r, mortal, id); err != nil && !point.Reached() {
		r.Errorf("without a kill: %v", err)
	}
	r.restart()
	if err := s.again(r, id); err != nil {
		r.Errorf("%s: the second process: %v", point, err)
	}
	time.Sleep(5 * time.Minute)
	if got := [4]int{len(r.living()), len(r.open()), len(r.backups()), len(r.groups())}; got != s.left {
		r.Errorf("%s: %v volumes, attachments, backups and groups are left, want %v", point, got, s.left)
	}
}

// again repeats the request, with the deadline and the patience of a sidecar.
func (s scenario) again(r *rig, id string) error {
	var err error
	for range 10 {
		_, err = within(r, time.Hour, func(ctx context.Context) (struct{}, error) { return struct{}{}, s.do(ctx, r, r.s, id) })
		if err == nil || !isOneOf(err, blockvolume.ErrPending, blockvolume.ErrUnavailable) {
			return err
		}
		time.Sleep(5 * time.Second)
	}
	return err
}

// foreignGroup is a volume group as a person makes it.
func foreignGroup(r *rig, volumes ...string) *oci.VolumeGroup {
	return &oci.VolumeGroup{CompartmentID: r.compartment, AvailabilityDomain: r.ad, DisplayName: "nightly", VolumeIDs: volumes}
}
