// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"reflect"
	"time"
)

// What is not established about the resources of a virtual network.
const (
	NetworkResourceInUse     Situation = "delete of a network resource that another one refers to"
	DefaultResourceDelete    Situation = "delete of a default route table or security list of a VCN"
	NetworkResourceBusy      Situation = "change of a network resource that is not AVAILABLE"
	BlocksOverlap            Situation = "CIDR block that overlaps with another one"
	BlockOutsideVCN          Situation = "subnet outside the blocks of its VCN"
	DNSLabelInUse            Situation = "DNS label that another subnet of the VCN has"
	TooManyRouteRules        Situation = "route table with too many rules"
	RouteDestinationTwice    Situation = "route table with two rules for one destination"
	RouteTargetChecksSource  Situation = "route rule whose target checks source and destination"
	SecondGateway            Situation = "second gateway of a kind in a VCN"
	TooManyVNICs             Situation = "more VNICs than the shape of the instance has"
	PrimaryVNICDetach        Situation = "detach of a primary VNIC"
	TooManyAddresses         Situation = "more addresses than a VNIC may have"
	PrimaryAddressUpdate     Situation = "update of a primary private address"
	AddressBlockNeedsAddress Situation = "private address block without its first address"
	AddressBlockUnaligned    Situation = "address block that does not begin at a multiple of its size"
	VNICAttachBadState       Situation = "VNIC attached to an instance that is neither RUNNING nor STOPPED"
)

// lifeRulings are those of the resources above.
func lifeRulings() map[Situation]Ruling {
	conflict := func(message, reason string) Ruling {
		return Ruling{Status: http.StatusConflict, Code: "Conflict", Message: message, Reason: reason}
	}
	invalid := func(message, reason string) Ruling {
		return Ruling{Status: http.StatusBadRequest, Code: "InvalidParameter", Message: message, Reason: reason}
	}
	limit := func(message, reason string) Ruling {
		return Ruling{Status: http.StatusBadRequest, Code: "LimitExceeded", Message: message, Reason: reason}
	}
	return map[Situation]Ruling{
		NetworkResourceInUse: conflict("The %s %s references the %s %s. You must remove the reference to proceed with this operation.",
			"seen in users' logs for subnets with VNICs; that it is the same for the others is an assumption"),
		DefaultResourceDelete: conflict("The %s %s is the default of the VCN %s and cannot be deleted.",
			"documented as impossible without its error"),
		NetworkResourceBusy: {
			Status: http.StatusConflict, Code: "IncorrectState", Message: "The %s %s has the lifecycle state %s; it must be AVAILABLE.",
			Reason: "IncorrectState is the documented code for a resource in a wrong state; which states refuse is not documented",
		},
		BlocksOverlap: invalid("The requested CIDR %s is invalid: %s with CIDR %s overlaps with this CIDR.",
			"documented as impossible, code from memory"),
		BlockOutsideVCN: invalid("The requested CIDR %s is invalid: it is not within the CIDR blocks of the VCN %s.",
			"documented as impossible, code from memory"),
		DNSLabelInUse: conflict("The DNS label %s is already used by the subnet %s.",
			"documented as unique; another object holds it, which is what Conflict is for"),
		TooManyRouteRules: limit("The route rules of route table %s exceed the limit of %d.",
			"the limit is a service limit, whose documented code is LimitExceeded"),
		RouteDestinationTwice: invalid("The destination %s occurs in more than one route rule.",
			"two routes to one destination would be ambiguous; no source says what the service answers"),
		RouteTargetChecksSource: invalid("The VNIC of the private IP %s must skip the source/destination check to be a route target.",
			"documented as a requirement of private IPs as route targets; that the API enforces it is the harsher choice"),
		SecondGateway: limit("The VCN %s already has the %s %s.",
			"one of each kind is the documented number for a VCN; it is a service limit"),
		TooManyVNICs: limit("The instance %s already has %d VNICs, the maximum for its shape.",
			"the number is documented (two, or one for each OCPU up to 24), the error is not"),
		PrimaryVNICDetach: invalid("The VNIC attachment %s is that of the primary VNIC and cannot be detached.",
			"documented as impossible without its error"),
		TooManyAddresses: limit("The VNIC %s has %d addresses of this kind, the limit is %d.",
			"the error is not documented; LimitExceeded is the documented code for limits"),
		PrimaryAddressUpdate: invalid("The primary private IP %s cannot be updated; update its VNIC.",
			"documented as impossible without its error"),
		AddressBlockNeedsAddress: {
			Allow: true, Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "ipAddress is needed with cidrPrefixLength %d.",
			Reason: "the documentation speaks of the combination of both, but existing programs get blocks without an address",
		},
		AddressBlockUnaligned: invalid("%s is not the first address of a block of length /%d.",
			"a CIDR block begins at a multiple of its size; whether the service rounds is not established"),
		VNICAttachBadState: {
			Status: http.StatusConflict, Code: "IncorrectState", Message: "The instance %s has the lifecycle state %s; it must be RUNNING or STOPPED.",
			Reason: "as for volumes, where users saw 409 IncorrectState",
		},
	}
}

