// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster"
	"github.com/oracle/oci-cloud-controller-manager/test/cluster/nodes"
)

// readiness counts the nodes by the status of their Ready condition.
func readiness(t *testing.T, c *cluster.Cluster) map[v1.ConditionStatus]int {
	t.Helper()
	list, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[v1.ConditionStatus]int{}
	for _, node := range list.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == v1.NodeReady {
				counts[condition.Status]++
			}
		}
	}
	return counts
}

// notReadyTaints counts the nodes that the controller-manager has tainted.
func notReadyTaints(t *testing.T, c *cluster.Cluster) int {
	t.Helper()
	list, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tainted := 0
	for _, node := range list.Items {
		for _, taint := range node.Spec.Taints {
			if taint.Key == v1.TaintNodeNotReady || taint.Key == v1.TaintNodeUnreachable {
				tainted++
				break
			}
		}
	}
	return tainted
}

// TestSimulatedNodes lets a real controller-manager judge 200 simulated kubelets.
func TestSimulatedNodes(t *testing.T) {
	const count, halted = 200, 50
	c := cluster.Start(t, cluster.WithNodeMonitorGracePeriod(15*time.Second))
	began := time.Now()
	fleet, err := c.SimulateNodes(t.Context(), nodes.Options{
		Count:         count,
		NodeIP:        func(i int) string { return fmt.Sprintf("10.0.%d.%d", i/200, 10+i%200) },
		RenewInterval: 2 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d nodes registered in %s", count, time.Since(began).Round(time.Millisecond))
	eventually(t, "all nodes are Ready and untainted", func() bool {
		return readiness(t, c)[v1.ConditionTrue] == count && notReadyTaints(t, c) == 0
	})

	// Silent kubelets: their state is unknown after the grace period.
	dead := fleet.Names()[:halted]
	if err := fleet.Halt(dead...); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the halted nodes are Unknown, and they alone", func() bool {
		counts := readiness(t, c)
		return counts[v1.ConditionUnknown] == halted && counts[v1.ConditionTrue] == count-halted
	})
	eventually(t, "the halted nodes are tainted", func() bool { return notReadyTaints(t, c) == halted })

	// One of them is deleted, as a cloud-controller-manager would; then all boot.
	if err := c.Client().CoreV1().Nodes().Delete(t.Context(), dead[0], metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client().CoreV1().Nodes().Get(t.Context(), dead[0], metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the deleted node: %v", err)
	}
	if err := fleet.Resume(dead...); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all nodes are Ready again", func() bool {
		return readiness(t, c)[v1.ConditionTrue] == count && notReadyTaints(t, c) == 0
	})

	// Kubelets that say so themselves.
	if err := fleet.SetReady(false, fleet.Names()[count-1]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one node is not ready", func() bool {
		return readiness(t, c)[v1.ConditionFalse] == 1 && notReadyTaints(t, c) == 1
	})

	// Heartbeats stay out of the audit log.
	events, err := c.AuditLog().Select(cluster.AuditFilter{Resource: "leases", Namespace: v1.NamespaceNodeLease, Verb: "update"})
	if err != nil || len(events) != 0 {
		t.Errorf("audit: %d renewed leases, %v; want none", len(events), err)
	}
}
