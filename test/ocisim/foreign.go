// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// ErrUnknownResource says that the region has no such resource.
var ErrUnknownResource = errors.New("no such resource")

// Foreign writes to the region as a person or as Terraform would, past the API: no policy, no rate, no call log.
// Etags change as after any write.
type Foreign struct {
	region *Region
}

// Foreign returns the hand of somebody else.
func (r *Region) Foreign() *Foreign { return &Foreign{r} }

// Trigger says at which calls of a client somebody else acts. Empty conditions match everything.
type Trigger struct {
	Operation string `json:"operation,omitempty"` // as in Fault
	Principal string `json:"principal,omitempty"`
	Resource  string `json:"resource,omitempty"`
	Writes    bool   `json:"writes,omitempty"`
	Nth       int    `json:"nth,omitempty"`   // first matching call, from 1; 0 is the first
	Times     int    `json:"times,omitempty"` // how often from there on; 0 is once
}

// Validate refuses a trigger that can never match. Its error wraps ErrOption.
func (t Trigger) Validate() error {
	f := t.fault()
	f.act = func(Call) {}
	return f.Validate()
}

func (t Trigger) fault() Fault {
	return Fault{
		Operation: t.Operation, Principal: t.Principal, Resource: t.Resource, Writes: t.Writes,
		Nth: max(t.Nth, 1), Times: t.Times, Note: "somebody else acts",
	}
}

// Before lets somebody else act just before a call of a client is applied, as if between that call and the one before
// it, until remove is called. The function runs without the region's lock; the client waits for it.
func (f *Foreign) Before(t Trigger, act func(*Foreign, Call)) (remove func()) {
	fault := t.fault()
	fault.act = func(c Call) { act(f, c) }
	return f.region.Fault(fault)
}

// After is Before for the moment when a call is applied and its answer has not left yet.
func (f *Foreign) After(t Trigger, act func(*Foreign, Call)) (remove func()) {
	fault := t.fault()
	fault.act, fault.Applied = func(c Call) { act(f, c) }, true
	return f.region.Fault(fault)
}

// mutate changes a resource of a kind.
func mutate[T any](f *Foreign, k kind[T], id string, change func(*T)) error {
	cl := f.region.lock()
	defer f.region.mu.Unlock()
	if k.lookup(cl, id) == nil {
		return fmt.Errorf("%s %s: %w", k.label, id, ErrUnknownResource)
	}
	k.update(cl, id, change)
	return nil
}

// Instance changes an instance.
func (f *Foreign) Instance(id string, change func(*core.Instance)) error {
	return mutate(f, instances, id, change)
}

// VNICAttachment changes a VNIC attachment.
func (f *Foreign) VNICAttachment(id string, change func(*core.VnicAttachment)) error {
	return mutate(f, vnicAttachments, id, change)
}

// VNIC changes a VNIC. Its addresses are better changed through the API.
func (f *Foreign) VNIC(id string, change func(*core.Vnic)) error {
	return mutate(f, vnics, id, change)
}

// Subnet changes a subnet.
func (f *Foreign) Subnet(id string, change func(*core.Subnet)) error {
	return mutate(f, subnets, id, change)
}

// VCN changes a VCN.
func (f *Foreign) VCN(id string, change func(*core.Vcn)) error {
	return mutate(f, vcns, id, change)
}

// SecurityList changes a security list.
func (f *Foreign) SecurityList(id string, change func(*core.SecurityList)) error {
	return mutate(f, securityLists, id, change)
}

// SecurityGroup changes a network security group.
func (f *Foreign) SecurityGroup(id string, change func(*core.NetworkSecurityGroup)) error {
	return mutate(f, securityGroups, id, change)
}

// PublicIP changes a public address.
func (f *Foreign) PublicIP(id string, change func(*core.PublicIp)) error {
	return mutate(f, publicIPs, id, change)
}

