// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

const (
	// convergeTimeout bounds one way to the wanted state; a busy machine needs a fraction of it.
	convergeTimeout = 3 * time.Minute
	// settled is how long nothing may be written before a state counts as the end.
	settled = 1500 * time.Millisecond
)

// matrix is a bed on which one scenario after the other is killed after its first call, its second, and so on.
type matrix struct {
	bed          *testbed.Bed
	clusterID    string
	certificates map[string]pki.Pair
	theirs       map[string]string // rules of others at the start

	ccm      *testbed.CCM
	logs     []string // of the process that was killed last, and of the one that runs
	scenario scenario
	before   []byte // snapshot of the region before the current kill point
}

func (m *matrix) take(s scenario) string {
	m.scenario = s
	return s.name
}

func (m *matrix) callLog(n int) string { return m.bed.CallLog(n) }

// errCompleted says that a scenario ended before its kill point came: the matrix is complete.
var errCompleted = errors.New("completed before the kill point")

// start makes a bed and brings it to where kill points can begin.
func (m *matrix) start(ctx context.Context) error {
	bed, err := testbed.Start(ctx, testbed.Options{
		World:  world(),
		Region: ocisim.Options{Seed: 7, Durations: testbed.QuickDurations(), Behaviour: behaviour()},
	})
	if err != nil {
		return err
	}
	m.bed = bed
	ns, err := m.bed.Cluster.Client().CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return err
	}
	m.clusterID = string(ns.UID)
	if err := m.makeCertificates(ctx); err != nil {
		return err
	}
	if m.theirs, err = m.foreignRules(); err != nil {
		return err
	}
	if err := m.startCCM(ctx); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, convergeTimeout)
	defer cancel()
	return m.bed.NodesInitialized(wait)
}

// stop ends the bed, if there is one.
func (m *matrix) stop() {
	if m.ccm != nil {
		m.ccm.Kill()
	}
	if m.bed != nil {
		_ = m.bed.Stop()
	}
	m.bed, m.ccm, m.logs = nil, nil, nil
}

func (m *matrix) startCCM(ctx context.Context) error {
	ccm, err := m.bed.StartCCM(ctx)
	if err != nil {
		return err
	}
	m.ccm = ccm
	m.logs = append(m.logs[max(0, len(m.logs)-1):], m.ccm.Log)
	return nil
}

type verdict int

const (
	fine verdict = iota
	leak
	duplicate
	stuck
)

type problem struct {
	kind verdict
	call string
	text string
}

// killAt runs the scenario once and kills after its n-th call.
func (m *matrix) killAt(ctx context.Context, n int) (problem, error) {
	name := fmt.Sprintf("%s-%d", strings.ReplaceAll(m.scenario.name, "/", "-"), n)
	m.before = m.bed.Region.Snapshot()
	m.bed.Region.ResetCalls() // the log shall hold this kill point as a whole
	if err := m.prepare(ctx, name); err != nil {
		return problem{}, fmt.Errorf("prepare: %w", err)
	}
	hold, err := m.bed.Server.StopAfter(server.StopRule{N: n, Freeze: true, Principal: m.bed.User.OCID})
	if err != nil {
		return problem{}, err
	}
	if err := m.demand(ctx, name, m.scenario.to); err != nil {
		return problem{}, fmt.Errorf("act: %w", err)
	}
	call, completed, err := m.await(ctx, hold, name)
	if err != nil {
		return problem{}, err
	}
	if completed {
		hold.Release()
		return problem{}, errors.Join(errCompleted, m.remove(ctx, name), m.tidy(ctx, name))
	}
	m.ccm.Kill()
	hold.Discard()
	found := m.recover(ctx, name)
	found.call = call.Operation
	removed := m.remove(ctx, name)
	switch {
	case removed != nil:
		found = problem{kind: stuck, call: call.Operation, text: "the Service cannot be deleted afterwards: " + removed.Error()}
	case found.kind == fine:
		err := m.judge(ctx, true)
		if left := difference(m.seen(), nil); left != "" {
			err = errors.Join(err, errors.New(left))
		}
		if err != nil {
			found = problem{kind: leak, call: call.Operation, text: "after the Service was deleted: " + err.Error()}
		}
	}
	return found, m.tidy(ctx, name)
}

