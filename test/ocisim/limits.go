// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"slices"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/limits"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// ServiceLimits is the name of the service that tells the limits of a tenancy. The limits are those of
// Behaviour.ServiceLimits.
const ServiceLimits = "limits"

const limitsRoot = "/20190729"

// limitsPolicy is the resource type in policies.
const limitsPolicy = "resource-availability"

func limitsService() service {
	op := func(name, path, query string, verb Verb, handle func(*call) (*answer, error)) Operation {
		return Operation{
			Service: ServiceLimits, Name: name, Method: http.MethodGet, Path: limitsRoot + path, Query: query,
			Verb: verb, Resource: limitsPolicy, Partial: "only limits that are set", handle: handle,
		}
	}
	return service{operations: []Operation{
		op("ListServices", "/services", "compartmentId*,sortBy,sortOrder,limit,page,subscriptionId", Inspect, listLimitServices),
		op("ListLimitDefinitions", "/limitDefinitions", "compartmentId*,subscriptionId,serviceName,name,sortBy,sortOrder,limit,page", Inspect, listLimitDefinitions),
		op("ListLimitValues", "/limitValues",
			"compartmentId*,serviceName*,subscriptionId,externalLocation,scopeType,availabilityDomain,name,sortBy,sortOrder,limit,page",
			Inspect, listLimitValues),
		op("GetResourceAvailability", "/services/{serviceName}/limits/{limitName}/resourceAvailability",
			"compartmentId*,availabilityDomain,subscriptionId,externalLocation", Read, getResourceAvailability),
	}}
}

// limitDefinition says what a limit is about.
type limitDefinition struct {
	service, name, description string
	perDomain                  bool
	// used counts what a condition holds for; nil where the usage is not known.
	used func(cl *cloud, counts func(*resource) bool) int
}

// limitServices are the services of the limits, with their descriptions. Limits without a definition belong to the last.
func limitServices() []limits.ServiceSummary {
	list := []limits.ServiceSummary{}
	for _, s := range [][2]string{
		{"block-storage", "Block Volume"}, {"filesystem", "File Storage"}, {"load-balancer", "LbaaS"},
		{"lustre-file-storage", "File Storage with Lustre"}, {"network-load-balancer-api", "Network Load Balancer"}, {otherLimits, "Other"},
	} {
		list = append(list, limits.ServiceSummary{Name: common.String(s[0]), Description: common.String(s[1])})
	}
	return list
}

const otherLimits = "other"

// limitDefinitions are the limits that the simulator applies, by name.
func limitDefinitions() map[string]limitDefinition {
	deleted := func(state string) bool { return state == "DELETED" }
	terminated := func(state string) bool { return state == "TERMINATED" }
	all := []limitDefinition{
		{"filesystem", FileSystemLimit, "File System Count", true, usedOf(deleted, nil, fileSystems.kindInfo)},
		{"filesystem", MountTargetLimit, "Mount Target Count", true, usedOf(deleted, nil, mountTargets.kindInfo)},
		{"lustre-file-storage", LustreLimit, "Lustre File System Count", true, usedOf(deleted, nil, lustreFileSystems.kindInfo)},
		{"block-storage", "volume-count", "Volume Count", true, usedOf(terminated, nil, volumes.kindInfo, bootVolumes.kindInfo)},
		{"block-storage", "total-storage-gb", "Volume Size (GB)", true, usedOf(terminated, gigabytes, volumes.kindInfo, bootVolumes.kindInfo)},
		{"block-storage", "backup-count", "Backup Count", false, usedOf(terminal, nil, volumeBackups.kindInfo)},
		{"network-load-balancer-api", nlbLimit, "Network Load Balancer Count", false, usedOf(terminal, nil, networkLoadBalancers.kindInfo)},
		{"load-balancer", "lb-flexible-count", "Flexible Load Balancer Count", false, usedOf(terminal, ofShape(flexibleShape), loadBalancers.kindInfo)},
	}
	for shape, name := range fixedShapes {
		all = append(all, limitDefinition{
			"load-balancer", name, shape + " Load Balancer Count", false, usedOf(terminal, ofShape(shape), loadBalancers.kindInfo),
		})
	}
	byName := map[string]limitDefinition{}
	for _, d := range all {
		byName[d.name] = d
	}
	return byName
}

// usedOf adds up what the resources of some kinds weigh on a limit, those left out that are gone. Without a weight, each
// of them counts once.
func usedOf(gone func(state string) bool, weight func(any) int, kinds ...*kindInfo) func(*cloud, func(*resource) bool) int {
	return func(cl *cloud, counts func(*resource) bool) int {
		n := 0
		for _, kind := range kinds {
			for _, res := range cl.store.under(kind, "") {
				switch {
				case gone(res.state) || !counts(res):
				case weight == nil:
					n++
				default:
					n += weight(res.value)
				}
			}
		}
		return n
	}
}

// ofShape weighs a load balancer of a shape as one, all others as none.
func ofShape(shape string) func(any) int {
	return func(v any) int {
		if lb, ok := v.(*loadbalancer.LoadBalancer); ok && strings.EqualFold(value(lb.ShapeName), shape) {
			return 1
		}
		return 0
	}
}

// gigabytes is the size of a volume or a boot volume.
func gigabytes(v any) int {
	switch volume := v.(type) {
	case *core.Volume:
		return int(value(volume.SizeInGBs))
	case *core.BootVolume:
		return int(value(volume.SizeInGBs))
	}
	return 0
}

