// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

const (
	// retryPeriod is the pause between tries to reach an API server that does not answer yet.
	retryPeriod = 250 * time.Millisecond
	// tryTimeout bounds one try.
	tryTimeout = 10 * time.Second
)

// Identity returns what tells this cluster's resources in the cloud from those of others: the configured identity, else the
// UID of the namespace kube-system. It is empty if the ClusterRole does not allow to read that: missing says which rule it
// lacks. It waits for the API server as long as ctx lasts: under another identity after the next start, the resources made
// under this one would be strangers.
func Identity(ctx context.Context, client kubernetes.Interface, configured string) (identity, missing string, err error) {
	if configured != "" {
		return configured, "", nil
	}
	err = untilAnswered(ctx, "the cluster's identity", func(ctx context.Context) error {
		namespace, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err):
			missing = "get namespaces " + metav1.NamespaceSystem
			return nil
		case err != nil:
			return err
		}
		identity = string(namespace.UID)
		return nil
	})
	return identity, missing, err
}

// allowed asks the API server whether this principal may do something everywhere. Every authenticated principal may ask that.
func allowed(ctx context.Context, client kubernetes.Interface, verb, resource string) (bool, error) {
	return review(ctx, client, authorizationv1.ResourceAttributes{Verb: verb, Resource: resource})
}

// allowedOne is allowed for one object in namespace kube-system.
func allowedOne(ctx context.Context, client kubernetes.Interface, verb, resource, name string) (bool, error) {
	return review(ctx, client, authorizationv1.ResourceAttributes{Verb: verb, Resource: resource, Namespace: metav1.NamespaceSystem, Name: name})
}

func review(ctx context.Context, client kubernetes.Interface, what authorizationv1.ResourceAttributes) (bool, error) {
	var answer bool
	err := untilAnswered(ctx, "whether "+what.Verb+" "+what.Resource+" is allowed", func(ctx context.Context) error {
		review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
		}, metav1.CreateOptions{})
		switch {
		case apierrors.IsForbidden(err):
			return nil
		case err != nil:
			return err
		}
		answer = review.Status.Allowed
		return nil
	})
	return answer, err
}

// untilAnswered asks until there is an answer or ctx ends, and says so once.
func untilAnswered(ctx context.Context, what string, ask func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, retryPeriod, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		err := ask(ctx)
		if err != nil && last == nil {
			klog.FromContext(ctx).Error(err, "The Kubernetes API gives no answer; asking again", "about", what)
		}
		last = err
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("ask the Kubernetes API for %s: %w (last: %w)", what, err, last)
	}
	return nil
}