// prepare brings about what the scenario starts from.
func (m *matrix) prepare(ctx context.Context, name string) error {
	if m.scenario.from != nil {
		if err := m.demand(ctx, name, m.scenario.from); err != nil {
			return err
		}
		if err := m.converge(ctx, name, m.scenario.from); err != nil {
			return fmt.Errorf("%w; %s", err, m.bed.Events(ctx, v1.NamespaceDefault, name))
		}
	}
	return m.quiet(ctx)
}

// converge waits until everything is as wished.
func (m *matrix) converge(ctx context.Context, name string, w *wish) error {
	wait, cancel := context.WithTimeout(ctx, convergeTimeout)
	defer cancel()
	return testbed.Until(wait, func(ctx context.Context) (bool, string) {
		open := m.open(ctx, name, w)
		return open == "", open
	})
}

// await blocks until the call is held, or until the scenario is through without reaching it.
func (m *matrix) await(ctx context.Context, hold *server.Stop, name string) (ocisim.Call, bool, error) {
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
			return ocisim.Call{}, false, fmt.Errorf("neither killed nor through: %s", m.state(context.WithoutCancel(ctx), name))
		case <-time.After(100 * time.Millisecond):
			if hold.Status().State == server.StopArmed && m.open(ctx, name, m.scenario.to) == "" && m.quiet(ctx) == nil {
				// It may have been reached in the last moment.
				if hold.Status().State == server.StopArmed {
					return ocisim.Call{}, true, nil
				}
			}
		}
	}
}

// recover starts the next process and waits for the end that the scenario wants.
func (m *matrix) recover(ctx context.Context, name string) problem {
	if err := m.startCCM(ctx); err != nil {
		return problem{kind: stuck, text: err.Error()}
	}
	err := m.converge(ctx, name, m.scenario.to)
	if n := len(m.balancers()); n > 1 {
		return problem{kind: duplicate, text: fmt.Sprintf("%d balancers", n)}
	}
	if err != nil {
		return problem{kind: stuck, text: err.Error() + "; " + m.state(ctx, name)}
	}
	if err := m.judge(ctx, false); err != nil {
		return problem{kind: leak, text: err.Error()}
	}
	return problem{}
}

// quiet waits until nothing has been written to the region for a while.
func (m *matrix) quiet(ctx context.Context) error {
	for {
		before := m.writes()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settled):
		}
		if m.writes() == before {
			return nil
		}
	}
}

func (m *matrix) writes() int {
	n := 0
	for _, c := range m.bed.Region.Calls() {
		if c.Write {
			n++
		}
	}
	return n
}

// remove deletes the Service, if the scenario has not, and waits until it is gone.
func (m *matrix) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, convergeTimeout)
	defer cancel()
	if err := m.demand(ctx, name, nil); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return m.bed.ServiceGone(ctx, v1.NamespaceDefault, name)
}

// balancers are the names and states of all balancers that live.
func (m *matrix) balancers() []string {
	var list []string
	for _, b := range m.bed.Region.LoadBalancers() {
		if b.LifecycleState != "DELETED" {
			list = append(list, fmt.Sprintf("lb %s %s", *b.DisplayName, b.LifecycleState))
		}
	}
	for _, b := range m.bed.Region.NetworkLoadBalancers() {
		if b.LifecycleState != "DELETED" {
			list = append(list, fmt.Sprintf("nlb %s %s", *b.DisplayName, b.LifecycleState))
		}
	}
	return list
}

// state describes where a Service stands, for messages.
func (m *matrix) state(ctx context.Context, name string) string {
	return fmt.Sprintf("balancers [%s]; open: %s; events:\n%s",
		strings.Join(m.balancers(), ", "), m.open(ctx, name, m.scenario.to), m.bed.Events(ctx, v1.NamespaceDefault, name))
}
