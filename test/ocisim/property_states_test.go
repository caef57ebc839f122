// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"slices"
	"strings"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/certificatesmanagement"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/filestorage"
	"github.com/oracle/oci-go-sdk/v65/identity"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/lustrefilestorage"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// lifecycle is the state machine of a kind: the states that may follow each state. A state that is no key has no way
// out; the initial states follow start, and what is removed from the region goes to gone.
type lifecycle struct {
	sdk   []string // the states that the SDK knows
	paths map[string][]string
}

const (
	start = "(new)"
	gone  = "(gone)"
)

// stateless is for kinds without a lifecycle state: they are there or not.
func stateless() lifecycle {
	return lifecycle{paths: map[string][]string{start: {""}, "": {gone}}}
}

// immediate is for kinds that are there at once and go at once.
func immediate(sdk []string, state string) lifecycle {
	return lifecycle{sdk: sdk, paths: map[string][]string{start: {state}, state: {gone}}}
}

// fixed is for kinds that the API of the simulator cannot make or delete.
func fixed(sdk []string, state string) lifecycle {
	return lifecycle{sdk: sdk, paths: map[string][]string{start: {state}}}
}

// network is for the parts of a network.
func network(sdk []string) lifecycle {
	return lifecycle{sdk: sdk, paths: map[string][]string{
		start:          {"PROVISIONING", "AVAILABLE"},
		"PROVISIONING": {"AVAILABLE", "TERMINATING"},
		"AVAILABLE":    {"TERMINATING", gone},
		"TERMINATING":  {"TERMINATED", gone},
		"TERMINATED":   {gone},
	}}
}

// provisioned is for kinds that take time to make and to delete, and to change where updating is set.
func provisioned(sdk []string, updating bool) lifecycle {
	l := lifecycle{sdk: sdk, paths: map[string][]string{
		start:      {"CREATING", "ACTIVE"},
		"CREATING": {"ACTIVE", "DELETING"},
		"ACTIVE":   {"DELETING"},
		"DELETING": {"DELETED"},
		"DELETED":  {gone},
	}}
	if slices.Contains(sdk, "FAILED") {
		l.paths["CREATING"] = append(l.paths["CREATING"], "FAILED")
		l.paths["FAILED"] = []string{"DELETING"}
	}
	if updating {
		l.paths["ACTIVE"] = append(l.paths["ACTIVE"], "UPDATING")
		l.paths["UPDATING"] = []string{"ACTIVE"}
	}
	return l
}

// attaching is for attachments of any kind.
func attaching(sdk []string) lifecycle {
	return lifecycle{sdk: sdk, paths: map[string][]string{
		start:       {"ATTACHING", "ATTACHED"},
		"ATTACHING": {"ATTACHED", "DETACHING", "DETACHED"}, // at once when the attaching fails
		"ATTACHED":  {"DETACHING"},
		"DETACHING": {"DETACHED", "ATTACHED"}, // back when the detaching fails
		"DETACHED":  {gone},
	}}
}

