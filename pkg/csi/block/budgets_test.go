// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/oracle/oci-go-sdk/v65/core"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// The region of the budgets: L and R, and what a sidecar waits for an answer.
const (
	budgetLatency = 100 * time.Millisecond
	budgetRate    = 20.0
	sidecarWaits  = 2 * time.Minute
)

func exactly(d time.Duration) ocisim.Range { return ocisim.Range{Min: d, Max: d} }

func budgetRegion() ocisim.Options {
	rate := ocisim.Rate{PerSecond: budgetRate, Burst: budgetRate}
	return ocisim.Options{
		PageSize: 1000, Read: rate, Write: rate, Latency: map[string]ocisim.Range{"*": exactly(budgetLatency)},
		Durations: map[string]ocisim.Range{
			"volume.create": exactly(2 * time.Second), "volumeattachment.attach": exactly(3 * time.Second), "work.accept": exactly(0),
		},
	}
}

// TestAttachmentsAreAnsweredSoon: P8. From the moment at which the cloud has attached a volume to the answer.
func TestAttachmentsAreAnsweredSoon(t *testing.T) {
	o := budgetRegion()
	o.Durations["volumeattachment.attach"] = ocisim.Range{Min: time.Second, Max: 6 * time.Second}
	inBed(t, o, func(b *bed) {
		b.limits = oci.RateLimits{}
		b.start()
		c := spec.NewControllerClient(b.dial())
		const n = 50
		late := make([]time.Duration, 0, n)
		for i := range n {
			volume := b.volume()
			answered := make(chan time.Time, 1)
			go func() {
				ctx, cancel := context.WithTimeout(b.Context(), sidecarWaits)
				defer cancel()
				if _, err := c.ControllerPublishVolume(ctx, publish(volume, []string{"node-1", "node-2"}[i%2])); err != nil {
					b.Error(err)
				}
				answered <- time.Now()
			}()
			ready := b.attachedAt(volume)
			late = append(late, (<-answered).Sub(ready))
			must(b, b.c.ControllerUnpublishVolume, &spec.ControllerUnpublishVolumeRequest{VolumeId: volume})
		}
		slices.Sort(late)
		middle, worst := late[n/2], late[n*99/100]
		if middle > 500*time.Millisecond || worst > 1500*time.Millisecond {
			b.Error("over budget")
		}
		b.Logf("budget P8: p50 %.2f s, p99 %.2f s", middle.Seconds(), worst.Seconds())
	})
}

// attachedAt waits until a volume is attached, past the network, and returns when that was.
func (b *bed) attachedAt(volume string) time.Time {
	for range 400 {
		for _, a := range b.open() {
			if *a.GetVolumeId() == volume && a.GetLifecycleState() == core.VolumeAttachmentLifecycleStateAttached {
				return time.Now()
			}
		}
		time.Sleep(25 * time.Millisecond)
	}
	b.Fatalf("volume %s is not attached", volume)
	return time.Time{}
}

// crowd is 500 claims, each with a pod on one of 20 nodes, and what has become of them.
type crowd struct {
	*bed
	c spec.ControllerClient

	mu     sync.Mutex
	failed []error // operations that were not a success at the first call
}

const crowdVolumes, crowdNodes = 500, 20

func inCrowd(t *testing.T, test func(c *crowd)) {
	t.Helper()
	inBed(t, budgetRegion(), func(b *bed) {
		b.limits = oci.RateLimits{} // the defaults of the binary
		b.start()
		for i := range crowdNodes {
			b.addNode(fmt.Sprintf("crowd-%d", i))
		}
		time.Sleep(time.Minute)
		b.cluster.claim.Created = time.Now()
		c := &crowd{bed: b, c: spec.NewControllerClient(b.dial())}
		b.region.ResetCalls()
		test(c)
	})
}

