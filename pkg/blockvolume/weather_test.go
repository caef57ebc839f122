// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// TestVolumesInBadWeather lets claims come and go and move between nodes while requests and answers are lost, the cloud
// throttles and fails, lists lag behind in short pages, and processes are replaced. In the end there is what was wanted last, and
// nothing else.
func TestVolumesInBadWeather(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds; it is in LONG of the Makefile")
	}
	for seed := range uint64(6) {
		o := ocisim.Options{Seed: seed, PageSize: 3, ShortPages: 0.2, EventualReads: int(seed % 4), Read: ocisim.Rate{PerSecond: 50, Burst: 50}}
		simulate(t, o, func(r *rig) {
			for _, f := range []ocisim.Fault{
				{Writes: true, Chance: 0.1, Drop: ocisim.BeforeApply}, {Writes: true, Chance: 0.15, Drop: ocisim.AfterApply}, {Chance: 0.03, Status: 500},
				{Chance: 0.03, Status: 429}, {Writes: true, Chance: 0.05, Status: 503, Applied: true}, {Chance: 0.02, HalfBody: true},
			} {
				f.Operation = "blockstorage.*"
				r.region.Fault(f)
				f.Operation = "compute.*"
				r.region.Fault(f)
			}
			const claims = 8
			all := make([]*claim, claims)
			done := make(chan struct{})
			var current atomic.Pointer[blockvolume.Service]
			current.Store(r.s)
			go func() { // the process is replaced now and then
				for {
					select {
					case <-done:
						return
					case <-time.After(97 * time.Second):
						current.Store(r.newService(r.region.Transport()))
					}
				}
			}()
			together(claims, func(i int) {
				all[i] = &claim{rig: r, service: current.Load, name: numbered(i), random: rand.New(rand.NewPCG(seed, uint64(i)))}
				for range 6 {
					all[i].step()
				}
			})
			close(done)
			time.Sleep(10 * time.Minute)
			volumes, attachments := map[string]bool{}, map[string]string{}
			for _, c := range all {
				if c.id != "" {
					volumes[c.id] = true
				}
				if c.node != "" {
					attachments[c.id] = c.node
				}
			}
			for _, v := range r.living() {
				if !volumes[*v.Id] {
					r.Errorf("seed %d: volume %s (%s) is nobody's", seed, *v.Id, *v.DisplayName)
				}
				delete(volumes, *v.Id)
			}
			for _, a := range r.open() {
				if attachments[*a.GetVolumeId()] != *a.GetInstanceId() {
					r.Errorf("seed %d: volume %s is attached to %s", seed, *a.GetVolumeId(), *a.GetInstanceId())
				}
				delete(attachments, *a.GetVolumeId())
			}
			if len(volumes) > 0 || len(attachments) > 0 {
				r.Errorf("seed %d: volumes %v and attachments %v are missing", seed, volumes, attachments)
			}
		})
	}
}

// claim is what a user wants of one volume, and what it has come to.
type claim struct {
	*rig
	service  func() *blockvolume.Service
	name     string
	random   *rand.Rand
	id, node string
	size     int64
}

// step changes what is wanted, and repeats the request until it is.
func (c *claim) step() {
	switch {
	case c.id == "":
		c.size = 50
		c.insist("create", func(ctx context.Context) error {
			v, err := c.service().Create(ctx, c.request(func(q *createRequest) { q.Name = c.name }))
			if err == nil {
				c.id = v.ID
			}
			return err
		})
	case c.node != "" && c.random.IntN(3) > 0:
		node := c.node
		c.insist("detach", func(ctx context.Context) error {
			return c.service().Detach(ctx, blockvolume.DetachRequest{VolumeID: c.id, InstanceID: node})
		})
		c.node = ""
	case c.node == "" && c.random.IntN(4) == 0:
		c.insist("delete", func(ctx context.Context) error { return c.service().Delete(ctx, c.id) })
		c.id, c.name = "", c.name[:len(c.name)-6]+c.fresh() // a new claim has a new name
	case c.node == "":
		node := []string{c.one, c.two}[c.random.IntN(2)]
		c.insist("attach", func(ctx context.Context) error {
			_, err := c.service().Attach(ctx, blockvolume.AttachRequest{VolumeID: c.id, InstanceID: node})
			return err
		})
		c.node = node
	default:
		c.size += 10
		c.insist("expand", func(ctx context.Context) error {
			v, err := c.service().Expand(ctx, c.id, c.size*gib, 0)
			if err == nil && v.SizeBytes != c.size*gib {
				c.Errorf("expanded to %d, want %d GiB", v.SizeBytes/gib, c.size)
			}
			return err
		})
	}
}

func (c *claim) fresh() string {
	digits := []byte("0123456789abcdef")
	out := make([]byte, 6)
	for i := range out {
		out[i] = digits[c.random.IntN(len(digits))]
	}
	return string(out)
}

// insist repeats a request as a sidecar does. Refusals that only the weather explains are none.
func (c *claim) insist(what string, call func(context.Context) error) {
	var last error
	for range 60 {
		_, last = within(c.rig, 60*time.Second, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) })
		if last == nil {
			return
		}
		retryable := []error{blockvolume.ErrPending, blockvolume.ErrUnavailable}
		if !slices.ContainsFunc(retryable, func(kind error) bool { return isOneOf(last, kind) }) {
			c.Logf("%s of %s: %v", what, c.name, last)
		}
		time.Sleep(time.Second)
	}
	c.Errorf("%s of %s: %v", what, c.name, last)
}
