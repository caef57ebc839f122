// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"errors"
	"sync"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster"
	"github.com/oracle/oci-cloud-controller-manager/test/cluster/process"
)

// The time between the end of a sidecar and its next start grows, as a kubelet lets it, if it does not live long.
const (
	restartPause = 100 * time.Millisecond
	longestPause = 3 * time.Second
	longLife     = 5 * time.Second
)

// sidecar is a program that is started again whenever it ends, as a kubelet does it. Sidecars end when the connection to
// their driver breaks.
type sidecar struct {
	name string

	ended chan struct{} // closed when it does not run any more and never will

	stop func()
	quit chan struct{}
}

// end lets it end for good.
func (s *sidecar) end() { s.stop() }

func keepRunning(c *cluster.Cluster, spec process.Spec) *sidecar {
	s := &sidecar{name: spec.Name, ended: make(chan struct{}), quit: make(chan struct{})}
	s.stop = sync.OnceFunc(func() { close(s.quit) })
	go s.run(c, spec)
	return s
}

func (s *sidecar) run(c *cluster.Cluster, spec process.Spec) {
	defer close(s.ended)
	for pause := restartPause; ; pause = min(2*pause, longestPause) {
		started := time.Now()
		p, err := c.StartProcess(spec)
		if errors.Is(err, process.ErrStopped) {
			return
		}
		if err == nil {
			select {
			case <-p.Done():
			case <-s.quit:
				p.Kill()
				return
			}
		}
		if time.Since(started) > longLife {
			pause = restartPause
		}
		select {
		case <-s.quit:
			return
		case <-time.After(pause):
		}
	}
}
