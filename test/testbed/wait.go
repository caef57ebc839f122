// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	cloudproviderapi "k8s.io/cloud-provider/api"
)

// pollInterval of the waits here. It bounds how late a test notices, nothing else.
const pollInterval = 100 * time.Millisecond

// Until polls until done says so, or the context ends; then the error tells what was last seen.
func Until(ctx context.Context, done func(context.Context) (bool, string)) error {
	last := "nothing yet"
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		ok, seen := done(ctx)
		if seen != "" {
			last = seen
		}
		return ok, nil
	})
	if err != nil {
		return fmt.Errorf("%w; last seen: %s", errors.Join(err, context.Cause(ctx)), last)
	}
	return nil
}

// Patience is how a test waits for what must happen.
type Patience struct {
	T     testing.TB
	Ctx   context.Context // of the test
	Limit time.Duration   // of each wait; a machine under load needs a fraction of it
}

// Eventually waits for something that must happen, and ends the test if it does not.
func (p Patience) Eventually(what string, wait func(context.Context) error) {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(p.Ctx, p.Limit)
	defer cancel()
	if err := wait(ctx); err != nil {
		p.T.Fatalf("%s: %v", what, err)
	}
}

// Until is Eventually for a condition that says what it saw.
func (p Patience) Until(what string, done func() (bool, string)) {
	p.T.Helper()
	p.Eventually(what, func(ctx context.Context) error {
		return Until(ctx, func(context.Context) (bool, string) { return done() })
	})
}

// NodesInitialized waits until no node has the taint of an uninitialised one.
func (b *Bed) NodesInitialized(ctx context.Context) error {
	return Until(ctx, func(ctx context.Context) (bool, string) {
		list, err := b.Cluster.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		var waiting []string
		for i := range list.Items {
			if tainted(&list.Items[i], cloudproviderapi.TaintExternalCloudProvider) {
				waiting = append(waiting, list.Items[i].Name)
			}
		}
		return len(waiting) == 0 && len(list.Items) > 0, "not initialised: " + strings.Join(waiting, ", ")
	})
}

func tainted(n *v1.Node, key string) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == key {
			return true
		}
	}
	return false
}

// ServiceReady waits until a Service has an address and returns the Service.
func (b *Bed) ServiceReady(ctx context.Context, namespace, name string) (*v1.Service, error) {
	var svc *v1.Service
	err := Until(ctx, func(ctx context.Context) (bool, string) {
		var err error
		if svc, err = b.Cluster.Client().CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return false, err.Error()
		}
		return len(svc.Status.LoadBalancer.Ingress) > 0, fmt.Sprintf("%s/%s has no address; %s", namespace, name, b.Events(ctx, namespace, name))
	})
	return svc, err
}

// ServiceGone waits until a Service has left the API.
func (b *Bed) ServiceGone(ctx context.Context, namespace, name string) error {
	return Until(ctx, func(ctx context.Context) (bool, string) {
		_, err := b.Cluster.Client().CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, ""
		}
		return false, fmt.Sprintf("%s/%s is still there; %s", namespace, name, b.Events(ctx, namespace, name))
	})
}

// Events renders the events on an object, one to a line, the most recent last. What the API server says about its own
// bookkeeping of cluster IPs, which it does when it is slow, is left out.
func (b *Bed) Events(ctx context.Context, namespace, object string) string {
	list, err := b.Cluster.Client().CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + object})
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, e := range list.Items {
		if e.Reason == "ClusterIPNotAllocated" {
			continue
		}
		fmt.Fprintf(&out, "%s %s x%d: %s\n", e.Type, e.Reason, max(e.Count, 1), e.Message)
	}
	return out.String()
}

// CallLog renders the last n calls that the region has answered.
func (b *Bed) CallLog(n int) string {
	if b.Region == nil {
		return ""
	}
	calls := b.Region.Calls()
	var out strings.Builder
	for _, c := range calls[max(0, len(calls)-n):] {
		fmt.Fprintf(&out, "%s %s.%s %s %d %s %s\n", c.Time.Format("15:04:05.000"), c.Service, c.Operation, c.Resource, c.Status, c.Code, c.Fault)
	}
	return out.String()
}
