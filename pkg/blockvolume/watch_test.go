// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// P8: from the moment the cloud is ready to the answer.
func TestAttachIsSeenSoon(t *testing.T) {
	d := durations()
	d["volumeattachment.attach"] = ocisim.Range{Min: time.Second, Max: 6 * time.Second}
	simulate(t, ocisim.Options{Durations: d}, func(r *rig) {
		random := rand.New(rand.NewPCG(1, 2))
		var late []time.Duration
		for range 25 {
			volume := r.volume()
			began := time.Now()
			var ready time.Time
			done := make(chan struct{})
			go func() { // looks every 50 ms, past the network
				defer close(done)
				for ready.IsZero() {
					time.Sleep(50 * time.Millisecond)
					for _, a := range r.region.VolumeAttachments() {
						if *a.GetVolumeId() == volume && a.GetLifecycleState() == core.VolumeAttachmentLifecycleStateAttached {
							ready = time.Now()
						}
					}
				}
			}()
			a := r.mustAttach(volume, r.one)
			answered := time.Now()
			<-done
			late = append(late, answered.Sub(ready))
			if answered.Sub(began) > 10*time.Second {
				t.Errorf("attached after %v", answered.Sub(began))
			}
			if err := r.detach(detachRequest{VolumeID: volume, InstanceID: a.InstanceID}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
		}
		slices.Sort(late)
		if late[12] > 500*time.Millisecond || late[24] > 1500*time.Millisecond {
			t.Errorf("answers are %v late in the middle, %v at worst", late[12], late[24])
		}
		t.Logf("answers are %v late in the middle, %v at worst", late[12], late[24])
	})
}

// P10: what a volume costs in calls, waits included, where many are made and attached at once.
func TestManyVolumesCostFewCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds; it is in LONG of the Makefile")
	}
	d := durations()
	d["volume.create"] = ocisim.Range{Min: 2 * time.Second, Max: 2 * time.Second}
	d["volumeattachment.attach"] = ocisim.Range{Min: 3 * time.Second, Max: 3 * time.Second}
	simulate(t, ocisim.Options{Durations: d, PageSize: 1000, Write: ocisim.Rate{PerSecond: 20, Burst: 20}}, func(r *rig) {
		const volumes, nodes = 500, 20
		r.limits = oci.RateLimits{Read: oci.RateLimit{QPS: 100, Burst: 20}, Write: oci.RateLimit{QPS: 20, Burst: 5}}
		r.restart()
		time.Sleep(time.Minute)
		r.region.ResetCalls()
		var instances []string
		for i := range nodes {
			instances = append(instances, r.instance(numbered(i)))
		}
		began := time.Now()
		together(volumes, func(i int) {
			for {
				v, err := r.create(func(q *createRequest) { q.Name = numbered(i) })
				if err == nil {
					_, err = r.attach(v.ID, instances[i%nodes])
				}
				if err == nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		took := time.Since(began)
		served := 0
		for _, c := range r.region.Calls() {
			if c.Status == 200 {
				served++
			}
		}
		if served > 6*volumes {
			t.Errorf("%d calls for %d volumes: %v", served, volumes, r.region.Counts())
		}
		// Writes go to two services with 20 a second each, one after the other for one volume.
		if took > 50*time.Second {
			t.Errorf("it took %v", took)
		}
		t.Logf("%d calls in %v: %v", served, took, r.region.Counts())
	})
}
