// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"slices"
	"strconv"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// maxBalancerName is the longest display name that existing clients send.
const maxBalancerName = 1024

// Limits that both kinds of balancers have: backends of a set and of a balancer.
const (
	maxBackendsPerSet = 512
	maxBackends       = 1024
)

// balancerContent are optional fields that say what a balancer is made of. An answer that leaves them out would claim
// that it is empty, which the services do not do.
var balancerContent = []string{
	"isPrivate", "listeners", "backendSets", "backends", "healthChecker", "networkSecurityGroupIds", "isPublic",
}

// partName is the form of the names of backend sets; LB listeners may be longer.
var partName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// recast turns a request model into the stored model with the same JSON fields.
func recast[To any](from any) To {
	var to To
	raw, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(raw, &to)
	}
	if err != nil {
		panic("ocisim: two models of one thing differ: " + err.Error())
	}
	return to
}

// balancerGroups checks the security groups that a balancer is to be in.
func (c *call) balancerGroups(ids []string) error {
	if len(ids) > maxGroupsPerVNIC {
		return errInvalid("At most %d network security groups are allowed, not %d.", maxGroupsPerVNIC, len(ids))
	}
	for _, id := range ids {
		if _, err := securityGroups.related(c, id); err != nil {
			return err
		}
	}
	return nil
}

// loadBalancerSubnets checks the documented combinations: a private load balancer has one subnet; a public one has
// one public regional subnet, or two public subnets in different availability domains.
func (c *call) loadBalancerSubnets(ids []string, private bool) error {
	list := make([]*core.Subnet, 0, len(ids))
	for _, id := range ids {
		subnet, err := subnets.related(c, id)
		if err != nil {
			return err
		}
		if !private && value(subnet.ProhibitPublicIpOnVnic) {
			if err := c.rule(PublicBalancerInPrivateSubnet, id); err != nil {
				return err
			}
		}
		list = append(list, subnet)
	}
	switch {
	case len(list) == 0:
		return errMissing("subnetIds")
	case private && len(list) != 1:
		return c.rule(BalancerSubnets, "A private load balancer needs exactly one subnet.")
	case len(list) > 2:
		return c.rule(BalancerSubnets, "A load balancer has at most two subnets.")
	case len(list) == 2 && (value(list[0].AvailabilityDomain) == "" || value(list[1].AvailabilityDomain) == ""):
		return c.rule(BalancerSubnets, "A regional subnet must be the only one.")
	case len(list) == 2 && value(list[0].AvailabilityDomain) == value(list[1].AvailabilityDomain):
		return c.rule(BalancerSubnets, "The two subnets must be in different availability domains.")
	case len(list) == 1 && !private && value(list[0].AvailabilityDomain) != "" && len(c.options.AvailabilityDomains) > 1:
		return c.rule(BalancerSubnets, "A public load balancer needs a regional subnet, or two subnets in different availability domains.")
	}
	return nil
}

// reservedAddresses checks reserved public addresses that a new balancer asks for.
func (c *call) reservedAddresses(ids []string, private bool) error {
	for _, id := range ids {
		ip, err := publicIPs.related(c, id)
		if err != nil {
			return err
		}
		if private || ip.Lifetime != core.PublicIpLifetimeReserved {
			return errInvalid("The public IP %s cannot be used: it must be reserved, and the load balancer public.", id)
		}
		if ip.LifecycleState != core.PublicIpLifecycleStateAvailable {
			if err := c.rule(ReservedIPInUse, id, value(ip.AssignedEntityId)); err != nil {
				return err
			}
		}
	}
	return nil
}

// balancerPublicAddress gives a balancer's VNIC the reserved public address, or one of the service's own.
func (cl *cloud) balancerPublicAddress(vnic *core.Vnic, reserved string) (address, reservedID string, err error) {
	if reserved == "" {
		address, err = cl.takePublicAddress("")
		return address, "", err
	}
	ip := publicIPs.find(cl, reserved)
	if ip == nil || ip.LifecycleState != core.PublicIpLifecycleStateAvailable {
		if err := cl.rule(ReservedIPInUse, reserved, "another resource"); err != nil {
			return "", "", err
		}
	}
	cl.assignPublicIP(reserved, value(cl.primaryPrivateIP(value(vnic.Id)).Id))
	return value(ip.IpAddress), reserved, nil
}

// releaseBalancer returns what a deleted balancer had: its own public addresses, and its VNICs, which linger.
// Reserved addresses are unassigned with the VNIC, not deleted.
func (cl *cloud) releaseBalancer(id string, ownPublic []string) {
	for _, a := range ownPublic {
		cl.givePublicBack(a)
	}
	cl.releaseServiceVNICs(id)
	cl.balancers.forget(id)
}

// backendName is how the services name a backend.
func backendName(address string, port int) string { return address + ":" + strconv.Itoa(port) }

// checkBackendAddress refuses what is not an address and a port.
func checkBackendAddress(address string, port int) error {
	if _, err := netip.ParseAddr(address); err != nil {
		return errInvalid("backend ipAddress '%s' is not an IP address", address)
	}
	return checkNumber("backend port", port, 1, 65535)
}

// checkBackendCount applies the limits of a set and of the whole balancer.
func checkBackendCount(perSet map[string]int) error {
	total := 0
	for _, name := range sortedKeys(perSet) {
		n := perSet[name]
		if n > maxBackendsPerSet {
			return errLimit("Backend set '%s' has %d backends, the limit is %d.", name, n, maxBackendsPerSet)
		}
		total += n
	}
	if total > maxBackends {
		return errLimit("The load balancer has %d backends, the limit is %d.", total, maxBackends)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
