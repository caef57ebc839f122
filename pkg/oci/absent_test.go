// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/identity"
	lb "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	nlb "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// reading is one operation that reads, with a full answer of the service.
type reading struct {
	name string
	full any
	list string // "" one object, "array", or "items" for a collection
	read func(ctx context.Context, c *Client) (any, error)
}

// readings are all reads of this package.
func readings(t *testing.T) []reading {
	instance := withField(t, fullValue[core.Instance](t), "sourceDetails", map[string]any{"sourceType": "image", "imageId": "x"})
	balancer := withField(t, fullValue[lb.LoadBalancer](t), "ruleSets", map[string]any{
		"rules": map[string]any{"name": "rules", "items": []any{map[string]any{"action": "ADD_HTTP_REQUEST_HEADER", "header": "h", "value": "v"}}},
	})
	failed := withField(t, fullValue[nlb.WorkRequest](t), "status", "FAILED")
	return []reading{
		{"GetInstance", instance, "", func(ctx context.Context, c *Client) (any, error) { return c.Compute().GetInstance(ctx, "text3") }},
		{"ListInstances", instance, "array", func(ctx context.Context, c *Client) (any, error) { return c.Compute().ListInstances(ctx, "c", "") }},
		{"ListVNICAttachments", fullValue[core.VnicAttachment](t), "array", func(ctx context.Context, c *Client) (any, error) {
			return c.Compute().ListVNICAttachments(ctx, "c", "i")
		}},
		{"GetVNIC", fullValue[core.Vnic](t), "", func(ctx context.Context, c *Client) (any, error) { return c.Network().GetVNIC(ctx, "v") }},
		{"GetSubnet", fullValue[core.Subnet](t), "", func(ctx context.Context, c *Client) (any, error) { return c.Network().GetSubnet(ctx, "s") }},
		{"GetVCN", fullValue[core.Vcn](t), "", func(ctx context.Context, c *Client) (any, error) { return c.Network().GetVCN(ctx, "v") }},
		{"ListSubnets", fullValue[core.Subnet](t), "array", func(ctx context.Context, c *Client) (any, error) { return c.Network().ListSubnets(ctx, "c", "v") }},
		{"GetPublicIPByAddress", fullValue[core.PublicIp](t), "", func(ctx context.Context, c *Client) (any, error) {
			return c.Network().GetPublicIPByAddress(ctx, "192.0.2.1")
		}},
		{"ListPublicIPs", fullValue[core.PublicIp](t), "array", func(ctx context.Context, c *Client) (any, error) {
			return c.Network().ListPublicIPs(ctx, "c", "REGION", "")
		}},
		{"ListPrivateIPs", fullValue[core.PrivateIp](t), "array", func(ctx context.Context, c *Client) (any, error) { return c.Network().ListPrivateIPs(ctx, "s", "") }},
		{"ListIPv6s", fullValue[core.Ipv6](t), "array", func(ctx context.Context, c *Client) (any, error) { return c.Network().ListIPv6s(ctx, "", "v") }},
		{"ListAvailabilityDomains", fullValue[identity.AvailabilityDomain](t), "array", func(ctx context.Context, c *Client) (any, error) {
			return c.Identity().ListAvailabilityDomains(ctx, "c")
		}},
		{"LB Get", balancer, "", func(ctx context.Context, c *Client) (any, error) { return c.LoadBalancers().Get(ctx, "b") }},
		{"LB List", balancer, "array", func(ctx context.Context, c *Client) (any, error) { return c.LoadBalancers().List(ctx, "c", "") }},
		{"LB GetWorkRequest", fullValue[lb.WorkRequest](t), "", func(ctx context.Context, c *Client) (any, error) { return c.LoadBalancers().GetWorkRequest(ctx, "w") }},
		{"LB ListWorkRequests", fullValue[lb.WorkRequest](t), "array", func(ctx context.Context, c *Client) (any, error) {
			return c.LoadBalancers().ListWorkRequests(ctx, "b", "c")
		}},
		{"NLB Get", fullValue[nlb.NetworkLoadBalancer](t), "", func(ctx context.Context, c *Client) (any, error) { return c.NetworkLoadBalancers().Get(ctx, "b") }},
		{"NLB List", fullValue[nlb.NetworkLoadBalancerSummary](t), "items", func(ctx context.Context, c *Client) (any, error) {
			return c.NetworkLoadBalancers().List(ctx, "c", "")
		}},
		{"NLB GetWorkRequest", failed, "", func(ctx context.Context, c *Client) (any, error) {
			return c.NetworkLoadBalancers().GetWorkRequest(ctx, "w")
		}},
		{"NLB ListWorkRequests", fullValue[nlb.WorkRequestSummary](t), "items", func(ctx context.Context, c *Client) (any, error) {
			return c.NetworkLoadBalancers().ListWorkRequests(ctx, "text6", "c")
		}},
	}
}

