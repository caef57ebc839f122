// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
)

// ServiceSupport is what the load balancer domain needs of Kubernetes: reading a Service, keeping a record on it, events,
// and a condition for its users. It implements loadbalancer.Records and loadbalancer.Conditions.
type ServiceSupport struct {
	client   kubernetes.Interface
	provider *Provider
	secrets  *secrets

	canRecord, canCondition bool

	subnets nodeSubnets

	mu sync.Mutex
	// held are events that wait for the end of an operation, by Service.
	held map[types.UID][]loadbalancer.Event
}

var (
	_ loadbalancer.Records    = (*ServiceSupport)(nil)
	_ loadbalancer.Conditions = (*ServiceSupport)(nil)
)

func newServiceSupport(client kubernetes.Interface, p *Provider) *ServiceSupport {
	return &ServiceSupport{
		client: client, provider: p, secrets: newSecrets(client, p), canRecord: true, canCondition: true,
		held: map[types.UID][]loadbalancer.Event{},
	}
}

// probe finds out which permissions are missing and switches off what needs them.
func (s *ServiceSupport) probe(ctx context.Context) []Notice {
	var notices []Notice
	check := func(p Permission, feature string) bool {
		allowed, err := p.Allowed(ctx, s.client)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Could not check a permission; assuming that it is there", "permission", p.String())
			return true
		}
		if !allowed {
			notices = append(notices, p.missing(feature))
		}
		return allowed
	}
	s.canRecord = check(patchService(),
		"recording on a Service which balancer is its own, and what was applied to it last")
	s.canCondition = check(patchServiceStatus(),
		"the condition "+loadbalancer.ConditionType+" of Services")
	return notices
}

// Event posts an event about a Service.
func (s *ServiceSupport) Event(service *v1.Service, e loadbalancer.Event) {
	s.mu.Lock()
	held, holding := s.held[service.UID]
	if holding {
		s.held[service.UID] = append(held, e)
	}
	s.mu.Unlock()
	if !holding {
		s.provider.events.post(service, e.Type, e.Reason, e.Message, e.Message)
	}
}

// hold keeps the events of a Service back until the returned function is called with what became of the operation. It
// drops those that the error says again: the framework makes an event of the error.
func (s *ServiceSupport) hold(service *v1.Service) (release func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[service.UID] = []loadbalancer.Event{}
	return func(err error) {
		s.mu.Lock()
		events := s.held[service.UID]
		delete(s.held, service.UID)
		s.mu.Unlock()
		for _, e := range events {
			if err == nil || !strings.Contains(err.Error(), e.Message) {
				s.Event(service, e)
			}
		}
	}
}

// Fresh reads a Service from the API server.
func (s *ServiceSupport) Fresh(ctx context.Context, service *v1.Service) (*v1.Service, error) {
	return s.client.CoreV1().Services(service.Namespace).Get(ctx, service.Name, metav1.GetOptions{})
}

// Nodes returns the nodes that balancers send traffic to, as they are now.
func (s *ServiceSupport) Nodes(context.Context) ([]*v1.Node, error) {
	return eligible(listNodes(s.provider.nodes)), nil
}

// Services returns all Services; ok is false while they are not known.
func (s *ServiceSupport) Services() (services []*v1.Service, ok bool) {
	if s.provider.balancers == nil {
		return nil, false
	}
	q := s.provider.balancers.framework()
	if q == nil || !q.informer.Informer().HasSynced() {
		return nil, false
	}
	services, _ = q.services.List(labels.Everything()) // a lister reads memory; it has no error to return
	return services, true
}

// Save writes the OCID of a Service's balancer and what was last applied to it, if the Service does not say so already;
// what is empty is removed. The framework queues a Service again for each change of an annotation, so writing what is there
// would never end.
func (s *ServiceSupport) Save(ctx context.Context, service *v1.Service, r loadbalancer.Record) error {
	if !s.canRecord {
		return nil
	}
	changes := map[string]any{}
	for key, value := range map[string]string{
		loadbalancer.AnnotationOCID: r.OCID, loadbalancer.AnnotationLastApplied: r.LastApplied,
	} {
		switch have, ok := service.Annotations[key]; {
		case value == "" && ok:
			changes[key] = nil // a null in a merge patch deletes
		case value != "" && have != value:
			changes[key] = value
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return s.patch(ctx, service, map[string]any{"metadata": map[string]any{"uid": service.UID, "annotations": changes}})
}

// SetCondition writes a condition into the status of a Service. It says when the status changed, not when it was written.
func (s *ServiceSupport) SetCondition(ctx context.Context, service *v1.Service, c metav1.Condition) error {
	if !s.canCondition {
		return nil
	}
	c.Message = shorten(c.Message)
	c.LastTransitionTime = metav1.Time{Time: time.Now().Truncate(time.Second)}
	if have := meta.FindStatusCondition(service.Status.Conditions, c.Type); have != nil && have.Status == c.Status {
		c.LastTransitionTime = have.LastTransitionTime
		if have.Reason == c.Reason && have.Message == c.Message {
			return nil
		}
	}
	return s.patch(ctx, service, map[string]any{
		"metadata": map[string]any{"uid": service.UID},
		"status":   map[string]any{"conditions": []metav1.Condition{c}},
	}, "status")
}

// clear takes everything of ours off a Service that has no balancer any more.
func (s *ServiceSupport) clear(ctx context.Context, service *v1.Service) error {
	if service.DeletionTimestamp != nil {
		return nil // it goes with the Service
	}
	err := s.Save(ctx, service, loadbalancer.Record{})
	if err == nil && s.canCondition && meta.FindStatusCondition(service.Status.Conditions, loadbalancer.ConditionType) != nil {
		err = s.patch(ctx, service, map[string]any{
			"metadata": map[string]any{"uid": service.UID},
			"status": map[string]any{
				"conditions": []any{map[string]any{"type": loadbalancer.ConditionType, "$patch": "delete"}},
			},
		}, "status")
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the Service is gone, or another one has its name
	}
	return err
}

// patch writes parts of a Service. With the UID in it, it is refused if the name belongs to another Service by now.
func (s *ServiceSupport) patch(ctx context.Context, service *v1.Service, content any, subresource ...string) error {
	patch, err := json.Marshal(content)
	if err != nil {
		return err
	}
	kind := types.MergePatchType
	if len(subresource) > 0 {
		kind = types.StrategicMergePatchType // conditions are merged by their type
	}
	ctx, cancel := context.WithTimeout(ctx, patchDeadline)
	defer cancel()
	_, err = s.client.CoreV1().Services(service.Namespace).Patch(ctx, service.Name, kind, patch, metav1.PatchOptions{}, subresource...)
	if err != nil {
		return fmt.Errorf("patch service %s: %w", klog.KObj(service), err)
	}
	return nil
}
