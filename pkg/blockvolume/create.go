// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// CreateRequest asks for a volume.
type CreateRequest struct {
	// Name identifies the volume; it becomes its display name. The same name always means the same volume.
	Name string
	// RequiredBytes and LimitBytes bound the size; 0 stands for "no matter". See SizeGB.
	RequiredBytes, LimitBytes int64
	// Domains are the availability domains that the volume may be in, best first, as full names or without the prefix of
	// the tenancy. A later one is used only where those before it have no room. None: that of the source, or the only one of
	// the region.
	Domains []string
	// VPUsPerGB is the performance; nil means 10.
	VPUsPerGB *int64
	AutoTune  oci.AutoTune
	KMSKeyID  string
	// SnapshotID or CloneID is the OCID of a backup or of a volume whose content the volume gets; both empty: none.
	SnapshotID, CloneID string
	// Tags are those that the user asks for.
	Tags oci.Tags
	// Notes are free-form tags that only tell people what the volume is for. They give way where there is no room.
	Notes map[string]string
	// Asked is when the user asked for the volume; zero means that nobody knows. A process that was started after that
	// waits a little before its first create, see Config.AbsenceSettle.
	Asked time.Time
}

// Provisioned is a volume that was made, or found.
type Provisioned struct {
	*oci.Volume
	// Grow says that the file system of the source may be smaller than the volume.
	Grow bool
	// Unmarked says that the limits of tags left no room for the marks.
	Unmarked bool
}

// Create makes a volume and waits until it can be used: content of a source is there by then. It returns the volume that
// was made under the same name before, if there is one.
//
// Errors: ErrOutOfRange, ErrInvalid, ErrExists, ErrNotFound for the source, ErrExhausted, ErrFailed, ErrPending,
// ErrForbidden, ErrUnavailable.
func (s *Service) Create(ctx context.Context, r CreateRequest) (*Provisioned, error) {
	c, err := s.newCreation(r)
	if err != nil {
		return nil, err
	}
	release, err := lock(ctx, s.names, volumeKey(r.Name), "volume "+r.Name)
	if err != nil {
		return nil, err
	}
	defer release()
	made, err := c.make(ctx)
	if err != nil {
		return nil, err
	}
	live, err := s.usable(ctx, made, r.Name)
	if err != nil {
		return nil, err
	}
	s.sizes.note(live)
	out := &Provisioned{Volume: live, Unmarked: s.owns(r.Name, live.DisplayName, live.Tags) != ownedByMark}
	if c.sourced() {
		out.Grow = c.sourceBytes == 0 || c.sourceBytes < live.SizeBytes
	}
	return out, nil
}

func volumeKey(name string) string { return "volume " + name }

// creation is a Create under way.
type creation struct {
	*Service
	CreateRequest

	sizeGB      int64
	domains     []string // full names
	sourceBytes int64    // 0: not known
}

func (s *Service) newCreation(r CreateRequest) (*creation, error) {
	size, err := SizeGB(r.RequiredBytes, r.LimitBytes)
	if err != nil {
		return nil, err
	}
	switch {
	case r.Name == "":
		return nil, problem(ErrInvalid, "a volume needs a name")
	case r.SnapshotID != "" && r.CloneID != "":
		return nil, problem(ErrInvalid, "a volume cannot have two sources")
	case IsBootVolume(r.CloneID):
		return nil, problem(ErrInvalid, "boot volumes cannot be cloned: %s", r.CloneID)
	}
	if r.VPUsPerGB != nil {
		if err := CheckVPUs(*r.VPUsPerGB); err != nil {
			return nil, err
		}
	}
	return &creation{Service: s, CreateRequest: r, sizeGB: size}, nil
}

func (c *creation) sourced() bool { return c.SnapshotID != "" || c.CloneID != "" }

func (c *creation) vpus() int64 {
	if c.VPUsPerGB == nil {
		return DefaultVPUs
	}
	return *c.VPUsPerGB
}

// make finds the volume, or has it made.
func (c *creation) make(ctx context.Context) (*oci.Volume, error) {
	for {
		begun := time.Now()
		found, err := c.findVolumes(ctx, c.Name)
		if err != nil {
			return nil, inDoubt(err)
		}
		for _, v := range found.faulty {
			if err := c.removeFaulty(ctx, v); err != nil {
				return nil, inDoubt(err)
			}
			found.gone = v
		}
		if len(found.live) > 0 {
			return c.take(ctx, found.live)
		}
		if err := c.prepare(ctx); err != nil {
			return nil, err
		}
		made, until, err := c.send(ctx, found.gone, begun)
		if err != nil || made != nil {
			return made, err
		}
		if err := pause(ctx, until, "proof that an earlier request made no volume "+c.Name); err != nil {
			return nil, err
		}
	}
}

