// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestIdentity(t *testing.T) {
	system := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "u1"}}
	if got, _, err := Identity(t.Context(), fake.NewClientset(system), "mine"); got != "mine" || err != nil {
		t.Errorf("configured: %q, %v", got, err)
	}
	if got, missing, err := Identity(t.Context(), fake.NewClientset(system), ""); got != "u1" || missing != "" || err != nil {
		t.Errorf("%q, missing %q, %v", got, missing, err)
	}
	client := fake.NewClientset(system)
	client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "kube-system", nil)
	})
	if got, missing, err := Identity(t.Context(), client, ""); got != "" || missing == "" || err != nil {
		t.Errorf("forbidden: %q, missing %q, %v", got, missing, err)
	}
}

// TestIdentityAsSoonAsTheAPIServerAnswers covers P14: there is no long pause between two tries.
func TestIdentityAsSoonAsTheAPIServerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := time.Now().Add(time.Minute)
		client := fake.NewClientset(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "u1"}})
		client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			return time.Now().Before(up), nil, errors.New("connection refused")
		})
		if got, _, err := Identity(t.Context(), client, ""); got != "u1" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if late := time.Since(up); late > time.Second {
			t.Errorf("%s after the API server answers", late)
		}
	})
}

func TestIdentityGivesUpWithTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		client := fake.NewClientset()
		client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("connection refused")
		})
		if got, _, err := Identity(ctx, client, ""); err == nil {
			t.Errorf("%q without an answer", got)
		}
	})
}
