// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package keylock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/internal/keylock"
)

func TestLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := keylock.New[string]()
		hold := func(key string, d time.Duration) {
			release, err := locks.Acquire(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(d)
			release()
		}
		began := time.Now()
		for _, key := range []string{"a", "a", "b"} {
			go hold(key, time.Second)
		}
		synctest.Wait()
		if !locks.Busy("a") || !locks.Busy("b") || locks.Busy("c") {
			t.Error("who is busy is not known")
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if _, err := locks.Acquire(impatient, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		hold("a", 0)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("two held it for %v, want 2 s", took)
		}
		if locks.Busy("a") || locks.Busy("b") {
			t.Error("nobody holds it any more")
		}
	})
}
