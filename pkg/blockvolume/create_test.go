// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

type createRequest = blockvolume.CreateRequest

func TestCreate(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		v := r.mustCreate(func(q *createRequest) {
			q.RequiredBytes, q.VPUsPerGB, q.KMSKeyID = 70*gib, common.Int64(20), "ocid1.key.oc1..k"
			q.AutoTune = oci.AutoTune{Detached: true, MaxVPUs: 40}
			q.Tags.Freeform = map[string]string{"team": "a"}
			q.Notes = map[string]string{"pvc": "data", "team": "note"}
		})
		if v.SizeBytes != 70*gib || v.AvailabilityDomain != r.ad || v.State != oci.VolumeAvailable || v.Grow || v.Unmarked {
			t.Errorf("volume %+v", v)
		}
		made, _ := r.region.Volume(v.ID)
		// C107, C108: what is asked for is what the cloud has.
		want := map[string]string{"oci-k8s-cluster": clusterID, "oci-k8s-owner": name, "team": "a", "pvc": "data"}
		if diff := cmp.Diff(want, made.FreeformTags); diff != "" {
			t.Error(diff)
		}
		if *made.VpusPerGB != 20 || *made.KmsKeyId != "ocid1.key.oc1..k" || *made.DisplayName != name || len(made.AutotunePolicies) != 2 {
			t.Errorf("volume %v", made)
		}
		counts := r.region.Counts()
		if counts["blockstorage.GetVolume"] > 11 {
			t.Errorf("%d looks in 8 s", counts["blockstorage.GetVolume"])
		}
		delete(counts, "blockstorage.GetVolume")
		if diff := cmp.Diff(map[string]int{"blockstorage.ListVolumes": 1, "identity.ListAvailabilityDomains": 1, "blockstorage.CreateVolume": 1}, counts); diff != "" {
			t.Error(diff)
		}

		// The second one costs a read, and no write.
		r.region.ResetCalls()
		again := r.mustCreate(func(q *createRequest) {
			q.RequiredBytes, q.VPUsPerGB, q.KMSKeyID = 70*gib, common.Int64(20), "ocid1.key.oc1..k"
		})
		if again.ID != v.ID {
			t.Errorf("another volume")
		}
		if diff := cmp.Diff(map[string]int{"blockstorage.ListVolumes": 1}, r.region.Counts()); diff != "" {
			t.Error(diff)
		}
	})
}

// C085: the same name with another parameter is no other volume.
func TestSameNameOtherParameters(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		source, backup := r.volume(), ""
		backup = r.region.AddVolumeBackup(ocisim.VolumeBackup{Volume: source})
		v := r.mustCreate()
		for name, change := range map[string]func(*createRequest){
			"larger":              func(q *createRequest) { q.RequiredBytes = 100 * gib },
			"another domain":      func(q *createRequest) { q.Domains = []string{r.elsewhere} },
			"another key":         func(q *createRequest) { q.KMSKeyID = "ocid1.key.oc1..k" },
			"another performance": func(q *createRequest) { q.VPUsPerGB = common.Int64(0) },
			"a snapshot":          func(q *createRequest) { q.SnapshotID = backup },
			"a clone":             func(q *createRequest) { q.CloneID = source },
		} {
			_, err := r.create(change)
			t.Log(name, err)
			r.refused(err, blockvolume.ErrExists)
		}
		for name, change := range map[string]func(*createRequest){
			"smaller":             func(q *createRequest) { q.RequiredBytes = gib },
			"a range around it":   func(q *createRequest) { q.RequiredBytes, q.LimitBytes = gib, 60*gib },
			"any domain of two":   func(q *createRequest) { q.Domains = []string{r.elsewhere, r.ad} },
			"default performance": func(q *createRequest) { q.VPUsPerGB = common.Int64(10) },
		} {
			if again, err := r.create(change); err != nil || again.ID != v.ID {
				t.Errorf("%s: %v, %v", name, again, err)
			}
		}
		r.calls("blockstorage.CreateVolume", 1)
	})
}