// limitsInForce are the definitions of the limits that are set, by name.
func (cl *cloud) limitsInForce() []limitDefinition {
	known := limitDefinitions()
	list := make([]limitDefinition, 0, len(cl.behaviour.ServiceLimits))
	for _, name := range sortedKeys(cl.behaviour.ServiceLimits) {
		d, ok := known[name]
		if !ok {
			d = limitDefinition{service: otherLimits, name: name, description: name}
		}
		list = append(list, d)
	}
	return list
}

func (d limitDefinition) scope() string {
	if d.perDomain {
		return string(limits.LimitDefinitionSummaryScopeTypeAd)
	}
	return string(limits.LimitDefinitionSummaryScopeTypeRegion)
}

func listLimitServices(c *call) (*answer, error) {
	used := map[string]bool{}
	for _, d := range c.limitsInForce() {
		used[d.service] = true
	}
	list := slices.DeleteFunc(limitServices(), func(s limits.ServiceSummary) bool { return !used[*s.Name] })
	return pageOf(c, list, sortKeys[limits.ServiceSummary]{
		"":            func(s limits.ServiceSummary) string { return *s.Name },
		"DESCRIPTION": func(s limits.ServiceSummary) string { return *s.Description },
	}, false)
}

func listLimitDefinitions(c *call) (*answer, error) {
	service, name := c.query.Get("serviceName"), c.query.Get("name")
	list := []limits.LimitDefinitionSummary{}
	for _, d := range c.limitsInForce() {
		if (service != "" && d.service != service) || (name != "" && d.name != name) {
			continue
		}
		list = append(list, limits.LimitDefinitionSummary{
			Name: common.String(d.name), ServiceName: common.String(d.service), Description: common.String(d.description),
			ScopeType: limits.LimitDefinitionSummaryScopeTypeEnum(d.scope()), AreQuotasSupported: common.Bool(false),
			IsResourceAvailabilitySupported: common.Bool(d.used != nil), IsDeprecated: common.Bool(false),
			IsEligibleForLimitIncrease: common.Bool(true), IsDynamic: common.Bool(false),
		})
	}
	return pageOf(c, list, sortKeys[limits.LimitDefinitionSummary]{
		"":            func(d limits.LimitDefinitionSummary) string { return *d.Name },
		"DESCRIPTION": func(d limits.LimitDefinitionSummary) string { return *d.Description },
	}, false)
}

// listLimitValues lists a limit of an availability domain once for each of them.
func listLimitValues(c *call) (*answer, error) {
	service, name := c.query.Get("serviceName"), c.query.Get("name")
	scope, domain := c.query.Get("scopeType"), c.query.Get("availabilityDomain")
	if !slices.ContainsFunc(limitServices(), func(s limits.ServiceSummary) bool { return *s.Name == service }) {
		return nil, errNotFound()
	}
	list := []limits.LimitValueSummary{}
	for _, d := range c.limitsInForce() {
		if d.service != service || (name != "" && d.name != name) || (scope != "" && d.scope() != scope) || (domain != "" && !d.perDomain) {
			continue
		}
		v := limits.LimitValueSummary{
			Name: common.String(d.name), ScopeType: limits.LimitValueSummaryScopeTypeEnum(d.scope()),
			Value: common.Int64(int64(c.behaviour.ServiceLimits[d.name])),
		}
		if !d.perDomain {
			list = append(list, v)
			continue
		}
		for _, one := range c.options.AvailabilityDomains {
			if domain == "" || domain == one {
				v.AvailabilityDomain = common.String(one)
				list = append(list, v)
			}
		}
	}
	return pageOf(c, list, sortKeys[limits.LimitValueSummary]{
		"": func(v limits.LimitValueSummary) string { return *v.Name },
	}, false)
}

// getResourceAvailability tells how much of a limit a compartment uses, and how much of it the tenancy has left. The
// usage of the tenancy is that of all compartments.
func getResourceAvailability(c *call) (*answer, error) {
	service, name, domain := c.param("serviceName"), c.param("limitName"), c.query.Get("availabilityDomain")
	all := c.limitsInForce()
	i := slices.IndexFunc(all, func(d limitDefinition) bool { return d.service == service && d.name == name })
	if i < 0 || all[i].used == nil {
		return nil, errNotFound()
	}
	d := all[i]
	switch {
	case d.perDomain && !contains(c.options.AvailabilityDomains, domain):
		return nil, errInvalid("availabilityDomain must name an availability domain: the scope of limit %s is AD.", name)
	case !d.perDomain && domain != "":
		return nil, errInvalid("availabilityDomain must not be given: the scope of limit %s is REGION.", name)
	}
	compartment := c.query.Get("compartmentId")
	in := func(compartment string) func(*resource) bool {
		return func(res *resource) bool {
			return (!d.perDomain || res.domain == domain) && (compartment == c.options.Tenancy || res.compartment == compartment)
		}
	}
	used := d.used(c.cloud, in(compartment))
	available := max(0, c.behaviour.ServiceLimits[name]-d.used(c.cloud, in(c.options.Tenancy)))
	return c.send(http.StatusOK, limits.ResourceAvailability{
		Used: common.Int64(int64(used)), Available: common.Int64(int64(available)),
		FractionalUsage: common.Float32(float32(used)), FractionalAvailability: common.Float32(float32(available)),
	}), nil
}
