// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"slices"
	"time"
)

// networkOperation is one line of the table of the virtual network service.
func networkOperation(name, method, path, query string, verb Verb, handle func(*call) (*answer, error)) Operation {
	return Operation{
		Service: ServiceVirtualNetwork, Name: name, Method: method, Path: "/20160918" + path, Query: query, Verb: verb, handle: handle,
	}
}

// networkGet is a plain get of a resource.
func networkGet(name, path string, kind *kindInfo) Operation {
	o := networkOperation(name, http.MethodGet, path, "", Read, (*call).showTarget)
	o.Target = kind
	return o
}

// networkList is a list by compartment, narrowed by the VCN if the query names one.
func networkList(name, path, query string, kind *kindInfo) Operation {
	o := networkOperation(name, http.MethodGet, path, query, Inspect, func(c *call) (*answer, error) {
		key := c.query.Get("compartmentId")
		if vcn := c.query.Get("vcnId"); vcn != "" {
			key = vcn
		}
		return c.list(listing{kind: kind, key: key})
	})
	o.Resource = kind.policy
	return o
}

func virtualNetworkService() service {
	const listQuery = "compartmentId*,limit,page,vcnId,displayName,sortBy,sortOrder,lifecycleState"
	operations := []Operation{
		networkGet("GetVcn", "/vcns/{vcnId}", vcns.kindInfo),
		networkList("ListVcns", "/vcns", "compartmentId*,limit,page,displayName,sortBy,sortOrder,lifecycleState", vcns.kindInfo),
		networkGet("GetSubnet", "/subnets/{subnetId}", subnets.kindInfo),
		networkList("ListSubnets", "/subnets", listQuery, subnets.kindInfo),
		networkGet("GetVnic", "/vnics/{vnicId}", vnics.kindInfo),
	}
	durations := lifeDurations()
	durations["publicip.create"] = Range{Min: 500 * time.Millisecond, Max: 2 * time.Second}
	durations["publicip.assign"] = Range{Min: time.Second, Max: 5 * time.Second}
	durations["publicip.delete"] = Range{Min: 500 * time.Millisecond, Max: 2 * time.Second}
	return service{
		operations: slices.Concat(operations, vcnOperations(), subnetOperations(), vnicOperations(), addressOperations(), publicIPOperations(),
			routeTableOperations(), gatewayOperations(), securityListOperations(), securityGroupOperations(), groupRuleOperations()),
		durations: durations,
		removers: map[*kindInfo]func(*cloud, string){
			securityGroups.kindInfo: (*cloud).removeSecurityGroup,
			vnics.kindInfo:          (*cloud).removeVNIC,
			publicIPs.kindInfo:      (*cloud).removePublicIP,
			privateIPs.kindInfo:     (*cloud).removePrivateIP,
			ipv6s.kindInfo:          (*cloud).removeIPv6,
		},
	}
}
