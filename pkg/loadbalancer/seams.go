// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Cloud is one of the two balancer services. oci.LoadBalancers and oci.NetworkLoadBalancers implement it. Changes return
// the OCID of a work request.
type Cloud interface {
	Kind() oci.BalancerKind
	Get(ctx context.Context, id string) (*oci.Balancer, error)
	// List returns all balancers of a compartment, in every state, or an error. displayName "" means no filter.
	List(ctx context.Context, compartmentID, displayName string) ([]*oci.Balancer, error)
	// Create returns an empty id where it is known from the work request only.
	Create(ctx context.Context, b *oci.Balancer, retryToken string) (workRequestID, id string, err error)
	Delete(ctx context.Context, id string) (workRequestID string, err error)
	CreateBackendSet(ctx context.Context, id string, bs oci.BackendSet, retryToken string) (workRequestID string, err error)
	UpdateBackendSet(ctx context.Context, id string, bs oci.BackendSet, etag string) (workRequestID string, err error)
	DeleteBackendSet(ctx context.Context, id, name string) (workRequestID string, err error)
	CreateListener(ctx context.Context, id string, l oci.Listener, retryToken string) (workRequestID string, err error)
	UpdateListener(ctx context.Context, id string, l oci.Listener, etag string) (workRequestID string, err error)
	DeleteListener(ctx context.Context, id, name string) (workRequestID string, err error)
	UpdateTags(ctx context.Context, id string, tags oci.Tags, etag string) (workRequestID string, err error)
	UpdateNSGs(ctx context.Context, id string, nsgIDs []string, etag string) (workRequestID string, err error)
	GetWorkRequest(ctx context.Context, id string) (oci.WorkRequest, error)
	ListWorkRequests(ctx context.Context, balancerID, compartmentID string) ([]oci.WorkRequest, error)
	// Wait returns when the work request has ended, with a *oci.WorkRequestError if not well.
	Wait(ctx context.Context, workRequestID string) (oci.WorkRequest, error)
}

// ShapeUpdater is a Cloud whose balancers have a shape.
type ShapeUpdater interface {
	UpdateShape(ctx context.Context, id string, s oci.Shape, etag string) (workRequestID string, err error)
}

// CertificateStore is a Cloud whose balancers hold certificate bundles.
type CertificateStore interface {
	CreateCertificate(ctx context.Context, id string, c oci.Certificate, retryToken string) (workRequestID string, err error)
	DeleteCertificate(ctx context.Context, id, name string) (workRequestID string, err error)
}

// Subnets reads subnets.
type Subnets interface {
	GetSubnet(ctx context.Context, id string) (*oci.Subnet, error)
}

// PublicIPs finds public IP objects.
type PublicIPs interface {
	GetPublicIPByAddress(ctx context.Context, ip string) (*oci.PublicIP, error)
}

// Event is something that the user of a Service should see.
type Event struct {
	Type    string // v1.EventTypeNormal or v1.EventTypeWarning
	Reason  string
	Message string
}

// Record is what is written into annotations of a Service: AnnotationOCID and AnnotationLastApplied.
type Record struct {
	OCID        string
	LastApplied string
}

// Records writes a Service's annotations.
type Records interface {
	Save(ctx context.Context, svc *v1.Service, r Record) error
}

// ConditionType is the type of the condition in a Service's status that says whether the balancer is as asked for.
const ConditionType = "oci.oraclecloud.com/LoadBalancerSynced"

// Conditions writes the condition of type ConditionType in a Service's status. It is called only when status, reason or
// message differ from what svc has. LastTransitionTime is left to the implementation.
type Conditions interface {
	SetCondition(ctx context.Context, svc *v1.Service, c metav1.Condition) error
}

// Deps are what a Manager works with.
type Deps struct {
	LB, NLB   Cloud
	Subnets   Subnets
	PublicIPs PublicIPs
	// Events publishes an event on a Service. The same text is given as long as the cause stays the same, so that events
	// aggregate.
	Events  func(svc *v1.Service, e Event)
	Records Records

	// Fresh reads the live Service; it is called under the Service's lock. Nil takes the Service as given.
	Fresh func(ctx context.Context, svc *v1.Service) (*v1.Service, error)

	// Identities may be nil: then no Service can have an identity of its own.
	Identities Identities

	// Secret reads a Secret with a certificate. Errors for which apierrors.IsNotFound or IsForbidden is true become events on
	// the Service. Nil can read none.
	Secret func(ctx context.Context, name types.NamespacedName) (TLSSecret, error)

	// Conditions may be nil.
	Conditions Conditions
	// Nodes returns the nodes that are eligible for balancers now; it is called under the Service's lock, so that a
	// caller who waited for the lock does not bring back an older set. Nil takes the nodes as given.
	Nodes func(ctx context.Context) ([]*v1.Node, error)
	// Gone says whether an instance is proven to be terminated, from what is known without a call for each. Nil knows
	// nothing.
	Gone func(instanceID string) bool
	// Firewall may be empty: then no security rules are managed.
	Firewall Firewall
}