// lifeDurations are how long VCNs and what is in them take to come and to go. A terraform log shows 2 s for VCNs and
// subnets; the others have no source.
func lifeDurations() map[string]Range {
	second := Range{Min: 500 * time.Millisecond, Max: 2 * time.Second}
	return map[string]Range{
		"vcn.create": {Min: time.Second, Max: 3 * time.Second}, "vcn.delete": second,
		"subnet.create": {Min: time.Second, Max: 3 * time.Second}, "subnet.delete": second,
		"routetable.create": second, "routetable.delete": second,
		"securitylist.create": second, "securitylist.delete": second,
		"gateway.create": second, "gateway.delete": second,
		"vnic.attach": {Min: 5 * time.Second, Max: 15 * time.Second},
		"vnic.detach": {Min: 5 * time.Second, Max: 15 * time.Second},
	}
}

// States that most resources of the network have.
const (
	stateProvisioning = "PROVISIONING"
	stateAvailable    = "AVAILABLE"
	stateTerminating  = "TERMINATING"
)

// setState writes the lifecycle state of a resource if it is in the given one.
func (k kind[T]) setState(cl *cloud, id, from, to string) bool {
	res := k.lookup(cl, id)
	if res == nil || res.state != from {
		return false
	}
	return k.update(cl, id, func(v *T) { reflect.ValueOf(v).Elem().FieldByName("LifecycleState").SetString(to) })
}

// provision lets a new resource become AVAILABLE after a while.
func provision[T any](c *call, k kind[T], id, duration string) {
	cl := c.cloud
	cl.after(cl.duration(duration), func() { k.setState(cl, id, stateProvisioning, stateAvailable) })
}

// terminate lets a resource be TERMINATING for a while and then go.
func terminate[T any](c *call, k kind[T], duration string, then func()) (*answer, error) {
	cl, id := c.cloud, c.target.id
	k.setState(cl, id, c.target.state, stateTerminating)
	cl.after(cl.duration(duration), func() {
		k.remove(cl, id)
		if then != nil {
			then()
		}
	})
	return none(http.StatusNoContent), nil
}

// available refuses a change of a target that is coming or going.
func (c *call) available() error {
	if c.target.state == stateAvailable {
		return nil
	}
	return c.rule(NetworkResourceBusy, c.target.kind.label, c.target.id, c.target.state)
}

// unused refuses the deletion of a target that a resource of a kind refers to under a key.
func (c *call) unused(kind *kindInfo, key string) error {
	for _, res := range c.store.under(kind, key) {
		return c.inUse(res.kind.label, res.id)
	}
	return nil
}

func (c *call) inUse(label, id string) error {
	return c.rule(NetworkResourceInUse, titleCase(c.target.kind.label), c.target.id, label, id)
}

// titleCase writes a label as the service's messages do: "Route table".
func titleCase(label string) string {
	if label == "" || label[0] < 'a' || label[0] > 'z' {
		return label
	}
	return string(label[0]-'a'+'A') + label[1:]
}

// usesRoutes is the key under which resources that use a route table are listed.
func usesRoutes(table *string) string {
	if value(table) == "" {
		return ""
	}
	return "routed by " + *table
}

// routesTo is the key under which route tables with a rule for a target are listed.
func routesTo(target string) string { return "routes to " + target }
