// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
)

// cluster stands for the API server: Services, their annotations and conditions, and events.
type cluster struct {
	t *testing.T

	mu         sync.Mutex
	services   map[types.UID]*v1.Service
	events     []clusterEvent
	saves      int
	conditions int
}

// clusterEvent is an event series: equal events count up.
type clusterEvent struct {
	service string
	loadbalancer.Event
	count int
}

func (c *cluster) put(svc *v1.Service) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.services[svc.UID] = svc.DeepCopy()
}

func (c *cluster) get(uid types.UID) *v1.Service {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.services[uid].DeepCopy()
}

func (c *cluster) remove(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.services, uid)
}

func (c *cluster) setStatus(uid types.UID, status *v1.LoadBalancerStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.services[uid].Status.LoadBalancer = *status
}

func (c *cluster) fresh(_ context.Context, svc *v1.Service) (*v1.Service, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	live := c.services[svc.UID]
	if live == nil {
		return nil, apierrors.NewNotFound(v1.Resource("services"), svc.Name)
	}
	return live.DeepCopy(), nil
}

func (c *cluster) Save(ctx context.Context, svc *v1.Service, r loadbalancer.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	live := c.services[svc.UID]
	live.Annotations = maps.Clone(live.Annotations)
	live.Annotations[loadbalancer.AnnotationOCID] = r.OCID
	live.Annotations[loadbalancer.AnnotationLastApplied] = r.LastApplied
	c.saves++
	return nil
}

func (c *cluster) SetCondition(_ context.Context, svc *v1.Service, condition metav1.Condition) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conditions++
	if live := c.services[svc.UID]; live != nil {
		meta.SetStatusCondition(&live.Status.Conditions, condition)
	}
	return nil
}

func (c *cluster) event(svc *v1.Service, e loadbalancer.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.events {
		if c.events[i].service == svc.Name && c.events[i].Event == e {
			c.events[i].count++
			return
		}
	}
	c.events = append(c.events, clusterEvent{svc.Name, e, 1})
}

// condition is the synced condition of a Service: "True Synced".
func (c *cluster) condition(uid types.UID) string {
	svc := c.get(uid)
	condition := meta.FindStatusCondition(svc.Status.Conditions, loadbalancer.ConditionType)
	if condition == nil {
		return ""
	}
	return string(condition.Status) + " " + condition.Reason
}

// series returns the event series with a reason.
func (c *cluster) series(reason string) []clusterEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []clusterEvent
	for _, e := range c.events {
		if e.Reason == reason {
			out = append(out, e)
		}
	}
	return out
}

// oneSeries expects exactly one series with a reason, whose text has all parts, and none with another reason.
func (r *rig) oneSeries(reason string, parts ...string) clusterEvent {
	r.Helper()
	all := r.cluster.series(reason)
	if len(all) != 1 || len(r.cluster.events) != 1 {
		r.Fatalf("events %v, want one series with reason %s", r.cluster.events, reason)
	}
	for _, part := range parts {
		if !strings.Contains(all[0].Message, part) {
			r.Errorf("event %q lacks %q", all[0].Message, part)
		}
	}
	return all[0]
}

func (r *rig) noEvents() {
	r.Helper()
	if len(r.cluster.events) > 0 {
		r.Errorf("unexpected events: %v", r.cluster.events)
	}
}
