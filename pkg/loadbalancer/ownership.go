// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Marks: free-form tags on the balancers that this program makes.
const (
	TagCluster = "oci-k8s-cluster"
	TagOwner   = "oci-k8s-owner"
)

// Limits of tags on a resource (oci-api.md §3.5).
const (
	maxFreeformTags = 10
	maxTagsBytes    = 5 * 1024
)

// marksOf are the marks of a Service's balancer.
func marksOf(svc *v1.Service, clusterID string) map[string]string {
	marks := map[string]string{TagOwner: string(svc.UID)}
	if clusterID != "" {
		marks[TagCluster] = clusterID
	}
	return marks
}

// ownership is how a balancer is known to be a Service's.
type ownership int

const (
	notOwned ownership = iota
	ownedByName
	ownedByMark
)

// owns says whether a balancer is the Service's. Marks of another owner or cluster outweigh the name: names can be copied
// along with the cluster they were made for.
func owns(svc *v1.Service, clusterID string, b *oci.Balancer) ownership {
	owner, cluster := b.Freeform[TagOwner], b.Freeform[TagCluster]
	switch {
	case owner != "" && owner != string(svc.UID):
		return notOwned
	case cluster != "" && clusterID != "" && cluster != clusterID:
		return notOwned
	case owner != "":
		return ownedByMark
	case hasDisplayName(b, svc):
		return ownedByName
	}
	return notOwned
}

// withTags returns free-form tags with others laid over them.
func withTags(tags, over map[string]string) map[string]string {
	out := make(map[string]string, len(tags)+len(over))
	for key, value := range tags {
		out[key] = value
	}
	for key, value := range over {
		out[key] = value
	}
	return out
}

// overTagLimit says whether the documented limits do not allow these tags.
func overTagLimit(tags oci.Tags) bool {
	if len(tags.Freeform) > maxFreeformTags {
		return true
	}
	text, err := json.Marshal(tags)
	return err == nil && len(text) > maxTagsBytes
}
