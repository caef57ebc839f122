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

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

const (
	// convergeTimeout bounds one way to the wanted state; a busy machine needs a fraction of it.
	convergeTimeout = 3 * time.Minute
	// settled is how long nothing may be written before a state counts as the end.
	settled = 1500 * time.Millisecond
)

// matrix is one scenario with one kind of balancer, killed after its first call, its second, and so on.
type matrix struct {
	bed      *testbed.Bed
	kind     string
	scenario scenario
	stride   int
	ccm      *testbed.CCM
	before   []byte // snapshot of the region before the current kill point
}

// errCompleted says that a scenario ended before its kill point came: the matrix is complete.
var errCompleted = errors.New("completed before the kill point")

func (m *matrix) run(ctx context.Context) (tally, error) {
	var t tally
	if err := m.start(ctx); err != nil {
		return t, err
	}
	defer func() { m.ccm.Kill() }()
	for point := 1; ; point += m.stride {
		problem, err := m.killAt(ctx, point)
		if errors.Is(err, errCompleted) {
			return t, nil
		}
		if err != nil {
			return t, fmt.Errorf("kill point %d: %w", point, err)
		}
		t.points++
		switch problem.kind {
		case leak:
			t.leaks++
		case duplicate:
			t.duplicates++
		case stuck:
			t.stuck++
		}
		if problem.kind != fine {
			fmt.Fprintf(os.Stderr, "%s/%s killed after call %d (%s): %s\n%s\n", m.kind, m.scenario.name, point, problem.call, problem.text, m.bed.CallLog(40))
		}
	}
}

func (m *matrix) start(ctx context.Context) error {
	var err error
	if m.ccm, err = m.bed.StartCCM(ctx); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, convergeTimeout)
	defer cancel()
	return m.bed.NodesInitialized(wait)
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
	name := fmt.Sprintf("%s-%s-%d", m.kind, m.scenario.name, n)
	m.before = m.bed.Region.Snapshot()
	m.bed.Region.ResetCalls() // the log shall hold this kill point as a whole
	if err := m.scenario.prepare(ctx, name); err != nil {
		return problem{}, fmt.Errorf("prepare: %w", err)
	}
	if err := m.quiet(ctx); err != nil {
		return problem{}, err
	}
	hold, err := m.bed.Server.StopAfter(server.StopRule{N: n, Freeze: true, Principal: m.bed.User.OCID})
	if err != nil {
		return problem{}, err
	}
	if err := m.scenario.act(ctx, name); err != nil {
		return problem{}, fmt.Errorf("act: %w", err)
	}
	call, completed, err := m.await(ctx, hold, name)
	if err != nil {
		return problem{}, err
	}
	if completed {
		hold.Release()
		return problem{}, errors.Join(errCompleted, m.remove(ctx, name), m.scenario.undo(ctx))
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
		if err := m.judge(ctx, true); err != nil {
			found = problem{kind: leak, call: call.Operation, text: "after the Service was deleted: " + err.Error()}
		}
	}
	return found, m.scenario.undo(ctx)
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
			if hold.Status().State == server.StopArmed && m.scenario.done(ctx, name) == "" && m.quiet(ctx) == nil {
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
	var err error
	if m.ccm, err = m.bed.StartCCM(ctx); err != nil {
		return problem{kind: stuck, text: err.Error()}
	}
	wait, cancel := context.WithTimeout(ctx, convergeTimeout)
	defer cancel()
	err = testbed.Until(wait, func(ctx context.Context) (bool, string) {
		open := m.scenario.done(ctx, name)
		return open == "", open
	})
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

// judge asks the oracle: no balancer without a Service, nothing changed or written that is not ours, no key in the log.
// Once everything has settled, nothing may be on its way any more.
func (m *matrix) judge(ctx context.Context, settled bool) error {
	log, err := os.ReadFile(m.ccm.Log)
	if err != nil {
		return err
	}
	list, err := m.bed.Cluster.Client().CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	q := oracle.Question{
		Before: m.before,
		Us: oracle.Us{
			Types:  []string{"load balancer", "network load balancer"},
			Writes: []string{ocisim.ServiceLoadBalancer, ocisim.ServiceNetworkLoadBalancer},
		},
		Settled: settled,
		Logs:    []oracle.Log{{Name: m.ccm.Log, Text: string(log)}},
		Secrets: []oracle.Secret{{Name: "the private key", Value: m.bed.User.PrivateKeyPEM()}},
	}
	for _, svc := range list.Items {
		q.Us.Owners = append(q.Us.Owners, string(svc.UID))
	}
	report, err := oracle.Check(ctx, oracle.InProcess(m.bed.Region), q)
	if err != nil {
		return err
	}
	return report.Err()
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
	err := m.bed.Cluster.Client().CoreV1().Services(v1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return m.bed.ServiceGone(ctx, v1.NamespaceDefault, name)
}

// balancers are the names and states of all balancers that live.
func (m *matrix) balancers() []string {
	var list []string
	for _, lb := range m.bed.Region.LoadBalancers() {
		if lb.LifecycleState != "DELETED" {
			list = append(list, fmt.Sprintf("lb %s %s", *lb.DisplayName, lb.LifecycleState))
		}
	}
	for _, nlb := range m.bed.Region.NetworkLoadBalancers() {
		if nlb.LifecycleState != "DELETED" {
			list = append(list, fmt.Sprintf("nlb %s %s", *nlb.DisplayName, nlb.LifecycleState))
		}
	}
	return list
}

func (m *matrix) leftovers() string { return strings.Join(m.balancers(), ", ") }

// state describes where a Service stands, for messages.
func (m *matrix) state(ctx context.Context, name string) string {
	return fmt.Sprintf("balancers [%s]; open: %s; events:\n%s", m.leftovers(), m.scenario.done(ctx, name), m.bed.Events(ctx, v1.NamespaceDefault, name))
}
