// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// restTimeout bounds how long the region takes until what was deleted is gone; a second is enough on an idle machine.
const restTimeout = 20 * time.Second

// storageMatrix is a bed on which the CSI controller is killed after its first call of a scenario, its second, and so on. The real
// sidecars ask again.
type storageMatrix struct {
	bed     *testbed.Bed
	storage *testbed.Storage

	scenario storageScenario
	before   []byte // snapshot of the region before the current kill point
}

func (m *storageMatrix) take(s storageScenario) string {
	m.scenario = s
	return s.name
}

func (m *storageMatrix) callLog(n int) string { return m.bed.CallLog(n) }

func (m *storageMatrix) start(ctx context.Context) error {
	world := testbed.DemoWorld()
	bed, err := testbed.Start(ctx, testbed.Options{
		World: world, Nodes: testbed.StorageNodes(world),
		Region:  ocisim.Options{Seed: 7, Durations: testbed.StorageDurations()},
		Cluster: cluster.Options{ControllerManager: true},
	})
	if err != nil {
		return err
	}
	m.bed = bed
	if m.storage, err = bed.StartStorage(ctx, testbed.StorageOptions{}); err != nil {
		return err
	}
	return m.makeClasses(ctx)
}

// stop ends the bed, if there is one.
func (m *storageMatrix) stop() {
	if m.storage != nil {
		m.storage.Stop()
	}
	if m.bed != nil {
		_ = m.bed.Stop()
	}
	m.bed, m.storage = nil, nil
}

// killAt runs the scenario once and kills after its n-th call.
func (m *storageMatrix) killAt(ctx context.Context, n int) (problem, error) {
	name := fmt.Sprintf("%s-%d", strings.ReplaceAll(m.scenario.name, "/", "-"), n)
	m.before = m.bed.Region.Snapshot()
	m.bed.Region.ResetCalls() // the log shall hold this kill point as a whole
	for _, s := range m.scenario.given {
		if err := m.do(ctx, s, name); err != nil {
			return problem{}, fmt.Errorf("prepare: %w", err)
		}
		if err := m.converge(ctx, name, s); err != nil {
			return problem{}, fmt.Errorf("prepare: %w", err)
		}
	}
	hold, err := m.bed.Server.StopAfter(server.StopRule{N: n, Freeze: true, Principal: m.bed.User.OCID})
	if err != nil {
		return problem{}, err
	}
	if err := m.do(ctx, m.scenario.step, name); err != nil {
		return problem{}, fmt.Errorf("act: %w", err)
	}
	call, completed, err := m.await(ctx, hold, name)
	if err != nil {
		return problem{}, err
	}
	if completed {
		hold.Release()
		return problem{}, errors.Join(errCompleted, m.clear(ctx, name))
	}
	m.storage.Kill()
	hold.Discard()
	if err := m.storage.StartController(ctx); err != nil {
		return problem{}, err
	}
	found := m.conclude(ctx, name)
	found.call = call.Operation
	return found, nil
}

// conclude waits for the end that the scenario wants, and then for that of everything.
func (m *storageMatrix) conclude(ctx context.Context, name string) problem {
	if err := m.converge(ctx, name, m.scenario.step); err != nil {
		return problem{kind: stuck, text: err.Error()}
	}
	if found := m.judge(ctx, false); found.kind != fine {
		return found
	}
	if err := m.clear(ctx, name); err != nil {
		return problem{kind: stuck, text: "it cannot be deleted afterwards: " + err.Error()}
	}
	// What was deleted needs a moment until it is gone.
	wait, cancel := context.WithTimeout(ctx, restTimeout)
	defer cancel()
	var found problem
	_ = testbed.Until(wait, func(ctx context.Context) (bool, string) {
		found = m.judge(ctx, true)
		return found.kind == fine, found.text
	})
	return found
}

// converge waits until a step is through, and the region's storage is what the API's objects justify.
func (m *storageMatrix) converge(ctx context.Context, name string, s step) error {
	ctx, cancel := context.WithTimeout(ctx, convergeTimeout)
	defer cancel()
	return testbed.Until(ctx, func(ctx context.Context) (bool, string) {
		open := m.open(ctx, s, name)
		if ctx.Err() != nil {
			return false, "" // what was seen before says more
		}
		return open == "", open
	})
}

// open says what is missing for a step to be through; "" means nothing.
func (m *storageMatrix) open(ctx context.Context, s step, name string) string {
	open, err := m.seen(ctx, s, name)
	if err == nil && open == "" {
		open, err = m.bed.Unjustified(ctx)
	}
	if err != nil {
		return err.Error()
	}
	return open
}

// await blocks until the call is held, or until the scenario is through without reaching it.
func (m *storageMatrix) await(ctx context.Context, hold *server.Stop, name string) (ocisim.Call, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, convergeTimeout)
	defer cancel()
	held := make(chan ocisim.Call, 1)
	go func() {
		if call, err := hold.Wait(ctx); err == nil {
			held <- call
		}
	}()
	for {
		select {
		case call := <-held:
			return call, false, nil
		case <-ctx.Done():
			return ocisim.Call{}, false, fmt.Errorf("neither killed nor through: %s", m.open(context.WithoutCancel(ctx), m.scenario.step, name))
		case <-time.After(settled):
			if m.open(ctx, m.scenario.step, name) == "" && hold.Status().State == server.StopArmed {
				return ocisim.Call{}, true, nil
			}
		}
	}
}

// clear deletes whatever the scenario has made, and waits until nothing is left in the API or in the region.
func (m *storageMatrix) clear(ctx context.Context, name string) error {
	for _, s := range []step{deleteGroupSnapshot, deleteSnapshot, detachVolume, deleteClone, deleteVolume} {
		if err := m.do(ctx, s, name); err != nil {
			return err
		}
		if err := m.converge(ctx, name, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// judge asks the oracle: nothing without an object of the API, nothing twice, nothing changed or written that is not ours, no key
// in a log.
func (m *storageMatrix) judge(ctx context.Context, settled bool) problem {
	q := oracle.Question{Before: m.before, Settled: settled}
	for _, path := range m.storage.Logs() {
		text, err := os.ReadFile(path)
		if err != nil {
			return problem{kind: stuck, text: err.Error()}
		}
		q.Logs = append(q.Logs, oracle.Log{Name: path, Text: string(text)})
	}
	report, err := m.bed.AskStorage(ctx, q)
	switch {
	case err != nil:
		return problem{kind: stuck, text: err.Error()}
	case len(report.Of(oracle.Duplicate)) > 0:
		return problem{kind: duplicate, text: report.String()}
	case report.Err() != nil:
		return problem{kind: leak, text: report.String()}
	}
	return problem{}
}
