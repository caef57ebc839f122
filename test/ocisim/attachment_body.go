// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// AttachmentBody lets volumes hold data, and attachments appear as devices. Its methods may block: the region calls
// them without its lock, and its state machines wait for them. An error is that of the operation: a failed Attach
// ends DETACHED, a failed Detach leaves the volume attached, a failed Copy makes the new volume or backup FAULTY.
//
// Volumes and backups are named by their OCIDs. Calls about one of them follow each other; calls about different ones
// are concurrent. Detach may come again, or for an attachment that failed to appear.
type AttachmentBody interface {
	// Attach makes a volume appear on an instance. A volume without content is empty.
	Attach(ctx context.Context, a BodyAttachment) error
	// Detach makes it disappear. The content stays.
	Detach(ctx context.Context, a BodyAttachment) error
	// Resize makes a volume larger, attached or not. A volume that has no content yet needs nothing.
	Resize(ctx context.Context, volume string, bytes int64) error
	// Copy gives a new volume or backup the present content of another.
	Copy(ctx context.Context, from, to string) error
	// Delete forgets the content of a volume or backup.
	Delete(ctx context.Context, id string) error
	// Clear takes all devices away and forgets all content. Region.Reset and Region.Close call it.
	Clear(ctx context.Context) error
}

// PortalLister is a body whose iSCSI targets listen at given addresses. Attachments then show those, the first one
// first, instead of one address for each volume.
type PortalLister interface {
	Portals() []string // IPv4, without port
}

// BodyAttachment is what a body needs to know of an attachment.
type BodyAttachment struct {
	ID, Volume, Instance string // OCIDs
	Type                 string // iscsi, paravirtualized, emulated
	Device               string // consistent device path, "" without one
	Bytes                int64  // size of the volume
	ReadOnly             bool

	// Of iSCSI attachments only.
	IQN                  string
	Portals              []string // IPv4, without port
	Port, LUN            int
	CHAPUser, CHAPSecret string
}

// bodyErrors collects what bodies complain about.
type bodyErrors struct {
	mu   sync.Mutex
	list []error
}

// Close ends the bodies of balancers, and the work on bodies of attachments, and clears them. Without Options.Balancers
// and Options.Attachments there is nothing to close.
func (r *Region) Close() error {
	var err error
	if r.options.Balancers != nil {
		err = r.options.Balancers.Close()
	}
	if r.options.Attachments == nil {
		return err
	}
	r.mu.Lock()
	r.closed = true
	last := r.cloud
	r.mu.Unlock()
	return errors.Join(err, r.endBodies(last))
}

// endBodies ends the work of a cloud that is over, and clears the bodies.
func (r *Region) endBodies(last *cloud) error {
	if r.options.Attachments == nil {
		return nil
	}
	last.block.cancel()
	last.block.jobs.Wait()
	return r.bodies.note(r.options.Attachments.Clear(context.Background()))
}

// note keeps an error and returns it.
func (b *bodyErrors) note(err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("body of an attachment: %w", err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, err)
	return err
}

// BodyErrors returns the errors of the AttachmentBody so far. Most are visible in states and work requests, too.
func (r *Region) BodyErrors() []error {
	r.bodies.mu.Lock()
	defer r.bodies.mu.Unlock()
	return slices.Clone(r.bodies.list)
}

// errRegionClosed is the result of work that begins after Close.
var errRegionClosed = errors.New("the region is closed")

// withBody runs work without the region's lock and then with it. Work about one identifier runs in the order of the
// calls. Where attachments have no body, then runs at once.
func (cl *cloud) withBody(work func(context.Context, AttachmentBody) error, then func(error), about ...string) {
	r, body := cl.region, cl.options.Attachments
	if body == nil {
		then(nil)
		return
	}
	if r.closed {
		then(errRegionClosed)
		return
	}
	cl.after(0, func() {}) // by which a fault on work knows that the call has started something
	done := make(chan struct{})
	var earlier []chan struct{}
	for _, id := range about {
		if last := cl.block.working[id]; last != nil {
			earlier = append(earlier, last)
		}
		cl.block.working[id] = done
	}
	cl.block.jobs.Go(func() {
		for _, ch := range append(earlier, cl.block.ready) {
			<-ch
		}
		err := cl.block.ctx.Err()
		if err == nil {
			err = r.bodies.note(work(cl.block.ctx, body))
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		close(done)
		for _, id := range about {
			if cl.block.working[id] == done {
				delete(cl.block.working, id)
			}
		}
		if r.cloud != cl {
			return // the region was reset
		}
		cl.settle(r.Now())
		then(err)
	})
}

// giveBody makes an attachment appear.
func (cl *cloud) giveBody(id string, then func(error)) {
	a := cl.bodyAttachment(id)
	cl.block.appeared[id] = true
	cl.withBody(func(ctx context.Context, body AttachmentBody) error { return body.Attach(ctx, a) }, func(err error) {
		if err != nil {
			delete(cl.block.appeared, id)
		}
		then(err)
	}, a.Volume)
}

// takeBody makes an attachment disappear, if it had appeared.
func (cl *cloud) takeBody(id string, then func(error)) {
	if !cl.block.appeared[id] {
		then(nil)
		return
	}
	a := cl.bodyAttachment(id)
	delete(cl.block.appeared, id)
	cl.withBody(func(ctx context.Context, body AttachmentBody) error { return body.Detach(ctx, a) }, func(err error) {
		if err != nil {
			cl.block.appeared[id] = true
		}
		then(err)
	}, a.Volume)
}

// blockState is what the engine keeps about volumes and attachments beside their models.
type blockState struct {
	tuning   map[string]*event        // waits for auto-tuning, by volume
	appeared map[string]bool          // attachments whose body is there or coming
	working  map[string]chan struct{} // the last work on bodies about a volume or backup

	ready  chan struct{} // closed when the bodies of an earlier world are cleared
	ctx    context.Context
	cancel context.CancelFunc
	jobs   *sync.WaitGroup
}

func newBlockState() blockState {
	s := blockState{
		tuning: map[string]*event{}, appeared: map[string]bool{}, working: map[string]chan struct{}{},
		ready: make(chan struct{}), jobs: &sync.WaitGroup{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

func (cl *cloud) bodyAttachment(id string) BodyAttachment {
	a := volumeAttachments.find(cl, id)
	m := &a.Model
	b := BodyAttachment{
		ID: id, Volume: a.volume(), Instance: a.instance(), Type: a.How, Device: a.device(), ReadOnly: value(m.IsReadOnly),
	}
	if v := volumes.find(cl, b.Volume); v != nil {
		b.Bytes = value(v.SizeInGBs) * gigabyte
	}
	if a.How == attachISCSI {
		b.IQN, b.Port, b.LUN, b.Portals = value(m.Iqn), value(m.Port), iscsiLUN, []string{value(m.Ipv4)}
		for _, d := range m.MultipathDevices {
			b.Portals = append(b.Portals, value(d.Ipv4))
		}
		b.CHAPUser, b.CHAPSecret = value(m.ChapUsername), value(m.ChapSecret)
	}
	return b
}

// seedBody makes an attachment appear that a seed made.
func (cl *cloud) seedBody(id string) {
	cl.giveBody(id, func(err error) {
		if err != nil {
			cl.endAttachment(id)
		}
	})
}
