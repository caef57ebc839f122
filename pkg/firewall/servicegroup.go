// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Tags of NSGs, exactly as the existing implementation has them: it finds its NSGs by them after a roll-back (ccm.md §3.4).
const (
	tagCreatedBy      = "CreatedBy"
	tagCreatedByValue = "CCM"
	tagServiceUID     = "ServiceUid"
	tagBackend        = "ManagedBy"
	tagBackendValue   = "CCM"
)

// maxGroupName is where the name of an NSG is cut (ccm.md §3.1).
const maxGroupName = 255

// maxTokens bounds how often in the life of a retry token (24 h) a Service's NSG can be deleted and made again.
const maxTokens = 20

// ErrNotOurs means that an NSG does not carry the tags of the Service's managed NSG.
var ErrNotOurs = errors.New("the network security group is not this Service's")

// ServiceGroup is the NSG that a Service has for itself in mode NSG: the managed, or frontend, NSG.
type ServiceGroup struct {
	Owner           string // UID of the Service
	Namespace, Name string // of the Service

	CompartmentID, VCNID string
}

// DisplayName is the name that the NSG is made with. It is found by its tags, not by this.
func (g ServiceGroup) DisplayName() string {
	name := g.Namespace + "/" + g.Name + "/" + g.Owner + "/nsg"
	return name[:min(len(name), maxGroupName)]
}

func (g ServiceGroup) tags() map[string]string {
	return map[string]string{tagCreatedBy: tagCreatedByValue, tagServiceUID: g.Owner}
}

// is says whether an NSG is the Service's: it has both tags, whatever else it has.
func (g ServiceGroup) is(found *oci.SecurityGroup) bool {
	return g.Owner != "" && found.Freeform[tagServiceUID] == g.Owner && found.Freeform[tagCreatedBy] == tagCreatedByValue
}

// ownGroups is what this process knows about managed NSGs.
type ownGroups struct {
	mu     sync.Mutex
	ids    map[string]string // by owner, as made or seen last
	marked map[string]struct{}
	lists  map[Place]*groupList
}

// groupList is the last complete list of the NSGs of a place. Its lock is held while it is read, so that all who need it
// share the read.
type groupList struct {
	lock chan struct{} // holds one element while it is free
	at   time.Time
	all  []*oci.SecurityGroup
}

func newOwnGroups() ownGroups {
	return ownGroups{ids: map[string]string{}, marked: map[string]struct{}{}, lists: map[Place]*groupList{}}
}

// FindGroup returns the OCID of the Service's NSG; it is empty if complete lists, and reads of the NSGs that the balancer
// has, prove that there is none. attached are the NSGs of the Service's balancer, if it has one; with one of them known
// from before, nothing is read. Of several the attached one counts, then the newest.
func (m *Manager) FindGroup(ctx context.Context, g ServiceGroup, attached []string) (string, error) {
	if id := m.own.id(g.Owner); id != "" && slices.Contains(attached, id) {
		return id, nil
	}
	found, seen, err := m.findListed(ctx, g, attached)
	if err != nil || found != "" {
		return found, err
	}
	for _, id := range attached {
		if _, listed := seen[id]; listed {
			continue // in the list, and not it
		}
		group, err := m.groups.GetSecurityGroup(ctx, id)
		if err != nil {
			return "", explain(Target{NSG, id}, err)
		}
		m.sawGroup(group)
		if g.is(group) {
			m.own.remember(g.Owner, id)
			return id, nil
		}
	}
	return "", nil
}

