// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The ConfigMap with which the implementation up to v1.35 could be tuned, if its ClusterRole was extended (contract storage.md §1.9).
const (
	tuningNamespace = "kube-system"
	tuningName      = "oci-csi-config"
)

// Tuning lists the keys of the ConfigMap oci-csi-config.
func (r *NodeReader) Tuning(ctx context.Context) ([]string, error) {
	m, err := r.client.CoreV1().ConfigMaps(tuningNamespace).Get(ctx, tuningName, metav1.GetOptions{})
	if err != nil {
		return nil, r.explain(err, "get configmaps")
	}
	return slices.Sorted(maps.Keys(m.Data)), nil
}