// A volume that the existing implementation made as large as its limit is what is asked for.
func TestVolumeOfTheExistingImplementationIsFound(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		id := r.volume(func(v *ocisim.Volume) { v.Name, v.SizeInGBs = name, 100 })
		v := r.mustCreate(func(q *createRequest) { q.RequiredBytes, q.LimitBytes = 70*gib, 100*gib })
		if v.ID != id || !v.Unmarked {
			t.Errorf("got %+v, want %s", v, id)
		}
		// A name that anybody may give proves nothing, and what another cluster has marked is the other cluster's.
		r.volume(func(v *ocisim.Volume) { v.Name = "data" })
		r.region.AddVolume(ocisim.Volume{Compartment: r.compartment, AvailabilityDomain: r.ad, Name: numbered(1), Tags: ocisim.Tags{
			Freeform: map[string]string{"oci-k8s-cluster": "cluster-2", "oci-k8s-owner": numbered(1)},
		}})
		before := len(r.living())
		for _, name := range []string{"data", numbered(1)} {
			r.mustCreate(func(q *createRequest) { q.Name = name })
		}
		if n := len(r.living()); n != before+2 {
			t.Errorf("%d volumes, want %d", n, before+2)
		}
	})
}

// C084: whatever is lost, there is one volume in the end.
func TestLostCreates(t *testing.T) {
	for name, fault := range map[string]ocisim.Fault{
		"call lost":            {Drop: ocisim.BeforeApply, Nth: 1},
		"answer lost":          {Drop: ocisim.AfterApply, Nth: 1},
		"answer lost for long": {Drop: ocisim.AfterApply, Nth: 1, Times: 20},
		"late answer":          {Applied: true, Delay: 60 * time.Second, Nth: 1},
		"error, but done":      {Applied: true, Status: 500, Nth: 1, Times: 20},
		"half an answer":       {HalfBody: true, Nth: 1},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, ocisim.Options{PageSize: 2, EventualReads: 2}, func(r *rig) {
				for n := range 5 { // so that there are pages
					r.volume(func(v *ocisim.Volume) { v.Name = numbered(n) })
				}
				fault.Operation = "CreateVolume"
				r.region.Fault(fault)
				var v *blockvolume.Provisioned
				for range 30 {
					var err error
					v, err = within(r, 10*time.Second, func(ctx context.Context) (*blockvolume.Provisioned, error) { return r.s.Create(ctx, r.request()) })
					if err == nil {
						break
					}
					if !isOneOf(err, blockvolume.ErrPending, blockvolume.ErrUnavailable) {
						t.Fatalf("an error that the provisioner takes for final: %v", err)
					}
				}
				if v == nil || len(r.living()) != 6 {
					t.Errorf("%d volumes, got %v", len(r.living()), v)
				}
			})
		})
	}
}

// C084: another process, after the first one was killed with its answer, and with another wish: the class was changed.
func TestNewProcessWithAnotherWish(t *testing.T) {
	simulate(t, ocisim.Options{EventualReads: 1}, func(r *rig) {
		well := r.region.Fault(ocisim.Fault{Operation: "CreateVolume", Drop: ocisim.AfterApply, Nth: 1, Times: 100})
		_, err := within(r, 5*time.Second, func(ctx context.Context) (*blockvolume.Provisioned, error) { return r.s.Create(ctx, r.request()) })
		r.refused(err, blockvolume.ErrUnavailable)
		well()
		r.restart()
		// The volume does not show up in the first list. Under another retry token it would be made a second time.
		_, err = r.create(func(q *createRequest) { q.VPUsPerGB = common.Int64(20) })
		r.refused(err, blockvolume.ErrExists)
		if n := len(r.living()); n != 1 {
			t.Errorf("%d volumes", n)
		}
	})
}

// A wish that came after the start of the process was known to no other one: it need not wait.
func TestFreshWishDoesNotWait(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		r.restart()
		time.Sleep(time.Second)
		began := time.Now()
		r.mustCreate(func(q *createRequest) { q.Asked = began })
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		r.restart()
		began = time.Now()
		r.mustCreate(func(q *createRequest) { q.Name = numbered(1) })
		if took := time.Since(began); took < 30*time.Second {
			t.Errorf("without that it took %v", took)
		}
	})
}

