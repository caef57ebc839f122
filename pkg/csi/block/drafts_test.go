// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/oracle/oci-go-sdk/v65/core"
	"google.golang.org/grpc/codes"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// notebook is a memory for drafts, and for what becomes of them.
type notebook struct {
	mu     sync.Mutex
	drafts map[string]*block.Draft
	keeps  int
	broken error
}

func (n *notebook) Keep(_ context.Context, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.broken != nil {
		return n.broken
	}
	n.keeps++
	if n.drafts[name] == nil {
		n.drafts[name] = &block.Draft{Name: name, HasClaim: true}
	}
	return nil
}

func (n *notebook) Drop(_ context.Context, names ...string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range names {
		delete(n.drafts, name)
	}
	return nil
}

func (n *notebook) List(context.Context) ([]block.Draft, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []block.Draft
	for _, d := range n.drafts {
		out = append(out, *d)
	}
	return out, n.broken
}

// living counts the volumes that are not gone.
func (b *bed) living() int {
	n := 0
	for _, v := range b.region.Volumes() {
		if v.LifecycleState != core.VolumeLifecycleStateTerminated && v.LifecycleState != core.VolumeLifecycleStateTerminating {
			n++
		}
	}
	return n
}

// TestDrafts: C084. A process ends while it makes a volume, and nobody asks for it again: the provisioner has ended, too, and the claim is
// gone. The next process deletes it; but neither what will be asked for again, nor what has become a PersistentVolume, nor anything of others.
func TestDrafts(t *testing.T) {
	for name, tt := range map[string]struct {
		fate func(*block.Draft)
		left int
		kept bool
	}{
		"claim and volume are gone": {func(d *block.Draft) { d.HasClaim = false }, 0, false},
		"the claim is there":        {func(*block.Draft) {}, 1, true},
		"it is a PersistentVolume":  {func(d *block.Draft) { d.HasClaim, d.HasVolume = false, true }, 1, false},
		"both are there":            {func(d *block.Draft) { d.HasVolume = true }, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, ocisim.Options{}, func(b *bed) {
				notes := &notebook{drafts: map[string]*block.Draft{}}
				run := func() (end func()) {
					ctx, cancel := context.WithCancel(b.Context())
					b.start(func(o *block.ControllerOptions) { o.Drafts = notes })
					go b.c.CollectDrafts(ctx)
					return cancel
				}
				stranger := b.volume(func(v *ocisim.Volume) { v.Name = newName })
				end := run()
				time.Sleep(time.Second)
				b.cluster.claim.Created = time.Now() // so that no earlier process can have made it
				ctx, cancel := context.WithTimeout(b.Context(), 2*time.Second)
				if _, err := b.c.CreateVolume(ctx, b.ask(func(r *spec.CreateVolumeRequest) { r.Name += "0" })); err == nil {
					b.Fatal("made in no time")
				}
				cancel()
				end()
				synctest.Wait()
				if notes.keeps != 1 || b.living() != 2 {
					b.Fatalf("%d names kept, %d volumes", notes.keeps, b.living())
				}
				tt.fate(notes.drafts[newName+"0"])
				end = run()
				time.Sleep(5 * time.Minute)
				end()
				synctest.Wait()
				if got := b.living() - 1; got != tt.left || (len(notes.drafts) == 1) != tt.kept {
					b.Errorf("%d volumes, drafts %v; want %d, %v", got, notes.drafts, tt.left, tt.kept)
				}
				if v, _ := b.region.Volume(stranger); v.LifecycleState != core.VolumeLifecycleStateAvailable {
					b.Errorf("the volume of somebody else is %s", v.LifecycleState)
				}
			})
		})
	}
}

// TestDraftsAreKeptFirst: nothing is made without a note, and a request that is repeated writes none again.
func TestDraftsAreKeptFirst(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		notes := &notebook{drafts: map[string]*block.Draft{}, broken: errors.New("no API server")}
		b.start(func(o *block.ControllerOptions) { o.Drafts = notes })
		_, err := call(b, b.c.CreateVolume, b.ask())
		b.refused(err, codes.Unavailable)
		if w := b.writes(); len(w) != 0 {
			b.Errorf("writes %v", w)
		}
		notes.broken = nil
		for range 3 {
			must(b, b.c.CreateVolume, b.ask())
		}
		if notes.keeps != 1 {
			b.Errorf("%d notes", notes.keeps)
		}
	})
}
