// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// instanceService are the operations of the compute service that make instances and attach VNICs to them.
func instanceService() service {
	launch := Operation{
		Service: ServiceCompute, Name: "LaunchInstance", Method: http.MethodPost, Path: "/20160918/instances",
		Verb: Manage, Resource: instances.policy, RetryToken: true, handle: launchInstance,
		Partial: "images are not checked; no volumes to attach, capacity reservations, dedicated hosts, agents and platform settings",
	}
	attach := Operation{
		Service: ServiceCompute, Name: "AttachVnic", Method: http.MethodPost, Path: "/20160918/vnicAttachments",
		Verb: Manage, Resource: vnicAttachments.policy, RetryToken: true, handle: attachVNIC,
		Partial: "no VLANs, reserved private IPs and security attributes",
	}
	detach := Operation{
		Service: ServiceCompute, Name: "DetachVnic", Method: http.MethodDelete, Path: "/20160918/vnicAttachments/{vnicAttachmentId}",
		Verb: Manage, Target: vnicAttachments.kindInfo, IfMatch: true, handle: detachVNIC,
	}
	return service{
		operations: []Operation{launch, attach, detach},
		durations:  map[string]Range{"instance.launch": {Min: 20 * time.Second, Max: 60 * time.Second}},
	}
}

// attachVNIC makes a VNIC for an instance. It is there at once, and PROVISIONING; the attachment names it when it is
// ATTACHED.
func attachVNIC(c *call) (*answer, error) {
	d, err := decode[core.AttachVnicDetails](c)
	if err != nil {
		return nil, err
	}
	instance, err := instances.related(c, value(d.InstanceId))
	if err != nil {
		return nil, err
	}
	if state := instance.LifecycleState; state != core.InstanceLifecycleStateRunning && state != core.InstanceLifecycleStateStopped {
		if err := c.rule(VNICAttachBadState, value(instance.Id), state); err != nil {
			return nil, err
		}
	}
	if err := c.checkVNICCount(instance); err != nil {
		return nil, err
	}
	v, err := c.newInstanceVNIC(instance, d.CreateVnicDetails, false)
	if err != nil {
		return nil, err
	}
	a := c.newVNICAttachment(instance, v, d.DisplayName, value(d.NicIndex))
	c.completeVNIC(value(a.Id), value(v.Id), "vnic.attach")
	return c.created(vnicAttachments.lookup(c.cloud, *a.Id)), nil
}

// newVNICAttachment attaches a VNIC, whose attachment begins without naming it.
func (c *call) newVNICAttachment(instance *core.Instance, v *core.Vnic, name *string, nic int) *core.VnicAttachment {
	a := &core.VnicAttachment{
		Id: common.String(c.newOCID(vnicAttachments.ocidType)), CompartmentId: instance.CompartmentId,
		AvailabilityDomain: instance.AvailabilityDomain, InstanceId: instance.Id, SubnetId: v.SubnetId, DisplayName: name,
		LifecycleState: core.VnicAttachmentLifecycleStateAttaching, TimeCreated: c.sdkTime(), NicIndex: common.Int(nic),
	}
	vnicAttachments.insert(c.cloud, a)
	return a
}

// completeVNIC ends an attachment after a while.
func (c *call) completeVNIC(attachment, vnic, duration string) {
	cl := c.cloud
	cl.after(cl.duration(duration), func() {
		if vnics.lookup(cl, vnic) == nil {
			return
		}
		if vnicAttachments.setState(cl, attachment, string(core.VnicAttachmentLifecycleStateAttaching), string(core.VnicAttachmentLifecycleStateAttached)) {
			vnicAttachments.update(cl, attachment, func(a *core.VnicAttachment) { a.VnicId = common.String(vnic) })
			vnics.setState(cl, vnic, stateProvisioning, stateAvailable)
		}
	})
}

// checkVNICCount refuses one VNIC more than the shape has. Flexible shapes have two, or as many as OCPUs, up to 24.
func (c *call) checkVNICCount(instance *core.Instance) error {
	most := 2
	if shape := instance.ShapeConfig; shape != nil {
		most = min(24, max(most, int(value(shape.Ocpus))))
		if n := value(shape.MaxVnicAttachments); n > 0 {
			most = n
		}
	}
	n := 0
	for a := range vnicAttachments.under(c.cloud, value(instance.Id)) {
		if !terminal(string(a.LifecycleState)) {
			n++
		}
	}
	if n < most {
		return nil
	}
	return c.rule(TooManyVNICs, value(instance.Id), n)
}

