// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// lbShape is a size of load balancers.
type lbShape struct {
	name    string
	details *loadbalancer.ShapeDetails // of the flexible shape
	limit   string                     // the service limit that it counts on
}

const flexibleShape = "flexible"

// fixedShapes are the legacy shapes with their service limits; only the name of the 100 Mbps one was seen.
var fixedShapes = map[string]string{
	"10Mbps-Micro": "lb-10mbps-micro-count",
	"10Mbps":       "lb-10mbps-count",
	"100Mbps":      "lb-100mbps-count",
	"400Mbps":      "lb-400mbps-count",
	"8000Mbps":     "lb-8000mbps-count",
}

// Bandwidth limits of the flexible shape, in Mbps.
const (
	minBandwidth = 10
	maxBandwidth = 8000
)

func shapeOf(name string, details *loadbalancer.ShapeDetails) (lbShape, error) {
	if strings.EqualFold(name, flexibleShape) {
		if details == nil {
			return lbShape{}, errMissing("shapeDetails")
		}
		low, high := value(details.MinimumBandwidthInMbps), value(details.MaximumBandwidthInMbps)
		if low < minBandwidth || high > maxBandwidth || low > high {
			return lbShape{}, errInvalid("The bandwidth of a flexible load balancer must be between %d and %d Mbps with minimum <= maximum, not %d to %d.",
				minBandwidth, maxBandwidth, low, high)
		}
		return lbShape{name: flexibleShape, details: details, limit: "lb-flexible-count"}, nil
	}
	limit, known := fixedShapes[name]
	if !known {
		return lbShape{}, errInvalid("Shape %s does not exist.", name)
	}
	return lbShape{name: name, limit: limit}, nil
}

// loadBalancerLimit refuses one more load balancer of a shape than the service limits allow.
func (c *call) loadBalancerLimit(s lbShape, except string) error {
	limit, limited := c.behaviour.ServiceLimits[s.limit]
	if !limited {
		return nil
	}
	n := 0
	for v := range loadBalancers.under(c.cloud, "") {
		if strings.EqualFold(value(v.ShapeName), s.name) && value(v.Id) != except && !terminal(string(v.LifecycleState)) {
			n++
		}
	}
	if n < limit {
		return nil
	}
	return errLimit("The following service limits were exceeded: %s. Request a service limit increase from the service limits page in the console.", s.limit)
}