// AddRules adds rules to a network security group and returns their identifiers.
func (f *Foreign) AddRules(groupID string, rules ...core.SecurityRule) ([]string, error) {
	cl := f.region.lock()
	defer f.region.mu.Unlock()
	if securityGroups.lookup(cl, groupID) == nil {
		return nil, fmt.Errorf("network security group %s: %w", groupID, ErrUnknownResource)
	}
	ids := make([]string, 0, len(rules))
	for i := range rules {
		cl.insertGroupRule(groupID, &rules[i])
		ids = append(ids, *rules[i].Id)
	}
	return ids, nil
}

// RemoveRule takes a rule out of a network security group.
func (f *Foreign) RemoveRule(groupID, ruleID string) error {
	cl := f.region.lock()
	defer f.region.mu.Unlock()
	if groupRules.lookup(cl, ruleKey(groupID, ruleID)) == nil {
		return fmt.Errorf("rule %s of %s: %w", ruleID, groupID, ErrUnknownResource)
	}
	groupRules.remove(cl, ruleKey(groupID, ruleID))
	return nil
}

// StopInstance stops an instance as the console's button does: like StartInstance and TerminateInstance it lets the
// instance pass through its transient state.
func (f *Foreign) StopInstance(id string) error {
	return f.instanceAction(id, (*cloud).stopInstance)
}

// StartInstance starts a stopped instance.
func (f *Foreign) StartInstance(id string) error {
	return f.instanceAction(id, (*cloud).startInstance)
}

// TerminateInstance terminates an instance. Its record stays visible for Behaviour.TerminatedVisible.
func (f *Foreign) TerminateInstance(id string) error {
	return f.instanceAction(id, (*cloud).terminateInstance)
}

func (f *Foreign) instanceAction(id string, act func(*cloud, string) error) error {
	cl := f.region.lock()
	defer f.region.mu.Unlock()
	if instances.lookup(cl, id) == nil {
		return fmt.Errorf("instance %s: %w", id, ErrUnknownResource)
	}
	return act(cl, id)
}

// Delete removes any resource at once, as if it had never been, with what hangs on it. References to it stay.
func (f *Foreign) Delete(id string) error {
	cl := f.region.lock()
	defer f.region.mu.Unlock()
	res := cl.store.byID[id]
	if res == nil {
		return fmt.Errorf("%s: %w", id, ErrUnknownResource)
	}
	if remove := cl.removers[res.kind]; remove != nil {
		remove(cl, id)
		return nil
	}
	cl.discard(res)
	return nil
}

// Patch changes any resource by a JSON merge patch (RFC 7386) of its representation in the API.
func (f *Foreign) Patch(id string, patch []byte) error {
	cl := f.region.lock()
	defer f.region.mu.Unlock()
	res := cl.store.byID[id]
	if res == nil {
		return fmt.Errorf("%s: %w", id, ErrUnknownResource)
	}
	if res.kind.render != nil {
		return fmt.Errorf("patch %s: a %s is not stored in the form of the API", id, res.kind.label)
	}
	var current, change any
	if err := unmarshalExact(cl.encoder.encode(res.value), &current); err != nil {
		return fmt.Errorf("patch %s: %w", id, err)
	}
	if err := unmarshalExact(patch, &change); err != nil {
		return fmt.Errorf("patch %s: %w", id, err)
	}
	merged, err := json.Marshal(mergePatch(current, change))
	if err != nil {
		return fmt.Errorf("patch %s: %w", id, err)
	}
	next := reflect.New(reflect.TypeOf(res.value).Elem()).Interface()
	if err := json.Unmarshal(merged, next); err != nil {
		return fmt.Errorf("patch %s: %w", id, err)
	}
	if got := res.kind.facetsOf(next).id; got != id {
		return fmt.Errorf("patch %s: the identifier cannot be changed", id)
	}
	cl.replace(res, next)
	return nil
}

// unmarshalExact keeps numbers as they are written, because 64 bits do not fit into a float.
func unmarshalExact(raw []byte, into *any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// mergePatch applies RFC 7386.
func mergePatch(target, patch any) any {
	change, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for name, v := range change {
		if v == nil {
			delete(object, name)
			continue
		}
		object[name] = mergePatch(object[name], v)
	}
	return object
}