// findListed looks for the Service's NSG in the list of the place. That there is none is said of a list that was begun
// after the call.
func (m *Manager) findListed(ctx context.Context, g ServiceGroup, attached []string) (string, map[string]struct{}, error) {
	now := time.Now()
	for _, since := range []time.Time{now.Add(-m.cfg.MaxAge), now} {
		all, err := m.listGroups(ctx, Place{g.CompartmentID, g.VCNID}, since)
		if err != nil {
			return "", nil, explain(Target{Kind: NSG}, err)
		}
		seen := map[string]struct{}{}
		var ours []*oci.SecurityGroup
		for _, group := range all {
			seen[group.ID] = struct{}{}
			if g.is(group) && alive(group.State) {
				ours = append(ours, group)
			}
		}
		if len(ours) > 0 {
			best := slices.MinFunc(ours, func(a, b *oci.SecurityGroup) int {
				return cmp.Or(
					compareBool(slices.Contains(attached, b.ID), slices.Contains(attached, a.ID)),
					b.TimeCreated.Compare(a.TimeCreated), cmp.Compare(a.ID, b.ID))
			})
			m.sawGroup(best)
			m.own.remember(g.Owner, best.ID)
			return best.ID, seen, nil
		}
		if since.Equal(now) {
			return "", seen, nil
		}
	}
	return "", nil, nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// CreateGroup makes the Service's NSG after FindGroup has found none. A create whose answer was lost, in this process or
// an earlier one, is not done twice.
func (m *Manager) CreateGroup(ctx context.Context, g ServiceGroup) (string, error) {
	body := oci.SecurityGroup{CompartmentID: g.CompartmentID, VCNID: g.VCNID, DisplayName: g.DisplayName()}
	wanted := body
	wanted.Freeform = g.tags()
	var err error
	for n := range maxTokens {
		// A token is used up when the NSG that was made under it is deleted. All processes try the same ones in the same
		// order, so that none comes to a new one before the old ones are used up.
		owner := g.Owner
		if n > 0 {
			owner += " again " + strconv.Itoa(n)
		}
		var made *oci.SecurityGroup
		klog.FromContext(ctx).Info("Creating network security group", "displayName", body.DisplayName, "compartment", body.CompartmentID)
		made, err = m.groups.CreateSecurityGroup(ctx, wanted, oci.RetryToken("create nsg", m.cfg.ClusterID, owner, body))
		if errors.Is(err, oci.ErrInvalidRetryToken) {
			continue
		}
		if err != nil {
			break
		}
		m.sawGroup(made)
		m.own.remember(g.Owner, made.ID)
		m.own.dropList(Place{g.CompartmentID, g.VCNID})
		return made.ID, nil
	}
	return "", explainWith(Target{Kind: NSG}, statementCreateGroup, err)
}

// DeleteGroup deletes the Service's NSG with its rules, after the balancer. It is nil if the NSG is proven to be gone. VNICs
// of a deleted balancer stay in it for some minutes: oci.ErrGroupInUse means to try again then.
func (m *Manager) DeleteGroup(ctx context.Context, g ServiceGroup, id string) error {
	t := Target{NSG, id}
	var err error
	for attempt := 1; attempt <= maxAttempts; attempt++ {
		if err = m.deleteGroup(ctx, g, t); !errors.Is(err, oci.ErrPrecondition) || errors.Is(err, oci.ErrGroupInUse) {
			break
		}
		if pause(ctx, attempt) != nil {
			break
		}
	}
	if err != nil {
		if err = m.unlessGone(ctx, t, explain(t, err), true); err != nil {
			return err
		}
	}
	m.book.forget(t)
	m.own.forget(g.Owner, Place{g.CompartmentID, g.VCNID})
	return nil
}

func (m *Manager) deleteGroup(ctx context.Context, g ServiceGroup, t Target) error {
	d, err := m.desk(t)
	if err != nil {
		return err
	}
	if place, _ := d.whereSeen(); place == (Place{}) {
		d.seenIn(Place{g.CompartmentID, g.VCNID})
	}
	group, err := m.groups.GetSecurityGroup(ctx, t.ID)
	if err != nil {
		return err
	}
	m.sawGroup(group)
	if !g.is(group) {
		return ErrNotOurs
	}
	klog.FromContext(ctx).Info("Deleting network security group", "target", t.ID)
	return m.groups.DeleteSecurityGroup(ctx, t.ID, group.ETag)
}

// MarkBackendGroup puts the mark of backend NSGs on an NSG that the user named (ccm.md §3.4), by which Sweep finds it. All
// its other tags stay. It reads an NSG once in the life of the process.
func (m *Manager) MarkBackendGroup(ctx context.Context, id string) error {
	if m.own.isMarked(id) {
		return nil
	}
	t := Target{NSG, id}
	for attempt := 1; ; attempt++ {
		group, err := m.groups.GetSecurityGroup(ctx, id)
		if err != nil {
			return explain(t, err)
		}
		m.sawGroup(group)
		if group.Freeform[tagBackend] != tagBackendValue {
			tags := maps.Clone(group.Freeform)
			if tags == nil {
				tags = map[string]string{}
			}
			tags[tagBackend] = tagBackendValue
			if group.ETag == "" {
				return fmt.Errorf("%s: %w", t, errNoETag)
			}
			_, err = m.groups.UpdateSecurityGroupTags(ctx, id, oci.Tags{Freeform: tags}, group.ETag)
		}
		switch {
		case err == nil:
			m.own.mark(id)
			return nil
		case !errors.Is(err, oci.ErrPrecondition) || attempt == maxAttempts || pause(ctx, attempt) != nil:
			return explain(t, err)
		}
	}
}

// listGroups returns a list of all NSGs of a place that was not begun before the given time.
func (m *Manager) listGroups(ctx context.Context, p Place, since time.Time) ([]*oci.SecurityGroup, error) {
	l := m.own.list(p)
	select {
	case <-l.lock:
	case <-ctx.Done():
		return nil, fmt.Errorf("list network security groups: %w", context.Cause(ctx))
	}
	defer func() { l.lock <- struct{}{} }()
	if !l.at.Before(since) {
		return l.all, nil
	}
	at := time.Now()
	all, err := m.groups.ListSecurityGroups(ctx, p.CompartmentID, p.VCNID)
	if err != nil {
		return nil, err
	}
	l.at, l.all = at, all
	return all, nil
}

// sawGroup remembers where an NSG is, for the day when it is gone.
func (m *Manager) sawGroup(g *oci.SecurityGroup) {
	if d, err := m.desk(Target{NSG, g.ID}); err == nil {
		d.seenIn(Place{g.CompartmentID, g.VCNID})
	}
}

func (o *ownGroups) id(owner string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ids[owner]
}

func (o *ownGroups) remember(owner, id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ids[owner] = id
}

func (o *ownGroups) forget(owner string, p Place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.ids, owner)
	delete(o.lists, p)
}

func (o *ownGroups) dropList(p Place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.lists, p)
}

func (o *ownGroups) list(p Place) *groupList {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.lists[p]
	if l == nil {
		l = &groupList{lock: make(chan struct{}, 1)}
		l.lock <- struct{}{}
		o.lists[p] = l
	}
	return l
}

func (o *ownGroups) isMarked(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.marked[id]
	return ok
}

func (o *ownGroups) mark(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.marked[id] = struct{}{}
}
