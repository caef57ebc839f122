// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"slices"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// nlbLimit is the service limit that network load balancers count on. Its name was not seen.
const nlbLimit = "networkloadbalancer-count"

func createNetworkLoadBalancer(c *call) (*answer, error) {
	d, err := decode[networkloadbalancer.CreateNetworkLoadBalancerDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	v, err := c.newNLB(d)
	if err != nil {
		return nil, err
	}
	res := networkLoadBalancers.insert(c.cloud, v)
	id, cl := value(v.Id), c.cloud
	work := c.submit(task{
		ocidType: "networkloadbalancerworkrequest", operation: string(networkloadbalancer.OperationTypeCreateNetworkLoadBalancer),
		compartment: value(d.CompartmentId), target: id, entity: "NetworkLoadBalancer", duration: "networkloadbalancer.create",
		finish: func() []workProblem {
			addresses, err := cl.nlbAddresses(networkLoadBalancers.find(cl, id), d)
			if err != nil {
				return problemsOf(err)
			}
			networkLoadBalancers.update(cl, id, func(v *networkloadbalancer.NetworkLoadBalancer) {
				v.LifecycleState, v.IpAddresses, v.TimeUpdated = networkloadbalancer.LifecycleStateActive, addresses, cl.sdkTime()
				cl.balancers.track(id, nil, nlbBackendNames(v), cl.now)
			})
			return nil
		},
		failed: func(problems []workProblem) {
			networkLoadBalancers.update(cl, id, func(v *networkloadbalancer.NetworkLoadBalancer) {
				v.LifecycleState, v.LifecycleDetails = networkloadbalancer.LifecycleStateFailed, common.String(problems[0].message)
			})
		},
	})
	a := c.created(res)
	a.status, a.workRequest = http.StatusAccepted, work.id
	return a, nil
}

// newNLB checks a request as a whole and makes the network load balancer of it. It is private unless the request
// says otherwise.
func (c *call) newNLB(d *networkloadbalancer.CreateNetworkLoadBalancerDetails) (*networkloadbalancer.NetworkLoadBalancer, error) {
	if err := checkSize("displayName", value(d.DisplayName), 1, maxBalancerName); err != nil {
		return nil, err
	}
	private := d.IsPrivate == nil || *d.IsPrivate
	subnet, err := subnets.related(c, value(d.SubnetId))
	if err != nil {
		return nil, err
	}
	if !private && value(subnet.ProhibitPublicIpOnVnic) {
		if err := c.rule(PublicBalancerInPrivateSubnet, value(subnet.Id)); err != nil {
			return nil, err
		}
	}
	if err := c.balancerGroups(d.NetworkSecurityGroupIds); err != nil {
		return nil, err
	}
	if err := c.nlbReserved(d.ReservedIps, private); err != nil {
		return nil, err
	}
	if err := c.nlbCount(); err != nil {
		return nil, err
	}
	v := &networkloadbalancer.NetworkLoadBalancer{
		Id: common.String(c.newOCID(networkLoadBalancers.ocidType)), CompartmentId: d.CompartmentId, DisplayName: d.DisplayName,
		LifecycleState: networkloadbalancer.LifecycleStateCreating, TimeCreated: c.sdkTime(),
		IpAddresses: []networkloadbalancer.IpAddress{}, SubnetId: d.SubnetId, NlbIpVersion: d.NlbIpVersion,
		IsPrivate:                   common.Bool(private),
		IsPreserveSourceDestination: orDefault(d.IsPreserveSourceDestination, false),
		IsSymmetricHashEnabled:      orDefault(d.IsSymmetricHashEnabled, false),
		NetworkSecurityGroupIds:     d.NetworkSecurityGroupIds,
		Listeners:                   map[string]networkloadbalancer.Listener{}, BackendSets: map[string]networkloadbalancer.BackendSet{},
		FreeformTags: d.FreeformTags, DefinedTags: d.DefinedTags, SecurityAttributes: d.SecurityAttributes,
	}
	if v.NlbIpVersion == "" {
		v.NlbIpVersion = networkloadbalancer.NlbIpVersionIpv4
	}
	if err := checkFamilies(subnet, v.NlbIpVersion); err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(d.BackendSets) {
		if err := c.putNLBBackendSet(v, name, recast[networkloadbalancer.BackendSet](d.BackendSets[name])); err != nil {
			return nil, err
		}
	}
	for _, name := range sortedKeys(d.Listeners) {
		if err := c.putNLBListener(v, name, recast[networkloadbalancer.Listener](d.Listeners[name])); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// nlbReserved checks reserved addresses: at most three, each once, of which this region knows public IPv4 ones.
func (c *call) nlbReserved(list []networkloadbalancer.ReservedIp, private bool) error {
	if len(list) > 3 {
		return errInvalid("At most 3 reserved IPs are allowed.")
	}
	ids := make([]string, 0, len(list))
	for _, r := range list {
		if contains(ids, value(r.Id)) {
			return errInvalid("Reserved IP %s is named twice.", value(r.Id))
		}
		ids = append(ids, value(r.Id))
	}
	if len(ids) > 1 {
		return errInvalid("At most one reserved public IP is allowed.")
	}
	return c.reservedAddresses(ids, private)
}

func (c *call) nlbCount() error {
	limit, limited := c.behaviour.ServiceLimits[nlbLimit]
	if !limited {
		return nil
	}
	n := 0
	for v := range networkLoadBalancers.under(c.cloud, "") {
		if !terminal(string(v.LifecycleState)) {
			n++
		}
	}
	if n < limit {
		return nil
	}
	return errLimit("The following service limits were exceeded: %s. Request a service limit increase from the service limits page in the console.", nlbLimit)
}

// checkFamilies refuses an IP version that the subnet cannot serve.
func checkFamilies(subnet *core.Subnet, version networkloadbalancer.NlbIpVersionEnum) error {
	if version != networkloadbalancer.NlbIpVersionIpv4 && value(subnet.Ipv6CidrBlock) == "" && len(subnet.Ipv6CidrBlocks) == 0 {
		return errInvalid("Subnet %s has no IPv6 CIDR block.", value(subnet.Id))
	}
	return nil
}

// nlbAddresses gives a network load balancer its addresses. A public one shows its private address too.
func (cl *cloud) nlbAddresses(
	v *networkloadbalancer.NetworkLoadBalancer, d *networkloadbalancer.CreateNetworkLoadBalancerDetails,
) ([]networkloadbalancer.IpAddress, error) {
	id := value(v.Id)
	vnic, err := cl.addVNIC(vnicSpec{
		subnet: value(v.SubnetId), compartment: value(v.CompartmentId), owner: id, groups: v.NetworkSecurityGroupIds,
		primary: true, name: "VNIC of " + id, privateIP: value(d.AssignedPrivateIpv4),
	})
	if err != nil {
		cl.releaseServiceVNICs(id)
		return nil, err
	}
	public := !value(v.IsPrivate)
	var out []networkloadbalancer.IpAddress
	if v.NlbIpVersion != networkloadbalancer.NlbIpVersionIpv6 {
		out = append(out, nlbAddress(value(vnic.PrivateIp), false, networkloadbalancer.IpVersionIpv4))
		if public {
			reserved := ""
			if len(d.ReservedIps) > 0 {
				reserved = value(d.ReservedIps[0].Id)
			}
			address, reservedID, err := cl.balancerPublicAddress(vnic, reserved)
			if err != nil {
				cl.releaseServiceVNICs(id)
				return nil, err
			}
			a := nlbAddress(address, true, networkloadbalancer.IpVersionIpv4)
			if reservedID != "" {
				a.ReservedIp = &networkloadbalancer.ReservedIp{Id: common.String(reservedID)}
			}
			out = append(out, a)
		}
	}
	if v.NlbIpVersion != networkloadbalancer.NlbIpVersionIpv4 {
		six, err := cl.addIPv6(vnic, value(d.AssignedIpv6))
		if err != nil {
			cl.releaseServiceVNICs(id)
			return nil, err
		}
		out = append(out, nlbAddress(value(six.IpAddress), public, networkloadbalancer.IpVersionIpv6))
	}
	return out, nil
}

func nlbAddress(ip string, public bool, version networkloadbalancer.IpVersionEnum) networkloadbalancer.IpAddress {
	return networkloadbalancer.IpAddress{IpAddress: common.String(ip), IsPublic: common.Bool(public), IpVersion: version}
}

// nlbOwnAddresses are the public IPv4 addresses that go with the network load balancer: those that are not reserved.
func nlbOwnAddresses(v *networkloadbalancer.NetworkLoadBalancer) []string {
	var own []string
	for _, a := range v.IpAddresses {
		if value(a.IsPublic) && a.ReservedIp == nil && a.IpVersion == networkloadbalancer.IpVersionIpv4 {
			own = append(own, value(a.IpAddress))
		}
	}
	return own
}

// changeNLBFamilies moves a network load balancer between IPv4 and dual stack. Going to dual stack, addSixth gives it the
// address once the change is applied.
func (cl *cloud) changeNLBFamilies(v *networkloadbalancer.NetworkLoadBalancer, to networkloadbalancer.NlbIpVersionEnum) error {
	subnet := subnets.find(cl, value(v.SubnetId))
	if subnet == nil {
		return errRelated(value(v.SubnetId))
	}
	if to == networkloadbalancer.NlbIpVersionIpv6 || v.NlbIpVersion == networkloadbalancer.NlbIpVersionIpv6 {
		return errInvalid("nlbIpVersion cannot be changed from %s to %s.", v.NlbIpVersion, to)
	}
	if err := checkFamilies(subnet, to); err != nil {
		return err
	}
	if err := checkNoSixth(v, to); err != nil {
		return err
	}
	v.NlbIpVersion = to
	if to == networkloadbalancer.NlbIpVersionIpv4 {
		v.IpAddresses = slices.DeleteFunc(v.IpAddresses, func(a networkloadbalancer.IpAddress) bool {
			return a.IpVersion == networkloadbalancer.IpVersionIpv6
		})
	}
	return nil
}

// checkNoSixth refuses to take IPv6 away from what uses it.
func checkNoSixth(v *networkloadbalancer.NetworkLoadBalancer, to networkloadbalancer.NlbIpVersionEnum) error {
	if to != networkloadbalancer.NlbIpVersionIpv4 {
		return nil
	}
	for _, name := range sortedKeys(v.Listeners) {
		if v.Listeners[name].IpVersion == networkloadbalancer.IpVersionIpv6 {
			return errInvalid("nlbIpVersion cannot be changed to %s: listener '%s' is IPV6.", to, name)
		}
	}
	for _, name := range sortedKeys(v.BackendSets) {
		if v.BackendSets[name].IpVersion == networkloadbalancer.IpVersionIpv6 {
			return errInvalid("nlbIpVersion cannot be changed to %s: backend set '%s' is IPV6.", to, name)
		}
	}
	return nil
}

// addSixth gives a network load balancer that became dual stack its IPv6 address.
func (cl *cloud) addSixth(id, wanted string) {
	v := networkLoadBalancers.find(cl, id)
	if v == nil || v.NlbIpVersion != networkloadbalancer.NlbIpVersionIpv4AndIpv6 {
		return
	}
	if slices.ContainsFunc(v.IpAddresses, func(a networkloadbalancer.IpAddress) bool {
		return a.IpVersion == networkloadbalancer.IpVersionIpv6
	}) {
		return
	}
	owned := cl.ownedVNICs[id]
	if len(owned) == 0 {
		return
	}
	six, err := cl.addIPv6(vnics.find(cl, owned[0]), wanted)
	if err != nil {
		return
	}
	networkLoadBalancers.update(cl, id, func(v *networkloadbalancer.NetworkLoadBalancer) {
		v.IpAddresses = append(v.IpAddresses, nlbAddress(value(six.IpAddress), !value(v.IsPrivate), networkloadbalancer.IpVersionIpv6))
	})
}
