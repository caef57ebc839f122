// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// GroupSnapshotRequest asks for backups of several volumes at one moment.
type GroupSnapshotRequest struct {
	Name      string
	VolumeIDs []string
	Full      bool
	Tags      oci.Tags
	// Asked is when the user asked for it, see CreateRequest.
	Asked time.Time
}

// GroupSnapshot is a set of backups. Volumes of one availability domain are backed up at one moment; a volume group of the
// cloud, and its backup, cannot have others.
type GroupSnapshot struct {
	// ID is the OCID of the volume group backup or, of several, groupSetPrefix and the name.
	ID        string
	Created   time.Time // of the last
	Ready     bool
	Snapshots []*Snapshot
}

// groupSetPrefix begins the identifier of a group snapshot that is spread over availability domains: their OCIDs together are
// longer than CSI identifiers may be.
const groupSetPrefix = "volumegroupbackups:"

// part is what of a group snapshot is in one availability domain.
type part struct {
	name                string // mark and display name of the group and of its backup
	compartment, domain string
	volumes             []*oci.Volume
	request             GroupSnapshotRequest
}

func (p *part) ids() []string {
	var out []string
	for _, v := range p.volumes {
		out = append(out, v.ID)
	}
	slices.Sort(out)
	return out
}

// CreateGroupSnapshot has backups made of several volumes, by way of a volume group that exists only as long as that takes.
// It returns as soon as the backups exist: they become ready later, and GetGroupSnapshot removes the group then.
//
// Errors: as CreateSnapshot. ErrInUse for a volume that is in somebody else's volume group.
func (s *Service) CreateGroupSnapshot(ctx context.Context, r GroupSnapshotRequest) (*GroupSnapshot, error) {
	if r.Name == "" || len(r.VolumeIDs) == 0 {
		return nil, problem(ErrInvalid, "a group snapshot needs a name and volumes")
	}
	release, err := lock(ctx, s.names, groupKey(r.Name), "group snapshot "+r.Name)
	if err != nil {
		return nil, err
	}
	defer release()
	parts, err := s.parts(ctx, r)
	if err != nil {
		return nil, err
	}
	var backups []*oci.VolumeGroupBackup
	for _, p := range parts {
		b, err := s.partBackup(ctx, p)
		if err != nil {
			return nil, err
		}
		backups = append(backups, b)
	}
	return s.groupSnapshot(ctx, r.Name, backups)
}

func groupKey(name string) string { return "group snapshot " + name }

// parts sorts the volumes by availability domain.
func (s *Service) parts(ctx context.Context, r GroupSnapshotRequest) ([]*part, error) {
	var parts []*part
	for _, id := range r.VolumeIDs {
		if IsBootVolume(id) {
			return nil, problem(ErrInvalid, "snapshots of boot volumes are not supported: %s", id)
		}
		v, err := s.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(parts, func(p *part) bool { return p.compartment == v.CompartmentID && p.domain == v.AvailabilityDomain })
		if i < 0 {
			i = len(parts)
			parts = append(parts, &part{compartment: v.CompartmentID, domain: v.AvailabilityDomain, request: r})
		}
		parts[i].volumes = append(parts[i].volumes, v)
	}
	for _, p := range parts {
		p.name = r.Name
		if len(parts) > 1 {
			p.name += "-" + strings.ToLower(ShortDomain(p.domain))
		}
	}
	slices.SortFunc(parts, func(a, b *part) int { return cmp.Compare(a.name, b.name) })
	return parts, nil
}

// partBackup finds the backup of a part, or has it made.
func (s *Service) partBackup(ctx context.Context, p *part) (*oci.VolumeGroupBackup, error) {
	for {
		begun := time.Now()
		found, gone, err := s.findGroupBackup(ctx, p.compartment, p.name)
		switch {
		case err != nil:
			return nil, err
		case found != nil:
			return found, nil
		}
		group, err := s.temporaryGroup(ctx, p)
		if err != nil {
			return nil, err
		}
		key := "group backup " + p.name
		b := &oci.VolumeGroupBackup{CompartmentID: p.compartment, DisplayName: p.name, GroupID: group.ID, Full: p.request.Full}
		token := oci.RetryToken("CreateVolumeGroupBackup", s.cfg.ClusterID, s.attempts.owner(key, gone), b)
		if at := s.attempts.settled(key, token, begun, p.request.Asked); !at.IsZero() {
			if err := pause(ctx, at, "proof that an earlier request made no "+key); err != nil {
				return nil, err
			}
			continue
		}
		made, err := sendTagged(s, key, token, s.tagChoices(p.name, p.request.Tags, nil), func(tags oci.Tags) (*oci.VolumeGroupBackup, error) {
			b.Tags = tags
			return s.deps.Storage.CreateVolumeGroupBackup(ctx, b, token)
		})
		switch {
		case err == nil:
			return made, nil
		case errors.Is(err, oci.ErrInvalidRetryToken):
			continue
		case refused(err):
			return nil, failed(err, "back up volume group %s", group.ID)
		}
		return nil, because(outcomeUnknown(err), err, "back up volume group %s: whether it is being done is not known", group.ID)
	}
}