// C086: a FAULTY volume is removed, and the next request makes a good one.
func TestFaultyVolume(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		r.region.Fault(ocisim.Fault{Operation: "CreateVolume", FailWork: true, Times: 1, Nth: 1})
		_, err := r.create()
		r.refused(err, blockvolume.ErrFailed)
		if err == nil || !strings.Contains(err.Error(), "FAULTY") {
			t.Errorf("error %v", err)
		}
		if n := len(r.living()); n != 0 {
			t.Errorf("%d volumes are left", n)
		}
		r.mustCreate()
		if n := len(r.living()); n != 1 {
			t.Errorf("%d volumes", n)
		}

		// One that a killed process left is removed before the next is made.
		r.volumeState(*r.living()[0].Id, core.VolumeLifecycleStateFaulty)
		r.restart()
		r.mustCreate()
		if list := r.living(); len(list) != 1 || list[0].LifecycleState != core.VolumeLifecycleStateAvailable {
			t.Errorf("volumes %v", list)
		}
	})
}

// C086: a volume that is still being made is no error, and nothing to make again.
func TestVolumeStaysProvisioning(t *testing.T) {
	d := durations()
	d["volume.create"] = ocisim.Range{Min: 10 * time.Minute, Max: 10 * time.Minute}
	simulate(t, ocisim.Options{Durations: d}, func(r *rig) {
		for range 4 {
			_, err := r.create()
			r.refused(err, blockvolume.ErrPending)
		}
		time.Sleep(5 * time.Minute)
		r.mustCreate()
		r.calls("blockstorage.CreateVolume", 1)
	})
}

// Where a domain has no room, only a domain that the request names is tried next.
func TestOutOfCapacity(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		r.region.SetBehaviour(func(b *ocisim.Behaviour) { b.VolumeCapacity[r.ad] = 0 })
		began := time.Now()
		_, err := r.create()
		r.refused(err, blockvolume.ErrExhausted)
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v: a refusal was repeated", took)
		}
		v := r.mustCreate(func(q *createRequest) { q.Domains = []string{r.ad, r.elsewhere} })
		if v.AvailabilityDomain != r.elsewhere {
			t.Errorf("made in %s", v.AvailabilityDomain)
		}
		r.region.SetBehaviour(func(b *ocisim.Behaviour) { b.VolumeCapacity = nil; b.ServiceLimits["volume-count"] = 1 })
		_, err = r.create(func(q *createRequest) { q.Name = numbered(1) })
		r.refused(err, blockvolume.ErrExhausted)
		if n := len(r.living()); n != 1 {
			t.Errorf("%d volumes", n)
		}
	})
}

// An answer that was lost outweighs a refusal in another domain: the volume may be on its way.
func TestNoExhaustionWhileACreateIsInDoubt(t *testing.T) {
	simulate(t, ocisim.Options{EventualReads: 3}, func(r *rig) {
		r.region.Fault(ocisim.Fault{Operation: "CreateVolume", Drop: ocisim.AfterApply, Nth: 1, Times: 100})
		_, err := within(r, 5*time.Second, func(ctx context.Context) (*blockvolume.Provisioned, error) { return r.s.Create(ctx, r.request()) })
		r.refused(err, blockvolume.ErrUnavailable)
		r.region.SetBehaviour(func(b *ocisim.Behaviour) { b.VolumeCapacity[r.elsewhere] = 0 })
		_, err = within(r, 10*time.Second, func(ctx context.Context) (*blockvolume.Provisioned, error) {
			return r.s.Create(ctx, r.request(func(q *createRequest) { q.Domains = []string{r.elsewhere} }))
		})
		if isOneOf(err, blockvolume.ErrExhausted) || err == nil {
			t.Errorf("error %v, while there are %d volumes", err, len(r.living()))
		}
	})
}

func TestDomains(t *testing.T) {
	simulate(t, ocisim.Options{AvailabilityDomains: []string{"Uocm:PHX-AD-1", "Uocm:PHX-AD-11", "Uocm:PHX-AD-2"}}, func(r *rig) {
		for wanted, want := range map[string]string{
			"PHX-AD-1": "Uocm:PHX-AD-1", "phx-ad-2": "Uocm:PHX-AD-2", "Uocm:PHX-AD-11": "Uocm:PHX-AD-11", "AD-1": "", "1": "", "": "",
		} {
			v, err := r.create(func(q *createRequest) {
				q.Name, q.Domains = "csi-"+strings.Repeat("0", 8)+"-0000-0000-0000-"+fmt.Sprintf("%012d", len(r.living())), []string{wanted}
			})
			switch {
			case want == "":
				r.refused(err, blockvolume.ErrInvalid)
			case err != nil || v.AvailabilityDomain != want:
				t.Errorf("%q became %v, %v", wanted, v, err)
			}
		}
		_, err := r.create(func(q *createRequest) { q.Name, q.Domains = numbered(9), nil })
		r.refused(err, blockvolume.ErrInvalid)
	})

}