// lifecycles are the state machines by label of the kind. A new kind joins the property tests by an entry.
func lifecycles() map[string]lifecycle {
	return map[string]lifecycle{
		"compartment": {
			sdk: identity.GetCompartmentLifecycleStateEnumStringValues(),
			paths: map[string][]string{
				start:      {"CREATING", "ACTIVE"},
				"CREATING": {"ACTIVE"},
				"ACTIVE":   {"DELETING"},
				"DELETING": {"DELETED", "ACTIVE"}, // back when it is not empty
				"DELETED":  {gone},
			},
		},
		"volume group": {
			sdk: core.GetVolumeGroupLifecycleStateEnumStringValues(),
			paths: map[string][]string{
				start:            {"PROVISIONING", "AVAILABLE"},
				"PROVISIONING":   {"AVAILABLE", "FAULTY", "TERMINATING"},
				"AVAILABLE":      {"UPDATE_PENDING", "PROVISIONING", "TERMINATING"},
				"UPDATE_PENDING": {"AVAILABLE", "TERMINATING"},
				"FAULTY":         {"TERMINATING"},
				"TERMINATING":    {"TERMINATED"},
				"TERMINATED":     {gone},
			},
		},
		"volume group backup": {
			sdk: core.GetVolumeGroupBackupLifecycleStateEnumStringValues(),
			paths: map[string][]string{
				start:              {"REQUEST_RECEIVED", "CREATING", "COMMITTED", "AVAILABLE"},
				"REQUEST_RECEIVED": {"CREATING", "COMMITTED", "FAULTY", "TERMINATING"},
				"CREATING":         {"COMMITTED", "AVAILABLE", "FAULTY", "TERMINATING"},
				"COMMITTED":        {"AVAILABLE", "FAULTY", "TERMINATING"},
				"AVAILABLE":        {"TERMINATING"},
				"FAULTY":           {"TERMINATING"},
				"TERMINATING":      {"TERMINATED"},
				"TERMINATED":       {gone},
			},
		},
		"VCN":                    network(core.GetVcnLifecycleStateEnumStringValues()),
		"subnet":                 network(core.GetSubnetLifecycleStateEnumStringValues()),
		"security list":          network(core.GetSecurityListLifecycleStateEnumStringValues()),
		"route table":            network(core.GetRouteTableLifecycleStateEnumStringValues()),
		"DHCP options":           network(core.GetDhcpOptionsLifecycleStateEnumStringValues()),
		"internet gateway":       network(core.GetInternetGatewayLifecycleStateEnumStringValues()),
		"NAT gateway":            network(core.GetNatGatewayLifecycleStateEnumStringValues()),
		"service gateway":        network(core.GetServiceGatewayLifecycleStateEnumStringValues()),
		"network security group": immediate(core.GetNetworkSecurityGroupLifecycleStateEnumStringValues(), "AVAILABLE"),
		"security rule":          stateless(),
		"private IP":             stateless(),
		"IPv6 address":           immediate(core.GetIpv6LifecycleStateEnumStringValues(), "AVAILABLE"),
		"instance": {
			sdk: core.GetInstanceLifecycleStateEnumStringValues(),
			paths: map[string][]string{
				start:          {"PROVISIONING", "RUNNING", "STOPPED"},
				"PROVISIONING": {"RUNNING", "TERMINATING"},
				"RUNNING":      {"STOPPING", "TERMINATING"},
				"STOPPING":     {"STOPPED", "TERMINATING"},
				"STOPPED":      {"STARTING", "TERMINATING"},
				"STARTING":     {"RUNNING", "TERMINATING"},
				"TERMINATING":  {"TERMINATED"},
				"TERMINATED":   {gone},
			},
		},
		"VNIC attachment": attaching(core.GetVnicAttachmentLifecycleStateEnumStringValues()),
		"VNIC":            network(core.GetVnicLifecycleStateEnumStringValues()),
		"public IP": {
			sdk: core.GetPublicIpLifecycleStateEnumStringValues(),
			paths: map[string][]string{
				start:          {"PROVISIONING", "AVAILABLE", "ASSIGNED"},
				"PROVISIONING": {"AVAILABLE", "ASSIGNING", "TERMINATING"},
				"AVAILABLE":    {"ASSIGNING", "ASSIGNED", "TERMINATING"}, // a NAT gateway takes and gives addresses at once
				"ASSIGNING":    {"ASSIGNED", "UNASSIGNING", "TERMINATING"},
				"ASSIGNED":     {"ASSIGNING", "UNASSIGNING", "AVAILABLE", "TERMINATING", gone},
				"UNASSIGNING":  {"AVAILABLE", "TERMINATING", gone}, // an ephemeral address ends here
				"TERMINATING":  {gone},
			},
		},
		"load balancer": {
			sdk: loadbalancer.GetLoadBalancerLifecycleStateEnumStringValues(),
			paths: map[string][]string{
				start:      {"CREATING", "ACTIVE"},
				"CREATING": {"ACTIVE", "FAILED"},
				"ACTIVE":   {"DELETING"},
				"FAILED":   {"DELETING"},
				"DELETING": {"DELETED", "ACTIVE", "FAILED"}, // back where it was when the work request fails
				"DELETED":  {gone},
			},
		},
		"network load balancer": {
			sdk: networkloadbalancer.GetLifecycleStateEnumStringValues(),
			paths: map[string][]string{
				start:      {"CREATING", "ACTIVE"},
				"CREATING": {"ACTIVE", "FAILED"},
				"ACTIVE":   {"UPDATING", "DELETING"},
				"UPDATING": {"ACTIVE"},
				"FAILED":   {"DELETING"},
				"DELETING": {"DELETED", "ACTIVE", "FAILED"},
				"DELETED":  {gone},
			},
		},
		"file system":  provisioned(filestorage.GetFileSystemLifecycleStateEnumStringValues(), true),
		"snapshot":     provisioned(filestorage.GetSnapshotLifecycleStateEnumStringValues(), false),
		"mount target": provisioned(filestorage.GetMountTargetLifecycleStateEnumStringValues(), true),
		"export set":   provisioned(filestorage.GetExportSetLifecycleStateEnumStringValues(), false),
		"export":       provisioned(filestorage.GetExportLifecycleStateEnumStringValues(), false),
		"volume": {
			sdk: core.GetVolumeLifecycleStateEnumStringValues(),
			paths: map[string][]string{
				start:          {"PROVISIONING", "AVAILABLE"},
				"PROVISIONING": {"AVAILABLE", "RESTORING", "FAULTY", "TERMINATING"},
				"RESTORING":    {"AVAILABLE", "FAULTY", "TERMINATING"},
				"AVAILABLE":    {"PROVISIONING", "TERMINATING"}, // a resize passes through PROVISIONING
				"FAULTY":       {"TERMINATING"},
				"TERMINATING":  {"TERMINATED"},
				"TERMINATED":   {gone},
			},
		},
		"boot volume": {
			sdk: core.GetBootVolumeLifecycleStateEnumStringValues(),
			paths: map[string][]string{
				start:          {"PROVISIONING", "AVAILABLE"},
				"PROVISIONING": {"AVAILABLE", "RESTORING", "FAULTY", "TERMINATING"},
				"RESTORING":    {"AVAILABLE", "FAULTY", "TERMINATING"},
				"AVAILABLE":    {"PROVISIONING", "TERMINATING"},
				"FAULTY":       {"TERMINATING"},
				"TERMINATING":  {"TERMINATED"},
				"TERMINATED":   {gone},
			},
		},
		"volume backup": {
			sdk: core.GetVolumeBackupLifecycleStateEnumStringValues(),
			paths: map[string][]string{
				start:              {"REQUEST_RECEIVED", "AVAILABLE"},
				"REQUEST_RECEIVED": {"CREATING", "TERMINATING", "FAULTY"},
				"CREATING":         {"AVAILABLE", "FAULTY", "TERMINATING"},
				"AVAILABLE":        {"TERMINATING"},
				"FAULTY":           {"TERMINATING"},
				"TERMINATING":      {"TERMINATED"},
				"TERMINATED":       {gone},
			},
		},
		"volume attachment":      attaching(core.GetVolumeAttachmentLifecycleStateEnumStringValues()),
		"boot volume attachment": attaching(core.GetBootVolumeAttachmentLifecycleStateEnumStringValues()),
		"Lustre file system": {
			sdk: lustrefilestorage.GetLustreFileSystemLifecycleStateEnumStringValues(),
			paths: map[string][]string{
				start:      {"CREATING", "ACTIVE"},
				"CREATING": {"ACTIVE", "FAILED"},
				"ACTIVE":   {"UPDATING", "INACTIVE", "DELETING"},
				"INACTIVE": {"ACTIVE", "DELETING"},
				"UPDATING": {"ACTIVE"},
				"FAILED":   {"DELETING"},
				"DELETING": {"DELETED", "ACTIVE", "INACTIVE", "FAILED"}, // back where it was when the work request fails
				"DELETED":  {gone},
			},
		},
		"certificate": fixed(certificatesmanagement.GetCertificateLifecycleStateEnumStringValues(), "ACTIVE"),
		"CA bundle":   fixed(certificatesmanagement.GetCaBundleLifecycleStateEnumStringValues(), "ACTIVE"),
		"work request": {
			sdk: networkloadbalancer.GetOperationStatusEnumStringValues(),
			paths: map[string][]string{
				start: {workAccepted}, workAccepted: {workInProgress}, workInProgress: {workSucceeded, workFailed},
				workSucceeded: {gone}, workFailed: {gone},
			},
		},
	}
}

