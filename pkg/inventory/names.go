// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"slices"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// namesAge is how old the addresses may be by which NodeNames calls an instance.
const namesAge = time.Minute

// NodeNames returns the names that the Node of an instance may have, beside the display name of the instance: host names and
// addresses of its VNICs.
func (i *Inventory) NodeNames(ctx context.Context, instance *oci.Instance) ([]string, error) {
	vnics, err := i.VNICs(ctx, instance, Within(namesAge))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, v := range vnics {
		for _, name := range slices.Concat([]string{v.HostnameLabel, v.PrivateIP}, v.IPv6Addresses) {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	return names, nil
}
