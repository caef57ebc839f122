// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// The lease is given up if, and only if, this process holds it.
func TestLeaseIsReleased(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	mine := host + "_1234"
	for name, test := range map[string]struct {
		atStart, atEnd string
		disabled       bool
		conflicts      int
		released       bool
	}{
		"held":                        {atStart: mine, atEnd: mine, released: true},
		"renewed in between":          {atStart: mine, atEnd: mine, conflicts: 2, released: true},
		"renewed all the time":        {atStart: mine, atEnd: mine, conflicts: 100},
		"lost":                        {atStart: mine, atEnd: "another_5678"},
		"lost to this host":           {atStart: mine, atEnd: host + "_5678"},
		"another's from the start":    {atStart: "another_5678", atEnd: "another_5678"},
		"no leader election":          {atStart: mine, atEnd: mine, disabled: true},
		"no lease when it was needed": {},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			leases := client.CoordinationV1().Leases("kube-system")
			set := func(holder string) {
				t.Helper()
				lease := &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cloud-controller-manager"},
					Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15), LeaseTransitions: ptr.To[int32](3)},
				}
				if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
					_, err = leases.Create(t.Context(), lease, metav1.CreateOptions{})
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			l := &leadership{enabled: !test.disabled, namespace: "kube-system", name: "cloud-controller-manager", client: client}
			if test.atStart != "" {
				set(test.atStart)
			}
			l.began(t.Context())
			if test.atEnd != "" {
				set(test.atEnd)
			}
			client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				if test.conflicts--; test.conflicts < 0 {
					return false, nil, nil
				}
				return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "cloud-controller-manager", errors.New("renewed"))
			})
			l.release(t.Context())
			if test.atEnd == "" {
				return
			}
			lease, err := leases.Get(t.Context(), "cloud-controller-manager", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := *lease.Spec.HolderIdentity == ""; got != test.released {
				t.Errorf("holder %q; want released: %v", *lease.Spec.HolderIdentity, test.released)
			}
			if test.released && (*lease.Spec.LeaseDurationSeconds != 1 || *lease.Spec.LeaseTransitions != 3) {
				t.Errorf("lease %+v", lease.Spec)
			}
		})
	}
}
