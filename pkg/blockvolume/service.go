// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/internal/keylock"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// defaultAbsenceSettle is how long a create may take to show up in lists.
const defaultAbsenceSettle = 30 * time.Second

// Config is how a Service works.
type Config struct {
	// ClusterID is the cluster's identity. It goes into marks and retry tokens.
	ClusterID string
	// CompartmentID is where volumes are made and looked for.
	CompartmentID string
	// NodeCompartments are where instances of the cluster may be, beside CompartmentID.
	NodeCompartments []string
	// AbsenceSettle is how long after the last create of something its absence from lists proves that it was not made; 0
	// means 30 s, a negative value no time at all.
	AbsenceSettle time.Duration
}

// Service does what this package is about. It is safe for concurrent use.
type Service struct {
	cfg  Config
	deps Deps

	volumes     *watcher[oci.Volume]
	attachments *watcher[oci.VolumeAttachment]
	groups      *watcher[oci.VolumeGroup]

	names     *keylock.Locks[string] // of what is created, by kind and name
	ids       *keylock.Locks[string] // of volumes
	machines  *keylock.Locks[string] // of instances whose devices are given out
	attempts  *attempts
	tries     *attachTries
	domains   *domainNames
	instances *instanceFacts
	devices   *deviceTable
	ending    *endings
	sizes     *sizes
	lists     *rounds
}

// New returns a Service. It makes no call.
func New(cfg Config, deps Deps) *Service {
	switch {
	case cfg.AbsenceSettle == 0:
		cfg.AbsenceSettle = defaultAbsenceSettle
	case cfg.AbsenceSettle < 0:
		cfg.AbsenceSettle = 0
	}
	s := &Service{
		cfg: cfg, deps: deps,
		names: keylock.New[string](), ids: keylock.New[string](), machines: keylock.New[string](),
		attempts: newAttempts(cfg.AbsenceSettle),
		tries:    newAttachTries(cfg.AbsenceSettle),
		devices:  newDeviceTable(),
		ending:   newEndings(),
		sizes:    newSizes(),
		lists:    newRounds(deps.Compute.ListVolumeAttachments),
	}
	s.domains = newDomainNames(func(ctx context.Context) ([]string, error) {
		return deps.Domains.ListAvailabilityDomains(ctx, cfg.CompartmentID)
	})
	s.instances = newInstanceFacts(s.lookForInstance)
	s.volumes = newWatcher(watched[oci.Volume]{
		id:  func(v *oci.Volume) string { return v.ID },
		get: deps.Storage.GetVolume,
		list: func(ctx context.Context, compartment string) ([]*oci.Volume, error) {
			return deps.Storage.ListVolumes(ctx, compartment, "")
		},
	})
	s.attachments = newWatcher(watched[oci.VolumeAttachment]{
		id:  func(a *oci.VolumeAttachment) string { return a.ID },
		get: deps.Compute.GetVolumeAttachment,
		list: func(ctx context.Context, compartment string) ([]*oci.VolumeAttachment, error) {
			return deps.Compute.ListVolumeAttachments(ctx, compartment, oci.AttachmentFilter{})
		},
	})
	s.groups = newWatcher(watched[oci.VolumeGroup]{
		id:  func(g *oci.VolumeGroup) string { return g.ID },
		get: deps.Storage.GetVolumeGroup,
		list: func(ctx context.Context, compartment string) ([]*oci.VolumeGroup, error) {
			return deps.Storage.ListVolumeGroups(ctx, compartment, "")
		},
	})
	return s
}

// compartments returns the compartments in which attachments of the cluster's instances may be, the given ones first.
func (s *Service) compartments(first ...string) []string {
	var out []string
	for _, c := range slices.Concat(first, []string{s.cfg.CompartmentID}, s.cfg.NodeCompartments) {
		if c != "" && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// lock waits for a lock.
func lock(ctx context.Context, locks *keylock.Locks[string], key, what string) (release func(), err error) {
	release, err = locks.Acquire(ctx, key)
	if err != nil {
		return nil, because(ErrPending, err, "another request about %s is not done", what)
	}
	return release, nil
}

// pause waits until a moment, or for the end of ctx.
func pause(ctx context.Context, until time.Time, what string) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return because(ErrPending, ctx.Err(), "waiting for %s", what)
	}
}

// IsBootVolume says whether an OCID is that of a boot volume.
func IsBootVolume(id string) bool { return strings.Contains(id, ".bootvolume.") }