// C107: tags give way where there is no room, the most useful ones last.
func TestTagsThatDoNotFit(t *testing.T) {
	many := func(n int) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[fmt.Sprintf("tag-%d", i)] = "x"
		}
		return out
	}
	simulate(t, ocisim.Options{}, func(r *rig) {
		for i, tt := range []struct {
			tags, want int
			unmarked   bool
		}{{5, 10, false}, {8, 10, false}, {9, 9, true}} {
			v := r.mustCreate(func(q *createRequest) {
				q.Name, q.Tags.Freeform = numbered(i), many(tt.tags)
				q.Notes = map[string]string{"pvc": "a", "pv": "b", "namespace": "c"}
			})
			made, _ := r.region.Volume(v.ID)
			if len(made.FreeformTags) != tt.want || v.Unmarked != tt.unmarked {
				t.Errorf("%d tags of the user: %v, unmarked %v", tt.tags, made.FreeformTags, v.Unmarked)
			}
			// Without marks it is found by its name.
			if again := r.mustCreate(func(q *createRequest) { q.Name = numbered(i) }); again.ID != v.ID {
				t.Error("made twice")
			}
		}
		_, err := r.create(func(q *createRequest) { q.Name, q.Tags.Freeform = numbered(9), many(11) })
		r.refused(err, blockvolume.ErrInvalid)
	})
}

// The tags of Oracle's own clusters are left out in a tenancy that does not know them.
func TestSystemTags(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		r.region.AddTagNamespace("ours")
		defined := map[string]map[string]any{"orcl-containerengine": {"Cluster": "c"}, "ours": {"a": "b"}}
		v := r.mustCreate(func(q *createRequest) { q.Tags.Defined = defined })
		made, _ := r.region.Volume(v.ID)
		if diff := cmp.Diff(map[string]map[string]any{"ours": {"a": "b"}}, made.DefinedTags); diff != "" || len(defined) != 2 {
			t.Error(diff, defined)
		}
		_, err := r.create(func(q *createRequest) {
			q.Name, q.Tags.Defined = numbered(1), map[string]map[string]any{"nobody's": {"a": "b"}}
		})
		r.refused(err, blockvolume.ErrInvalid)
	})
}

// C108: bad numbers do not reach the cloud.
func TestPerformance(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		for _, vpus := range []int64{25, 130, -10, 5} {
			_, err := r.create(func(q *createRequest) { q.VPUsPerGB = &vpus })
			r.refused(err, blockvolume.ErrInvalid)
		}
		if n := len(r.region.Counts()); n != 0 {
			t.Errorf("calls %v", r.region.Counts())
		}
		for i, vpus := range []int64{0, 10, 120} {
			v := r.mustCreate(func(q *createRequest) { q.Name, q.VPUsPerGB = numbered(i), &vpus })
			if *v.VPUsPerGB != vpus {
				t.Errorf("%d became %d", vpus, *v.VPUsPerGB)
			}
		}
	})
}

// C111: 60 claims at once against a region that allows 10 writes a second: all are made, with calls that grow in line.
func TestManyClaimsUnderThrottling(t *testing.T) {
	rate := ocisim.Rate{PerSecond: 10, Burst: 10}
	simulate(t, ocisim.Options{Read: ocisim.Rate{PerSecond: 20, Burst: 20}, Write: rate, PageSize: 1000}, func(r *rig) {
		const claims = 60
		together(claims, func(i int) {
			for {
				_, err := r.create(func(q *createRequest) { q.Name = numbered(i) })
				if err == nil {
					return
				}
				if !isOneOf(err, blockvolume.ErrUnavailable, blockvolume.ErrPending) {
					t.Errorf("claim %d: %v", i, err)
					return
				}
				time.Sleep(time.Second)
			}
		})
		if n := len(r.living()); n != claims {
			t.Errorf("%d volumes", n)
		}
		served := 0
		for _, c := range r.region.Calls() {
			if c.Status == 200 {
				served++
			}
		}
		if served > 6*claims {
			t.Errorf("%d calls for %d claims", served, claims)
		}
		t.Logf("%d calls were served, %v", served, r.region.Counts())
	})
}

func isOneOf(err error, kinds ...error) bool {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
