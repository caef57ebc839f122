// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"encoding/json"

	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/identity"
)

// inspect copies the resources of a kind that are listed under a key.
func inspect[T any](r *Region, k kind[T], key string) []T {
	cl := r.lock()
	defer r.mu.Unlock()
	return k.all(cl, key)
}

// inspectOne copies one resource.
func inspectOne[T any](r *Region, k kind[T], id string) (T, bool) {
	cl := r.lock()
	defer r.mu.Unlock()
	if v := k.find(cl, id); v != nil {
		return *cloneOf(v), true
	}
	var zero T
	return zero, false
}

// Compartments returns all compartments, the tenancy first.
func (r *Region) Compartments() []identity.Compartment { return inspect(r, compartments, "") }

// Instances returns all instances in order of creation, terminated ones included while they are visible.
func (r *Region) Instances() []core.Instance { return inspect(r, instances, "") }

// Instance returns one instance.
func (r *Region) Instance(id string) (core.Instance, bool) { return inspectOne(r, instances, id) }

// VNICAttachments returns all VNIC attachments.
func (r *Region) VNICAttachments() []core.VnicAttachment { return inspect(r, vnicAttachments, "") }

// VNICs returns all VNICs, those of load balancers included.
func (r *Region) VNICs() []core.Vnic { return inspect(r, vnics, "") }

// VNIC returns one VNIC.
func (r *Region) VNIC(id string) (core.Vnic, bool) { return inspectOne(r, vnics, id) }

// InstanceVNICs returns the VNICs that are attached to an instance, in order of attachment.
func (r *Region) InstanceVNICs(instanceID string) []core.Vnic {
	cl := r.lock()
	defer r.mu.Unlock()
	var list []core.Vnic
	for a := range vnicAttachments.under(cl, instanceID) {
		if a.LifecycleState != core.VnicAttachmentLifecycleStateAttached {
			continue
		}
		if v := vnics.find(cl, value(a.VnicId)); v != nil {
			list = append(list, *cloneOf(v))
		}
	}
	return list
}

// PrivateIPs returns all private addresses.
func (r *Region) PrivateIPs() []core.PrivateIp { return inspect(r, privateIPs, "") }

// IPv6s returns all IPv6 addresses.
func (r *Region) IPv6s() []core.Ipv6 { return inspect(r, ipv6s, "") }

// PublicIPs returns all public addresses that are resources of their own.
func (r *Region) PublicIPs() []core.PublicIp { return inspect(r, publicIPs, "") }

// VCNs returns all VCNs.
func (r *Region) VCNs() []core.Vcn { return inspect(r, vcns, "") }

// Subnets returns all subnets.
func (r *Region) Subnets() []core.Subnet { return inspect(r, subnets, "") }

// Subnet returns one subnet.
func (r *Region) Subnet(id string) (core.Subnet, bool) { return inspectOne(r, subnets, id) }

// SecurityLists returns all security lists.
func (r *Region) SecurityLists() []core.SecurityList { return inspect(r, securityLists, "") }

// SecurityList returns one security list.
func (r *Region) SecurityList(id string) (core.SecurityList, bool) {
	return inspectOne(r, securityLists, id)
}

// SecurityGroups returns all network security groups.
func (r *Region) SecurityGroups() []core.NetworkSecurityGroup { return inspect(r, securityGroups, "") }

// SecurityGroup returns one network security group.
func (r *Region) SecurityGroup(id string) (core.NetworkSecurityGroup, bool) {
	return inspectOne(r, securityGroups, id)
}

// GroupRules returns the rules of a network security group.
func (r *Region) GroupRules(groupID string) []core.SecurityRule {
	cl := r.lock()
	defer r.mu.Unlock()
	var list []core.SecurityRule
	for g := range groupRules.under(cl, groupID) {
		list = append(list, cloneOf(g).rule)
	}
	return list
}

// ETag returns the current etag of any resource, "" for an unknown one.
func (r *Region) ETag(id string) string {
	cl := r.lock()
	defer r.mu.Unlock()
	if res := cl.store.byID[id]; res != nil {
		return res.etag
	}
	return ""
}

// Snapshot returns the whole region as JSON: kind, then identifier, then etag and value, all sorted. Two snapshots of
// the same state are equal, so a test can compare what a client must not have touched.
func (r *Region) Snapshot() []byte {
	cl := r.lock()
	defer r.mu.Unlock()
	type object struct {
		ETag  string          `json:"etag"`
		Value json.RawMessage `json:"value"`
	}
	kinds := map[string]map[string]object{}
	for id, res := range cl.store.byID {
		if kinds[res.kind.label] == nil {
			kinds[res.kind.label] = map[string]object{}
		}
		kinds[res.kind.label][id] = object{ETag: res.etag, Value: cl.encoder.encode(res.rendered())}
	}
	raw, err := json.MarshalIndent(kinds, "", "  ")
	if err != nil {
		// The encoder writes valid JSON.
		panic("ocisim: " + err.Error())
	}
	return raw
}
