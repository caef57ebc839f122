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
// private addresses of its VNICs. All of them are known, or it is an error.
func (i *Inventory) NodeNames(ctx context.Context, instance *oci.Instance) ([]string, error) {
	vnics, err := i.VNICs(ctx, instance, Within(namesAge))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, v := range vnics {
		names = append(names, slices.Concat([]string{v.HostnameLabel, v.PrivateIP}, v.IPv6Addresses)...)
		if v.HostnameLabel == "" {
			continue
		}
		subnet, err := i.subnet(ctx, v.SubnetID, immutable)
		if err != nil {
			return nil, err
		}
		if subnet.DomainName != "" {
			names = append(names, v.HostnameLabel+"."+subnet.DomainName)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" }), nil
}