// TestLifecyclesAreTheSDKs: a state machine has no state that the SDK does not know, and no dead end but the end.
func TestLifecyclesAreTheSDKs(t *testing.T) {
	for label, machine := range lifecycles() {
		reached := map[string]bool{start: true}
		for from, next := range machine.paths {
			for _, to := range next {
				reached[to] = true
				if to != gone && machine.sdk != nil && !slices.Contains(machine.sdk, to) {
					t.Errorf("%s: the SDK has no state %s; it has %s", label, to, strings.Join(machine.sdk, " "))
				}
			}
			if from == "" && machine.sdk != nil {
				t.Errorf("%s has a state without a name", label)
			}
		}
		for from := range machine.paths {
			if !reached[from] {
				t.Errorf("%s: nothing leads to %s", label, from)
			}
		}
	}
}

// TestEveryKindHasALifecycle: what the operations are about has a state machine in the tests.
func TestEveryKindHasALifecycle(t *testing.T) {
	region := New(Options{})
	known := lifecycles()
	for _, o := range region.Operations() {
		if o.Target == nil {
			continue
		}
		if _, ok := known[o.Target.label]; !ok {
			t.Errorf("%s: the kind %q has no entry in lifecycles()", o.FullName(), o.Target.label)
		}
	}
}

// allows says whether a kind may go from one state to another.
func (l lifecycle) allows(from, to string) bool {
	return from == to || slices.Contains(l.paths[from], to)
}