// Any field of any answer may be absent or null, also those that the SDK calls mandatory (case C012). The read succeeds,
// and what does not come from that field is read as ever.
func TestAbsentFields(t *testing.T) {
	for _, r := range readings(t) {
		t.Run(r.name, func(t *testing.T) {
			var body any
			c, _ := serve(t, func(sent) reply { return reply{status: 200, body: body} })
			read := func(what string, object any) any {
				switch r.list {
				case "array":
					body = []any{object}
				case "items":
					body = map[string]any{"items": []any{object}}
				default:
					body = object
				}
				got, err := r.read(t.Context(), c)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				checkUpdates(t, c, got)
				return plain(t, got)
			}
			full := wire(t, r.full)
			whole := read("full answer", full)
			for _, path := range paths(full, nil) {
				if r.list != "" && len(path) > 1 && r.name != "NLB ListWorkRequests" {
					continue // an entry of a list is converted like the object itself
				}
				hows := []string{"absent", "null"}
				if len(path) > 1 {
					hows = hows[:1] // the decoder takes both alike; once per object shows it
				}
				for _, how := range hows {
					what := fmt.Sprintf("%v %s", path, how)
					got := read(what, without(t, full, path, how == "null"))
					if diff := changed(whole, got); len(diff) > 1 {
						t.Errorf("%s: more than one value of the result differs: %v", what, diff)
					}
				}
			}
			read("empty object", map[string]any{})
		})
	}
}

// checkUpdates builds the bodies of updates from what was read.
func checkUpdates(t *testing.T, c *Client, got any) {
	b, ok := got.(*Balancer)
	if !ok {
		return
	}
	for name, bs := range b.BackendSets {
		if b.Kind == KindLB {
			wire(t, lbUpdateBackendSetDetails(bs))
		} else {
			wire(t, nlbUpdateBackendSetDetails(bs))
		}
		if bs.Name != name {
			t.Errorf("backend set %q is named %q", name, bs.Name)
		}
	}
	for name, l := range b.Listeners {
		if b.Kind == KindLB {
			wire(t, lbUpdateListenerDetails(l))
		} else {
			wire(t, nlbUpdateListenerDetails(l))
		}
		if l.Name != name {
			t.Errorf("listener %q is named %q", name, l.Name)
		}
	}
}

// withField is an SDK value's JSON form with one field set by hand, where the SDK decides by a discriminator what it is.
func withField(t *testing.T, v any, field string, to any) any {
	t.Helper()
	object := wire(t, v).(map[string]any)
	object[field] = to
	return object
}

// plain is the JSON form of a domain value.
func plain(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// paths are the ways to every field of a JSON value, in a fixed order.
func paths(v any, at []any) [][]any {
	var out [][]any
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			here := append(slices.Clone(at), key)
			out = append(out, here)
			out = append(out, paths(v[key], here)...)
		}
	case []any:
		for i := range v {
			out = append(out, paths(v[i], append(slices.Clone(at), i))...)
		}
	}
	return out
}

// without is a JSON value without the field at path, or with null there.
func without(t *testing.T, v any, path []any, null bool) any {
	t.Helper()
	v = plain(t, v)
	at := v
	for _, step := range path[:len(path)-1] {
		switch step := step.(type) {
		case string:
			at = at.(map[string]any)[step]
		case int:
			at = at.([]any)[step]
		}
	}
	field := path[len(path)-1].(string)
	if null {
		at.(map[string]any)[field] = nil
	} else {
		delete(at.(map[string]any), field)
	}
	return v
}

// changed names the top-level fields of two results, or of their first entries, that differ.
func changed(a, b any) []string {
	if list, ok := a.([]any); ok {
		other, _ := b.([]any)
		if len(list) == 0 || len(other) == 0 {
			return nil
		}
		return changed(list[0], other[0])
	}
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(x)) {
		if !reflect.DeepEqual(x[key], y[key]) {
			out = append(out, key)
		}
	}
	return out
}