// findGroupBackup looks for the backup of a group by its name. One that came out FAULTY is removed.
func (s *Service) findGroupBackup(ctx context.Context, compartment, name string) (found *oci.VolumeGroupBackup, gone string, err error) {
	all, err := s.deps.Storage.ListVolumeGroupBackups(ctx, compartment, name)
	if err != nil {
		return nil, "", inDoubt(failed(err, "look for group snapshot %s", name))
	}
	for _, b := range all {
		if s.owns(name, b.DisplayName, b.Tags) != ownedByMark {
			continue
		}
		switch b.State {
		case oci.BackupTerminating, oci.BackupTerminated:
			gone = max(gone, b.ID)
		case oci.BackupFaulty:
			if err := s.removeGroup(ctx, b.GroupID, name); err != nil {
				return nil, "", err
			}
			if err := s.deps.Storage.DeleteVolumeGroupBackup(ctx, b.ID); err != nil && !errors.Is(err, oci.ErrNotFound) {
				return nil, "", inDoubt(failed(err, "remove FAULTY volume group backup %s", b.ID))
			}
			return nil, "", problem(ErrFailed, "group snapshot %s (%s) came out FAULTY; it is removed, and made anew with the next request", name, b.ID)
		default:
			found = b
		}
	}
	return found, gone, nil
}

// temporaryGroup finds the volume group of a part, or makes it, and waits until it can be backed up.
func (s *Service) temporaryGroup(ctx context.Context, p *part) (*oci.VolumeGroup, error) {
	for {
		begun := time.Now()
		group, gone, err := s.findGroup(ctx, p)
		if err != nil {
			return nil, err
		}
		if group == nil {
			var until time.Time
			group, until, err = s.makeGroup(ctx, p, gone, begun)
			switch {
			case err != nil:
				return nil, err
			case group == nil:
				if err := pause(ctx, until, "proof that an earlier request made no volume group "+p.name); err != nil {
					return nil, err
				}
				continue
			}
		}
		if group.State == oci.GroupProvisioning {
			group, err = s.groups.until(ctx, p.compartment, group.ID, func(g *oci.VolumeGroup) bool { return g.State != oci.GroupProvisioning })
			if err != nil {
				return nil, inDoubt(failed(err, "wait for volume group %s", p.name))
			}
		}
		switch group.State {
		case oci.GroupAvailable:
			return group, nil
		case oci.GroupFaulty:
			if err := s.removeGroup(ctx, group.ID, p.name); err != nil {
				return nil, err
			}
			return nil, problem(ErrFailed, "volume group %s (%s) came out FAULTY; it is removed", p.name, group.ID)
		}
		return nil, problem(ErrPending, "volume group %s (%s) is %s", p.name, group.ID, group.State)
	}
}

func (s *Service) findGroup(ctx context.Context, p *part) (found *oci.VolumeGroup, gone string, err error) {
	all, err := s.deps.Storage.ListVolumeGroups(ctx, p.compartment, p.name)
	if err != nil {
		return nil, "", inDoubt(failed(err, "look for volume group %s", p.name))
	}
	for _, g := range all {
		switch {
		case s.owns(p.name, g.DisplayName, g.Tags) != ownedByMark:
		case g.State == oci.GroupTerminating, g.State == oci.GroupTerminated:
			gone = max(gone, g.ID)
		default:
			have := slices.Sorted(slices.Values(g.VolumeIDs))
			if len(have) > 0 && !slices.Equal(have, p.ids()) {
				return nil, "", problem(ErrExists, "volume group %s (%s) of this snapshot exists, but with volumes %s", p.name, g.ID, strings.Join(have, ", "))
			}
			found = g
		}
	}
	return found, gone, nil
}