func createLoadBalancer(c *call) (*answer, error) {
	d, err := decode[loadbalancer.CreateLoadBalancerDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	v, err := c.newLoadBalancer(d)
	if err != nil {
		return nil, err
	}
	res := loadBalancers.insert(c.cloud, v)
	id, cl := value(v.Id), c.cloud
	setState := func(s loadbalancer.LoadBalancerLifecycleStateEnum, addresses []loadbalancer.IpAddress) {
		loadBalancers.update(cl, id, func(v *loadbalancer.LoadBalancer) { v.LifecycleState, v.IpAddresses = s, addresses })
	}
	work := c.submit(task{
		ocidType: "loadbalancerworkrequest", operation: "CreateLoadBalancer", compartment: value(d.CompartmentId), target: id,
		entity: "LoadBalancer", duration: "loadbalancer.create",
		finish: func() []workProblem {
			addresses, err := cl.loadBalancerAddresses(loadBalancers.find(cl, id), d.ReservedIps)
			if err != nil {
				return problemsOf(err)
			}
			setState(loadbalancer.LoadBalancerLifecycleStateActive, addresses)
			for _, name := range sortedKeys(d.Certificates) {
				certificate := d.Certificates[name]
				certificate.CertificateName = common.String(name)
				cl.balancers.keepKey(id, certificate)
			}
			cl.balancers.track(id, nil, lbBackendNames(loadBalancers.find(cl, id)), cl.now)
			return nil
		},
		// A load balancer whose creation failed stays, and must be deleted.
		failed: func([]workProblem) { setState(loadbalancer.LoadBalancerLifecycleStateFailed, nil) },
	})
	c.markCreated(res)
	return accepted(http.StatusNoContent, work), nil
}

// newLoadBalancer checks a request as a whole and makes the load balancer of it.
func (c *call) newLoadBalancer(d *loadbalancer.CreateLoadBalancerDetails) (*loadbalancer.LoadBalancer, error) {
	if err := checkSize("displayName", value(d.DisplayName), 1, maxBalancerName); err != nil {
		return nil, err
	}
	shape, err := shapeOf(value(d.ShapeName), d.ShapeDetails)
	if err != nil {
		return nil, err
	}
	private := value(d.IsPrivate)
	if err := c.loadBalancerSubnets(d.SubnetIds, private); err != nil {
		return nil, err
	}
	if err := c.balancerGroups(d.NetworkSecurityGroupIds); err != nil {
		return nil, err
	}
	mode := loadbalancer.LoadBalancerIpModeIpv4
	if d.IpMode != "" {
		mode = loadbalancer.LoadBalancerIpModeEnum(d.IpMode)
	}
	if err := c.loadBalancerFamily(d.SubnetIds, mode, value(d.Ipv6SubnetCidr)); err != nil {
		return nil, err
	}
	if err := c.loadBalancerReserved(d.ReservedIps, private, mode); err != nil {
		return nil, err
	}
	header, err := requestIDHeader(d.RequestIdHeader)
	if err != nil {
		return nil, err
	}
	if err := c.loadBalancerLimit(shape, ""); err != nil {
		return nil, err
	}
	v := &loadbalancer.LoadBalancer{
		Id: common.String(c.newOCID(loadBalancers.ocidType)), CompartmentId: d.CompartmentId, DisplayName: d.DisplayName,
		LifecycleState: loadbalancer.LoadBalancerLifecycleStateCreating, TimeCreated: c.sdkTime(),
		ShapeName: d.ShapeName, ShapeDetails: shape.details, IsPrivate: common.Bool(private),
		IsDeleteProtectionEnabled: common.Bool(value(d.IsDeleteProtectionEnabled)),
		SubnetIds:                 d.SubnetIds, NetworkSecurityGroupIds: d.NetworkSecurityGroupIds,
		IsRequestIdEnabled: common.Bool(value(d.IsRequestIdEnabled)), RequestIdHeader: header,
		IpMode:    mode,
		Listeners: map[string]loadbalancer.Listener{}, BackendSets: map[string]loadbalancer.BackendSet{},
		Certificates: map[string]loadbalancer.Certificate{}, RuleSets: map[string]loadbalancer.RuleSet{},
		FreeformTags: d.FreeformTags, DefinedTags: d.DefinedTags, SecurityAttributes: d.SecurityAttributes,
	}
	if value(v.IsRequestIdEnabled) && header == nil {
		v.RequestIdHeader = common.String("X-Request-Id")
	}
	return v, c.fillLoadBalancer(v, d)
}

// fillLoadBalancer adds the parts that a create names, in the order of their references.
func (c *call) fillLoadBalancer(v *loadbalancer.LoadBalancer, d *loadbalancer.CreateLoadBalancerDetails) error {
	for _, name := range sortedKeys(d.Certificates) {
		certificate := d.Certificates[name]
		certificate.CertificateName = common.String(name)
		if err := c.putCertificate(v, certificate); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(d.SslCipherSuites) {
		suite := d.SslCipherSuites[name]
		if value(suite.Name) != name {
			return errInvalid("The cipher suite '%s' is named '%s'.", name, value(suite.Name))
		}
	}
	for _, name := range sortedKeys(d.Hostnames) {
		host := d.Hostnames[name]
		if value(host.Name) != name {
			return errInvalid("The hostname '%s' is named '%s'.", name, value(host.Name))
		}
	}
	for _, fill := range []func() error{
		func() error { return fillParts(c.cloud, v, cipherSuitePart(), d.SslCipherSuites) },
		func() error { return fillParts(c.cloud, v, hostnamePart(), d.Hostnames) },
		func() error { return fillParts(c.cloud, v, ruleSetPart(), d.RuleSets) },
		func() error { return fillParts(c.cloud, v, backendSetPart(), d.BackendSets) },
		func() error { return fillParts(c.cloud, v, pathRouteSetPart(), d.PathRouteSets) },
		func() error { return fillParts(c.cloud, v, listenerPart(), d.Listeners) },
	} {
		if err := fill(); err != nil {
			return err
		}
	}
	return nil
}

func fillParts[T, C, U, D any](cl *cloud, v *loadbalancer.LoadBalancer, sort lbPart[T, C, U], parts map[string]D) error {
	for _, name := range sortedKeys(parts) {
		if err := sort.put(cl, v, name, recast[T](parts[name])); err != nil {
			return err
		}
	}
	return nil
}
