// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"sync"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// sizeMemory is how long a size is remembered: from the making of a volume to its attachment for a pod that waits for it. Longer than that,
// somebody else may have let the volume grow, and a node does not format a disk that is larger than it is told.
const sizeMemory = 15 * time.Second

// sizes remember how large volumes were.
type sizes struct {
	mu   sync.Mutex
	byID map[string]knownSize
}

type knownSize struct {
	bytes int64
	at    time.Time
}

func newSizes() *sizes { return &sizes{byID: map[string]knownSize{}} }

func (m *sizes) note(v *oci.Volume) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for id, one := range m.byID {
		if now.Sub(one.at) > sizeMemory {
			delete(m.byID, id)
		}
	}
	m.byID[v.ID] = knownSize{v.SizeBytes, now}
}

func (m *sizes) get(id string) (int64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one, there := m.byID[id]
	return one.bytes, there && time.Since(one.at) < sizeMemory
}

// Size returns how many bytes a volume has: what it had when this process made it or let it grow in the last seconds, else what the cloud
// says. Errors: as Get.
func (s *Service) Size(ctx context.Context, id string) (int64, error) {
	if bytes, known := s.sizes.get(id); known {
		return bytes, nil
	}
	v, err := s.Get(ctx, id)
	if err != nil {
		return 0, err
	}
	return v.SizeBytes, nil
}