// provision makes and attaches all volumes, as external-provisioner and external-attacher do with their 100 workers each, and returns how long
// that took.
func (c *crowd) provision() time.Duration {
	began := time.Now()
	provisioner, attacher := make(chan struct{}, 100), make(chan struct{}, 100)
	var all sync.WaitGroup
	for i := range crowdVolumes {
		all.Go(func() {
			var made *spec.CreateVolumeResponse
			insist(c, provisioner, func(ctx context.Context) (err error) {
				made, err = c.c.CreateVolume(ctx, c.ask(func(r *spec.CreateVolumeRequest) { r.Name = fmt.Sprintf("csi-6f1c9ab0-52b4-4f63-9d4e-%012x", i) }))
				return err
			})
			r := publish(made.GetVolume().GetVolumeId(), fmt.Sprintf("crowd-%d", i%crowdNodes))
			insist(c, attacher, func(ctx context.Context) error {
				_, err := c.c.ControllerPublishVolume(ctx, r)
				return err
			})
		})
	}
	all.Wait()
	return time.Since(began)
}

// insist calls until it succeeds, on one of the workers.
func insist(c *crowd, workers chan struct{}, call func(context.Context) error) {
	for range 100 {
		workers <- struct{}{}
		ctx, cancel := context.WithTimeout(c.Context(), sidecarWaits)
		err := call(ctx)
		cancel()
		<-workers
		if err == nil {
			return
		}
		c.mu.Lock()
		c.failed = append(c.failed, err)
		c.mu.Unlock()
		time.Sleep(time.Second)
	}
	c.Error("it never succeeds")
}

// served counts the calls that the cloud did, and those that it refused because of their rate.
func (c *crowd) served() (done, throttled int) {
	for _, call := range c.region.Calls() {
		switch call.Status {
		case http.StatusTooManyRequests:
			throttled++
		default:
			done++
		}
	}
	return done, throttled
}

// TestManyClaims: P10. 500 volumes are made and attached as fast as R allows, at few calls each.
func TestManyClaims(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds; it is in LONG of the Makefile")
	}
	inCrowd(t, func(c *crowd) {
		took := c.provision()
		calls, throttled := c.served()
		// The volumes and the attachments have a budget each, and are made side by side; the last one takes the time of the cloud.
		rate := crowdVolumes / (took - 5*time.Second).Seconds()
		perVolume := float64(calls) / crowdVolumes
		c.Logf("budget P10: %.0f %% of R, %.1f calls per volume", 100*rate/budgetRate, perVolume)
		c.Logf("%v, %d calls, %d throttled: %v", took, calls, throttled, c.region.Counts())
		if rate < 0.8*budgetRate || perVolume > 6 || len(c.failed) > 0 {
			c.Errorf("over budget; failed %v", c.failed)
		}
	})
}

// TestThrottledClaims: P11. The cloud takes half of the calls for a minute. Everything takes longer, and nothing fails.
func TestThrottledClaims(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds; it is in LONG of the Makefile")
	}
	inCrowd(t, func(c *crowd) {
		set := func(rate float64) {
			if err := c.region.Configure(func(o *ocisim.Options) error {
				o.Read = ocisim.Rate{PerSecond: rate, Burst: int(rate)}
				o.Write = o.Read
				return nil
			}); err != nil {
				c.Error(err)
			}
		}
		var from, to time.Time
		var half sync.WaitGroup
		half.Go(func() {
			time.Sleep(10 * time.Second)
			set(budgetRate / 2)
			from = time.Now()
			time.Sleep(time.Minute)
			to = time.Now()
			set(budgetRate)
		})
		took := c.provision()
		half.Wait()
		most := 0.0
		for kind, n := range c.calls(from, to) {
			most = max(most, float64(n)/to.Sub(from).Seconds())
			c.Logf("%s: %d calls in the minute", kind, n)
		}
		_, throttled := c.served()
		c.Logf("budget P11: %d failed operations, at most %.1f calls/s of a kind while R is %.0f/s, %d of them told to wait", len(c.failed), most, budgetRate/2, throttled)
		c.Logf("it took %v", took)
		if len(c.failed) > 0 || most > budgetRate {
			c.Errorf("over budget; failed %v", c.failed)
		}
		for _, err := range c.failed {
			if code := status.Code(err); code != codes.Aborted && code != codes.DeadlineExceeded {
				c.Errorf("%s: %v", code, err)
			}
		}
	})
}

// calls counts the calls of each service in each direction.
func (c *crowd) calls(from, to time.Time) map[string]int {
	out := map[string]int{}
	for _, call := range c.region.Calls() {
		if call.Time.Before(from) || call.Time.After(to) {
			continue
		}
		direction := "read"
		if call.Write {
			direction = "write"
		}
		out[call.Service+"."+direction]++
	}
	return out
}
