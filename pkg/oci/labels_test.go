// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/metrics/legacyregistry"
)

// operationCounts reads oci_requests_total as /metrics would show it: count by "resource verb".
func operationCounts(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "oci_requests_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			out[labels["resource"]+" "+labels["verb"]] += m.GetCounter().GetValue()
		}
	}
	return out
}

// counted is what oci_requests_total counts during do.
func counted(t *testing.T, do func()) string {
	t.Helper()
	before := operationCounts(t)
	do()
	var out []string
	after := operationCounts(t)
	for _, labels := range slices.Sorted(maps.Keys(after)) {
		if after[labels] > before[labels] {
			out = append(out, labels)
		}
	}
	return strings.Join(out, ", ")
}

// The labels of oci_requests_total are those of the existing implementation, on which people's dashboards rely.
func TestOperationLabels(t *testing.T) {
	got := map[string]string{}
	c, _ := serve(t, func(sent) reply { return reply{status: 404, body: map[string]any{"code": "NotAuthorizedOrNotFound"}} })
	for _, r := range readings(t) {
		got[r.name] = counted(t, func() { _, _ = r.read(t.Context(), c) })
	}
	for _, ch := range changes() {
		for _, b := range both(c) {
			got[strings.ToUpper(string(b.Kind()))+" "+ch.name] = counted(t, func() { _, _ = ch.do(t.Context(), b) })
		}
	}
	for i, kind := range []BalancerKind{KindLB, KindNLB} {
		for _, ch := range changesOfOneKind()[kind] {
			got[strings.ToUpper(string(kind))+" "+ch.name] = counted(t, func() { _, _ = ch.do(t.Context(), both(c)[i]) })
		}
	}
	got["LB UpdateShape"] = counted(t, func() {
		_, _ = c.LoadBalancers().UpdateShape(context.Background(), testBalancer, Shape{Name: "400Mbps"}, "")
	})
	want := map[string]string{
		"GetInstance":             "instance get",
		"ListInstances":           "instance list",
		"ListVNICAttachments":     "vnic_attachment list",
		"GetVNIC":                 "vnic get",
		"GetSubnet":               "subnet get",
		"ListSubnets":             "subnet list",
		"GetVCN":                  "vcn get",
		"GetPublicIPByAddress":    "public_reserved_ip get",
		"ListPublicIPs":           "public_reserved_ip list",
		"ListPrivateIPs":          "private_ip list",
		"ListIPv6s":               "ipv6_ip list",
		"ListAvailabilityDomains": "availability_domain list",

		"LB Get":           "load_balancer get",
		"LB List":          "load_balancer list",
		"LB Create":        "load_balancer create",
		"LB Delete":        "load_balancer delete",
		"LB UpdateTags":    "load_balancer update",
		"LB UpdateShape":   "load_balancer_shape update",
		"LB CreateRuleSet": "load_balancer_rule_set create",
		"LB UpdateRuleSet": "load_balancer_rule_set update",
		"LB DeleteRuleSet": "load_balancer_rule_set delete",
		"NLB UpdateIPMode": "network_load_balancer update",
		"NLB Get":          "network_load_balancer get",
		"NLB List":         "network_load_balancer list",
		"NLB Create":       "network_load_balancer create",
		"NLB Delete":       "network_load_balancer delete",
		"NLB UpdateTags":   "network_load_balancer update",
	}
	for _, kind := range []string{"LB ", "NLB "} {
		want[kind+"GetWorkRequest"] = "load_balancer_work_request get"
		want[kind+"ListWorkRequests"] = "load_balancer_work_request list"
		want[kind+"UpdateNSGs"] = "network_security_groups update"
		for _, verb := range []string{"Create", "Update", "Delete"} {
			want[kind+verb+"BackendSet"] = "load_balancer_backend_set " + strings.ToLower(verb)
			want[kind+verb+"Listener"] = "load_balancer_listener " + strings.ToLower(verb)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}