// newInstanceVNIC makes the VNIC that a request describes, PROVISIONING.
func (c *call) newInstanceVNIC(instance *core.Instance, d *core.CreateVnicDetails, primary bool) (*core.Vnic, error) {
	if value(d.SubnetId) == "" {
		return nil, errMissing("createVnicDetails.subnetId")
	}
	if d.VlanId != nil || d.PrivateIpId != nil {
		return nil, errInvalid("VLANs and reserved private IPs are not supported.")
	}
	subnet, err := subnets.related(c, *d.SubnetId)
	if err != nil {
		return nil, err
	}
	public, err := c.checkVNIC(instance, d, subnet)
	if err != nil {
		return nil, err
	}
	spec := vnicSpec{
		compartment: value(instance.CompartmentId), subnet: value(subnet.Id), domain: value(instance.AvailabilityDomain),
		name: orElse(value(d.DisplayName), value(instance.DisplayName)), hostname: value(d.HostnameLabel),
		privateIP: value(d.PrivateIp), primary: primary, groups: d.NsgIds, owner: value(instance.Id),
	}
	for _, pair := range d.Ipv6AddressIpv6SubnetCidrPairDetails {
		spec.ipv6 = append(spec.ipv6, value(pair.Ipv6Address))
	}
	if value(d.AssignIpv6Ip) && len(spec.ipv6) == 0 {
		spec.ipv6 = []string{""}
	}
	v, err := c.addVNIC(spec)
	if err != nil {
		return nil, err
	}
	vnics.update(c.cloud, value(v.Id), func(v *core.Vnic) {
		v.LifecycleState = core.VnicLifecycleStateProvisioning
		v.SkipSourceDestCheck = common.Bool(value(d.SkipSourceDestCheck))
		setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	if public {
		if err := c.assignEphemeral(v); err != nil {
			c.removeVNIC(value(v.Id))
			return nil, err
		}
	}
	return vnics.find(c.cloud, value(v.Id)), nil
}

// checkVNIC checks the settings of a new VNIC, and says whether it gets a public address: by default in a public subnet
// only.
func (c *call) checkVNIC(instance *core.Instance, d *core.CreateVnicDetails, subnet *core.Subnet) (public bool, err error) {
	private := value(subnet.ProhibitPublicIpOnVnic)
	public = !private
	if d.AssignPublicIp != nil {
		public = *d.AssignPublicIp
	}
	sixth := value(d.AssignIpv6Ip) || len(d.Ipv6AddressIpv6SubnetCidrPairDetails) > 0
	domain := value(subnet.AvailabilityDomain)
	switch {
	case domain != "" && domain != value(instance.AvailabilityDomain):
		return false, errInvalid("The subnet %s is in the availability domain %s, the instance in %s.", value(subnet.Id), domain, value(instance.AvailabilityDomain))
	case private && public:
		return false, errInvalid("The subnet %s does not allow public IPs on VNICs.", value(subnet.Id))
	case sixth && value(subnet.Ipv6CidrBlock) == "":
		return false, errInvalid("Subnet %s has no IPv6 CIDR block.", value(subnet.Id))
	}
	return public, firstOf(checkName(d.DisplayName), c.checkHostname(d.HostnameLabel, subnet, ""), c.vnicGroups(d.NsgIds, subnet))
}

// assignEphemeral gives a VNIC a public address of its own.
func (cl *cloud) assignEphemeral(v *core.Vnic) error {
	public, err := cl.addPublicIP(publicIPSpec{compartment: value(v.CompartmentId), state: core.PublicIpLifecycleStateAvailable})
	if err != nil {
		return err
	}
	publicIPs.update(cl, value(public.Id), func(p *core.PublicIp) {
		p.Scope, p.AvailabilityDomain = core.PublicIpScopeAvailabilityDomain, v.AvailabilityDomain
	})
	cl.assignPublicIP(value(public.Id), value(cl.primaryPrivateIP(value(v.Id)).Id))
	return nil
}

// detachVNIC takes a secondary VNIC from its instance, and with it the VNIC itself. The attachment stays visible as
// DETACHED as long as a terminated instance does.
func detachVNIC(c *call) (*answer, error) {
	cl, id := c.cloud, c.target.id
	a := vnicAttachments.of(c.target)
	if a.LifecycleState != core.VnicAttachmentLifecycleStateAttached {
		return nil, errIncorrectState("The VNIC attachment %s has the lifecycle state %s; it must be ATTACHED.", id, a.LifecycleState)
	}
	vnic := value(a.VnicId)
	if v := vnics.find(cl, vnic); v != nil && value(v.IsPrimary) {
		if err := c.rule(PrimaryVNICDetach, id); err != nil {
			return nil, err
		}
	}
	const detaching, detached = string(core.VnicAttachmentLifecycleStateDetaching), string(core.VnicAttachmentLifecycleStateDetached)
	vnicAttachments.setState(cl, id, string(a.LifecycleState), detaching)
	cl.after(cl.duration("vnic.detach"), func() {
		if vnicAttachments.setState(cl, id, detaching, detached) {
			cl.releaseVNIC(vnic)
			cl.after(cl.behaviour.TerminatedVisible, func() { vnicAttachments.remove(cl, id) })
		}
	})
	return none(http.StatusNoContent), nil
}
