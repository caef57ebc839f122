// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// tags are those of the class, else those of the config; the common ones are laid over them (contract storage.md §2.1).
func (c *Controller) tags(w wishes) oci.Tags {
	base := c.options.Tags
	if w.tagged {
		base = w.tags
	}
	return over(over(base, w.more), c.options.CommonTags)
}

// over lays tags over others: free-form ones by key, defined ones by namespace.
func over(base, top oci.Tags) oci.Tags {
	out := oci.Tags{Freeform: map[string]string{}, Defined: map[string]map[string]any{}}
	for _, tags := range []oci.Tags{base, top} {
		for key, value := range tags.Freeform {
			out.Freeform[key] = value
		}
		for namespace, values := range tags.Defined {
			out.Defined[namespace] = values
		}
	}
	return out
}

func notes(parameters map[string]string) map[string]string {
	out := map[string]string{}
	for key, tag := range map[string]string{claimName: TagClaim, claimNamespace: TagNamespace, volumeName: TagVolume} {
		if value := parameters[key]; value != "" {
			out[tag] = value
		}
	}
	return out
}