// take returns the volume that was found, if it is what is asked for.
func (c *creation) take(ctx context.Context, live []*oci.Volume) (*oci.Volume, error) {
	c.attempts.known(volumeKey(c.Name))
	v := live[0]
	if len(live) > 1 {
		var others []string
		for _, other := range live[1:] {
			others = append(others, other.ID)
		}
		klog.FromContext(ctx).Info("There is more than one volume of this name; the oldest is used", "volume", c.Name, "volumeID", v.ID, "others", others)
	}
	if c.sourced() {
		// It is only about its size, and it may be gone by now.
		if err := c.readSource(ctx); err != nil {
			klog.FromContext(ctx).Info("The size of the source is not known any more", "volume", c.Name, "reason", err.Error())
		}
	}
	differences, err := c.differences(ctx, v)
	if err != nil {
		return nil, err
	}
	if len(differences) > 0 {
		return nil, problem(ErrExists, "volume %s (%s) exists, but %s", c.Name, v.ID, strings.Join(differences, ", "))
	}
	return v, nil
}

// differences says what a volume has that the request does not allow. What an answer leaves out is not held against it.
func (c *creation) differences(ctx context.Context, v *oci.Volume) ([]string, error) {
	var out []string
	differ := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	// The existing implementation makes volumes as large as the limit; that is within it.
	if v.SizeBytes < c.RequiredBytes || c.LimitBytes > 0 && v.SizeBytes > c.LimitBytes {
		differ("has %d bytes, not between %d and %d", v.SizeBytes, c.RequiredBytes, c.LimitBytes)
	}
	if len(c.Domains) > 0 {
		domains, err := c.Service.domains.resolve(ctx, c.Domains)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(domains, v.AvailabilityDomain) {
			differ("is in availability domain %s", v.AvailabilityDomain)
		}
	}
	if v.VPUsPerGB != nil && *v.VPUsPerGB != c.vpus() {
		differ("has %d performance units per GB, not %d", *v.VPUsPerGB, c.vpus())
	}
	if v.KMSKeyID != c.KMSKeyID {
		differ("is encrypted with key %q, not %q", v.KMSKeyID, c.KMSKeyID)
	}
	if v.SourceBackupID != c.SnapshotID || v.SourceVolumeID != c.CloneID {
		differ("was made from %q, not from %q", v.SourceBackupID+v.SourceVolumeID, c.SnapshotID+c.CloneID)
	}
	return out, nil
}

// prepare finds out what is needed for a create: the source, and the availability domains.
func (c *creation) prepare(ctx context.Context) error {
	if err := c.readSource(ctx); err != nil {
		return err
	}
	if c.domains != nil { // those of a clone's source
		return nil
	}
	domains, err := c.Service.domains.resolve(ctx, c.Domains)
	if err != nil {
		return err
	}
	c.domains = domains
	return nil
}

// readSource checks the source. Volumes are cloned where they are.
func (c *creation) readSource(ctx context.Context) error {
	switch {
	case c.SnapshotID != "":
		b, presence, proof, err := c.lookForBackup(ctx, c.SnapshotID)
		switch {
		case presence == oci.Unknown:
			return failed(err, "read backup %s", c.SnapshotID)
		case presence == oci.Gone, b.State == oci.BackupTerminating:
			return problem(ErrNotFound, "backup %s does not exist any more (%s)", c.SnapshotID, proof)
		case b.State == oci.BackupFaulty:
			return problem(ErrInvalid, "backup %s is FAULTY: it cannot be restored", c.SnapshotID)
		case b.State != oci.BackupAvailable:
			return problem(ErrPending, "backup %s is %s: it cannot be restored yet", c.SnapshotID, b.State)
		}
		return c.fits("backup "+b.ID, b.SizeBytes)
	case c.CloneID != "":
		v, err := c.Get(ctx, c.CloneID)
		switch {
		case err != nil:
			return err
		case v.State == oci.VolumeTerminating:
			return problem(ErrNotFound, "volume %s is being deleted: it cannot be cloned", c.CloneID)
		case v.State == oci.VolumeFaulty:
			return problem(ErrInvalid, "volume %s is FAULTY: it cannot be cloned", c.CloneID)
		case v.State != oci.VolumeAvailable:
			return problem(ErrPending, "volume %s is %s: it cannot be cloned yet", c.CloneID, v.State)
		case !v.Hydrated:
			return problem(ErrPending, "the content of volume %s is still being copied: it cannot be cloned yet", c.CloneID)
		}
		if err := c.cloneDomain(ctx, v); err != nil {
			return err
		}
		return c.fits("volume "+v.ID, v.SizeBytes)
	}
	return nil
}

