// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestSameSeedSameAnswers makes the same random calls twice in regions of one seed, with everything random that the
// region has: every answer is the same, byte for byte, identifiers and request ids included.
func TestSameSeedSameAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		var runs [2][]string
		for i := range runs {
			rapid.SyncTest(t, func(t *rapid.T) {
				m := newMachineWith(t, newCoverage(), Options{
					Seed: seed, PageSize: 2, ShortPages: 0.3, EventualReads: 1, DropOptional: 0.3,
					Latency: map[string]Range{"*": {Max: 100 * time.Millisecond}},
				})
				m.choices = rand.New(rand.NewPCG(seed, 2))
				m.region.Fault(Fault{Status: 500, Chance: 0.05})
				for range 40 {
					one(m.draw(t), []func(*rapid.T){m.create, m.create, m.write, m.read, m.stranger, func(t *rapid.T) {
						m.wait(t, 20*time.Second)
					}})(t)
				}
				runs[i] = append(m.transcript, string(m.region.Snapshot()))
			})
		}
		if diff := cmp.Diff(runs[0], runs[1]); diff != "" {
			t.Fatalf("two runs of one seed differ:\n%s", diff)
		}
	})
}