// makeGroup has a volume group made. Neither a group nor an error means that it has to wait until the given time.
func (s *Service) makeGroup(ctx context.Context, p *part, gone string, begun time.Time) (*oci.VolumeGroup, time.Time, error) {
	for _, v := range p.volumes {
		if v.GroupID != "" {
			return nil, time.Time{}, s.inGroup(ctx, v)
		}
	}
	key := "volume group " + p.name
	g := &oci.VolumeGroup{CompartmentID: p.compartment, AvailabilityDomain: p.domain, DisplayName: p.name, VolumeIDs: p.ids()}
	token := oci.RetryToken("CreateVolumeGroup", s.cfg.ClusterID, s.attempts.owner(key, gone), g)
	if at := s.attempts.settled(key, token, begun, p.request.Asked); !at.IsZero() {
		return nil, at, nil
	}
	klog.FromContext(ctx).Info("Creating temporary volume group", "group", p.name, "volumes", len(p.volumes))
	// Without its mark nobody would know the group for a temporary one.
	made, err := sendTagged(s, key, token, []oci.Tags{s.marked(p.name, oci.Tags{})}, func(tags oci.Tags) (*oci.VolumeGroup, error) {
		g.Tags = tags
		return s.deps.Storage.CreateVolumeGroup(ctx, g, token)
	})
	switch {
	case err == nil:
		return made, time.Time{}, nil
	case errors.Is(err, oci.ErrInvalidRetryToken):
		return nil, time.Now().Add(s.attempts.settle), nil
	case refused(err):
		return nil, time.Time{}, failed(err, "create volume group %s", p.name)
	}
	return nil, time.Time{}, because(outcomeUnknown(err), err, "create volume group %s: whether it is being made is not known", p.name)
}

// inGroup says what it means that a volume is in a group already.
func (s *Service) inGroup(ctx context.Context, v *oci.Volume) error {
	g, err := s.deps.Storage.GetVolumeGroup(ctx, v.GroupID)
	switch {
	case err != nil: // it may be one of ours that has not shown up yet
		return because(ErrPending, err, "volume %s is in volume group %s, which cannot be read", v.ID, v.GroupID)
	case s.temporary(g):
		return problem(ErrPending, "volume %s is in volume group %s, for group snapshot %s, which is not done", v.ID, g.ID, g.DisplayName)
	}
	return problem(ErrInUse, "volume %s is in volume group %s, and a volume cannot be in two: take it out of that group, or take snapshots of the group as a whole by other means", v.ID, v.GroupID)
}

// temporary says whether a group is one of ours.
func (s *Service) temporary(g *oci.VolumeGroup) bool {
	owner := g.Freeform[TagOwner]
	return owner != "" && s.owns(owner, g.DisplayName, g.Tags) == ownedByMark
}

// groupSnapshot reads the backups of the volumes, and removes the groups of what is done.
func (s *Service) groupSnapshot(ctx context.Context, name string, backups []*oci.VolumeGroupBackup) (*GroupSnapshot, error) {
	out := &GroupSnapshot{Ready: true, ID: groupSetPrefix + name}
	if len(backups) == 1 {
		out.ID = backups[0].ID
	}
	for _, b := range backups {
		if b.TimeCreated.After(out.Created) {
			out.Created = b.TimeCreated
		}
		if b.State != oci.BackupAvailable {
			out.Ready = false
		} else if err := s.removeGroup(ctx, b.GroupID, b.DisplayName); err != nil {
			return nil, err
		}
		for _, id := range b.BackupIDs {
			one, err := s.GetSnapshot(ctx, id)
			switch {
			case errors.Is(err, ErrNotFound) && b.State == oci.BackupAvailable:
				continue // it was deleted by itself
			case errors.Is(err, ErrNotFound):
				return nil, because(ErrPending, err, "group snapshot %s", name)
			case err != nil:
				return nil, err
			}
			out.Ready = out.Ready && one.Ready()
			out.Snapshots = append(out.Snapshots, one)
		}
	}
	sortSnapshots(out.Snapshots)
	return out, nil
}

func sortSnapshots(list []*Snapshot) {
	slices.SortFunc(list, func(a, b *Snapshot) int {
		if c := a.TimeCreated.Compare(b.TimeCreated); c != 0 {
			return c
		}
		return cmp.Compare(a.ID, b.ID)
	})
}