func (c *creation) cloneDomain(ctx context.Context, source *oci.Volume) error {
	c.domains = []string{source.AvailabilityDomain}
	if len(c.Domains) == 0 {
		return nil
	}
	allowed, err := c.Service.domains.resolve(ctx, c.Domains)
	if err != nil {
		return err
	}
	if !slices.Contains(allowed, source.AvailabilityDomain) {
		return problem(ErrExhausted, "volume %s is in availability domain %s, where its clone has to be, but it is asked for in %s",
			source.ID, source.AvailabilityDomain, strings.Join(allowed, ", "))
	}
	return nil
}

// fits compares the size with that of the source. Where nobody asks for a size, it is that of the source.
func (c *creation) fits(what string, bytes int64) error {
	c.sourceBytes = bytes
	sourceGB := (bytes + gibibyte - 1) / gibibyte
	if c.sizeGB >= sourceGB {
		return nil
	}
	if c.RequiredBytes == 0 && (c.LimitBytes == 0 || bytes <= c.LimitBytes) {
		c.sizeGB = sourceGB
		return nil
	}
	return problem(ErrOutOfRange, "%d GiB are asked for, but %s has %d GiB", c.sizeGB, what, sourceGB)
}

// send sends the create, to one availability domain after the other until one has room. Neither a volume nor an error
// means that it has to wait until the given time, and look again.
func (c *creation) send(ctx context.Context, gone *oci.Volume, begun time.Time) (*oci.Volume, time.Time, error) {
	var full []error
	for _, domain := range c.domains {
		v := &oci.Volume{
			CompartmentID: c.cfg.CompartmentID, AvailabilityDomain: domain, DisplayName: c.Name, SizeBytes: c.sizeGB * gibibyte,
			VPUsPerGB: new(c.vpus()), AutoTune: c.AutoTune, KMSKeyID: c.KMSKeyID, SourceBackupID: c.SnapshotID, SourceVolumeID: c.CloneID,
		}
		after := ""
		if gone != nil {
			after = gone.ID
		}
		key := volumeKey(c.Name)
		token := oci.RetryToken("CreateVolume", c.cfg.ClusterID, c.attempts.owner(key, after), v)
		if at := c.attempts.settled(key, token, begun, c.Asked); !at.IsZero() {
			return nil, at, nil
		}
		klog.FromContext(ctx).Info("Creating volume", "volume", c.Name, "sizeGB", c.sizeGB, "availabilityDomain", domain)
		made, err := sendTagged(c.Service, key, token, c.tagChoices(c.Name, c.Tags, c.Notes), func(tags oci.Tags) (*oci.Volume, error) {
			v.Tags = tags
			return c.deps.Storage.CreateVolume(ctx, v, token)
		})
		switch {
		case err == nil:
			return made, time.Time{}, nil
		case errors.Is(err, oci.ErrInvalidRetryToken):
			return nil, time.Now().Add(c.attempts.settle), nil
		case errors.Is(err, oci.ErrOutOfCapacity), errors.Is(err, oci.ErrLimitExceeded):
			full = append(full, err)
		case refused(err):
			return nil, time.Time{}, failed(err, "create volume %s", c.Name)
		default:
			return nil, time.Time{}, because(outcomeUnknown(err), err, "create volume %s: whether it is being made is not known", c.Name)
		}
	}
	return nil, time.Time{}, because(ErrExhausted, errors.Join(full...), "create volume %s in %s", c.Name, strings.Join(c.domains, ", "))
}

// outcomeUnknown is the kind of a failed create that may have been carried out.
func outcomeUnknown(err error) error {
	if kind := kindOf(err); errors.Is(kind, ErrUnavailable) {
		return kind
	}
	return ErrPending
}

// sendTagged sends a create under a retry token with the first of the given tags that the cloud accepts, and remembers the
// attempt.
func sendTagged[T any](s *Service, key, token string, choices []oci.Tags, send func(oci.Tags) (*T, error)) (*T, error) {
	var (
		made *T
		err  error
	)
	for i := 0; i < len(choices); i++ {
		s.attempts.sent(key, token)
		made, err = send(choices[i])
		var answer *oci.Error
		if err == nil || !errors.As(err, &answer) || answer.Status != http.StatusBadRequest {
			break
		}
		if _, had := withoutSystemTags(choices[i]); had && !overTagLimit(choices[i]) {
			for j := i; j < len(choices); j++ {
				choices[j], _ = withoutSystemTags(choices[j])
			}
			i-- // once more, without the namespace that this tenancy may not have
			continue
		}
		if !overTagLimit(choices[i]) {
			break
		}
	}
	switch {
	case err == nil, refused(err):
		s.attempts.known(key)
	case errors.Is(err, oci.ErrInvalidRetryToken):
		s.attempts.burn(key)
	}
	return made, err
}
