// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

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

// Permission is one rule of RBAC that a feature needs. Old manifests may lack it: the feature is off then.
type Permission struct {
	Verb, Group, Resource, Subresource string
	// Namespace limits the rule to one namespace; a ClusterRole, or a Role there, can have it.
	Namespace string
	// Name limits the rule to one object.
	Name string
}

// String gives the rule in the words of a role.
func (p Permission) String() string {
	resource := p.Resource
	if p.Subresource != "" {
		resource += "/" + p.Subresource
	}
	rule := fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [%q]", p.Group, resource, p.Verb)
	if p.Name != "" {
		rule += fmt.Sprintf(", resourceNames: [%q]", p.Name)
	}
	if rule += "}"; p.Namespace != "" {
		rule += " in namespace " + p.Namespace
	}
	return rule
}

// Allowed asks the API server whether the client has the permission. Every authenticated principal may ask that.
func (p Permission) Allowed(ctx context.Context, client kubernetes.Interface) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: p.Namespace, Verb: p.Verb, Group: p.Group, Resource: p.Resource, Subresource: p.Subresource, Name: p.Name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

func (p Permission) missing(feature string) Notice {
	return Notice{"PermissionMissing", fmt.Sprintf("Off, since the ClusterRole lacks the rule %s: %s", p, feature)}
}

// ClusterIdentity returns what tells this cluster's resources in the cloud from those of others: the configured identity,
// else the UID of namespace kube-system. It is empty, with a Notice that says why, if this principal may not read that. It
// waits for the API server as long as ctx lasts: another identity after the next start would make strangers of the
// resources made under this one.
func ClusterIdentity(ctx context.Context, client kubernetes.Interface, configured string) (string, []Notice, error) {
	if configured != "" {
		return configured, nil, nil
	}
	rule := Permission{Verb: "get", Resource: "namespaces", Name: metav1.NamespaceSystem}
	var identity string
	var notices []Notice
	var last error
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		allowed, err := rule.Allowed(ctx, client)
		if err == nil && allowed {
			var namespace, getErr = client.CoreV1().Namespaces().Get(ctx, rule.Name, metav1.GetOptions{})
			err, allowed = getErr, !apierrors.IsForbidden(getErr)
			if getErr == nil {
				identity = string(namespace.UID)
				return true, nil
			}
		}
		if (err == nil || apierrors.IsForbidden(err)) && !allowed {
			notices = []Notice{rule.missing("the mark with the cluster's identity on load balancers. " +
				"Without the rule, set clusterId in the cloud config")}
			return true, nil
		}
		last = err
		klog.FromContext(ctx).Error(err, "Could not find out the cluster's identity; trying again")
		return false, nil
	})
	if err != nil {
		return "", nil, fmt.Errorf("cluster identity: %w (last: %w)", err, last)
	}
	return identity, notices, nil
}
