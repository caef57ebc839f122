// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Presence finds out whether an instance exists, by the rule of oci.Decide.
//
// A 404 is a proof only together with complete lists of every compartment that the instance may be in: the one where it
// was seen last, the hinted ones, and the cluster's own. A hint may be wrong, so it is never enough by itself.
//
// The instance is nil if it was neither read nor listed. The error is nil unless the Presence is Unknown.
func (i *Inventory) Presence(ctx context.Context, id string, need Need) (*oci.Instance, oci.Presence, oci.Proof, error) {
	var instance *oci.Instance
	compartments := i.compartmentsOf(id, need.Compartments)
	presence, proof, err := oci.Decide(ctx, oci.Evidence{
		Read: func(ctx context.Context) (string, error) {
			read, err := i.Instance(ctx, id, need)
			if err != nil {
				return "", err
			}
			instance = read
			return read.State, nil
		},
		Terminal:    []string{stateTerminated},
		Compartment: strings.Join(compartments, " and "),
		List: func(ctx context.Context) (string, bool, error) {
			for _, compartment := range compartments {
				all, err := i.list(ctx, compartment, need.MaxAge)
				if err != nil {
					return "", false, err
				}
				if found := all[id]; found != nil {
					instance = found
					return found.State, true, nil
				}
			}
			return "", false, nil
		},
	})
	return instance, presence, proof, err
}

func (i *Inventory) compartmentsOf(id string, hints []string) []string {
	var list []string
	if last, ok := i.instances.last(id); ok {
		list = append(list, last.CompartmentID)
	}
	for _, c := range append(slices.Clone(hints), i.config.CompartmentID) {
		if c != "" && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// list returns all instances of a compartment by OCID. Everybody who asks for the same compartment shares one list.
func (i *Inventory) list(ctx context.Context, compartmentID string, maxAge time.Duration) (map[string]*oci.Instance, error) {
	return i.lists.get(ctx, compartmentID, maxAge, func(ctx context.Context) (map[string]*oci.Instance, error) {
		began := time.Now()
		all, err := i.compute.ListInstances(ctx, compartmentID, "")
		if err != nil {
			return nil, err
		}
		byID := make(map[string]*oci.Instance, len(all))
		for _, instance := range all {
			i.trimmed(instance)
			byID[instance.ID] = instance
			i.instances.put(instance.ID, instance, began)
		}
		i.serves(Fallback{List: ListOfInstances, CompartmentID: compartmentID})
		return byID, nil
	})
}
