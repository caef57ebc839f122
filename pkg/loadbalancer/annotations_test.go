// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// The table knows each key once, documents it, and can read what it says it takes.
func TestAnnotationTable(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range Annotations() {
		switch {
		case seen[a.Key]:
			t.Errorf("%s is there twice", a.Key)
		case a.Text == "" || a.Type == "" || a.Since == "" || a.Change == "" || len(a.Kinds) == 0:
			t.Errorf("%s is not described", a.Key)
		case !a.Internal && (a.set == nil || a.Default == ""):
			t.Errorf("%s cannot be read, or has no default", a.Key)
		case a.Type == TypeEnum && len(a.Values) == 0:
			t.Errorf("%s has no values", a.Key)
		case a.Key != annotationSourceRanges && !ours(a.Key):
			t.Errorf("%s is not under our prefixes", a.Key)
		case a.Deprecated != "" && !slices.ContainsFunc(Annotations(), func(b Annotation) bool { return b.Key == a.Deprecated }):
			t.Errorf("%s is replaced by a key that does not exist", a.Key)
		}
		seen[a.Key] = true
		for _, value := range a.Values {
			for _, spelling := range []string{value, strings.ToLower(value), strings.ToUpper(value), " " + value + " "} {
				if _, problems := ParseAnnotations(map[string]string{a.Key: spelling}, a.Kinds[0]); len(problems) > 0 {
					t.Errorf("%s: %q: %v", a.Key, spelling, problems)
				}
			}
		}
	}
}

// C036, C053 and the rest of the values, legal and not.
func TestAnnotationValues(t *testing.T) {
	const flexMin, flexMax = prefixLB + "load-balancer-shape-flex-min", prefixLB + "load-balancer-shape-flex-max"
	nsg := "ocid1.networksecuritygroup.oc1.iad.a"
	tests := []struct {
		key   string
		legal []string
		bad   map[string]string // value to a part of the message
	}{
		{prefixLB + "load-balancer-internal", []string{"true", "True", "TRUE", "1", "f", "0", ""}, map[string]string{"yes": "true or false", "on": "true or false"}},
		{prefixNLB + "internal", []string{"true", "False"}, map[string]string{"2": "true or false"}},
		{prefixLB + "load-balancer-shape", []string{"flexible", "Flexible", "FLEXIBLE", "100mbps", "Custom"}, nil},
		{prefixLB + "load-balancer-subnet1", []string{"ocid1.subnet.oc1.iad.x"}, map[string]string{"subnet-1": "no OCID", "ocid1.vcn.oc1.iad.x": "of a vcn"}},
		{prefixLB + "load-balancer-subnet2", []string{"ocid1.subnet.oc1.iad.x"}, map[string]string{"ocid1.subnet": "no OCID"}},
		{prefixNLB + "subnet", []string{"ocid1.subnet.oc1.iad.x"}, map[string]string{"x": "no OCID"}},
		{prefixCommon + "compartment-id", []string{"ocid1.compartment.oc1..x", "ocid1.tenancy.oc1..x"}, map[string]string{"dev": "no OCID"}},
		{prefixLB + "load-balancer-connection-idle-timeout", []string{"1", "7200", "300 s", "300S"}, map[string]string{"0": "from 1 to 7200", "7201": "from 1 to 7200", "5m": "number", "1.5": "number"}},
		{prefixLB + "load-balancer-connection-proxy-protocol-version", []string{"1", "2"}, map[string]string{"3": "from 1 to 2", "v1": "whole number"}},
		{prefixLB + "load-balancer-health-check-retries", []string{"1", "100"}, map[string]string{"0": "at least 1", "-1": "at least 1", "three": "whole number"}},
		{prefixLB + "load-balancer-health-check-interval", []string{"3000", "1800000", "10000ms", "10000 MS"}, map[string]string{"999": "from 1000", "1800001": "to 1800000", "10s": "number", "2000": "longer than the interval"}},
		{prefixLB + "load-balancer-health-check-timeout", []string{"1", "10000"}, map[string]string{"10001": "longer than the interval", "x": "number"}},
		{prefixNLB + "health-check-interval", []string{"10000"}, map[string]string{"9999": "from 10000"}},
		{prefixNLB + "health-check-timeout", []string{"3000ms"}, map[string]string{"": ""}},
		{prefixNLB + "health-check-retries", []string{"3"}, map[string]string{"3.5": "whole number"}},
		{prefixCommon + "oci-network-security-groups", []string{nsg, nsg + ", " + nsg + ",", ",", ""}, map[string]string{"x": "no OCID", "ocid1.subnet.oc1.iad.x": "of a subnet"}},
		{prefixNLB + "oci-network-security-groups", []string{nsg}, map[string]string{nsg + ";" + nsg: "no OCID"}},
		{prefixCommon + "node-label-selector", []string{"a=1,b!=2", "a", "!a", "a in (x,y)", "node-role.kubernetes.io/worker="}, map[string]string{"a in (x": "no label selector", "=": "no label selector"}},
		{prefixNLB + "node-label-selector", []string{"a=1"}, map[string]string{"a b": "no label selector"}},
		{prefixCommon + "initial-freeform-tags-override", []string{`{"a":"b"}`, "{}"}, map[string]string{"a=b": "JSON", `{"n.s":1}`: "JSON", `["a"]`: "JSON"}},
		{prefixCommon + "initial-defined-tags-override", []string{`{"a":{"b":"c","d":1}}`}, map[string]string{`{"a":"b"}`: "JSON"}},
		{prefixNLB + "initial-freeform-tags-override", []string{`{"a":"b"}`}, map[string]string{"x": "JSON"}},
		{prefixNLB + "initial-defined-tags-override", []string{`{"a":{"b":"c"}}`}, map[string]string{"x": "JSON"}},
		{prefixNLB + "assigned-private-ipv4", []string{"10.0.0.7"}, map[string]string{"fd00::1": "IPv4", "10.0.0": "IP address"}},
		{prefixNLB + "assigned-ipv6", []string{"fd00::7", "FD00:0::7"}, map[string]string{"10.0.0.7": "IPv6", "::ffff:10.0.0.7": "IP address"}},
		{prefixNLB + "is-preserve-source", []string{"true", "FALSE"}, map[string]string{"no": "true or false"}},
		{prefixNLB + "is-ppv2-enabled", []string{"True"}, map[string]string{"maybe": "true or false"}},
		{prefixNLB + "external-ip-only", []string{"true"}, map[string]string{"y": "true or false"}},
		{prefixCommon + "ingress-ip-mode", []string{"VIP", "Proxy"}, map[string]string{"direct": "one of proxy, vip"}},
		{prefixCommon + "load-balancer-type", []string{"LB", "Nlb"}, map[string]string{"classic": "one of lb, nlb"}},
		{prefixCommon + "loadbalancer-policy", []string{"ip_hash"}, map[string]string{"RANDOM": "one of"}},
		{prefixNLB + "backend-policy", []string{"five_tuple"}, map[string]string{"ONE_TUPLE": "one of"}},
		{prefixLB + "load-balancer-backend-protocol", []string{"tcp", "Http", "HTTP2", "grpc"}, map[string]string{"UDP": "one of"}},
		{annotationRuleMode, []string{"sl-all", "SL-Frontend", "nsg", "NONE"}, map[string]string{"All": "one of SL-All"}},
		{annotationListMode, []string{"all", "Frontend", "NONE"}, map[string]string{"SL-All": "one of All"}},
		{annotationListModeNLB, []string{"All", "frontend", "none"}, map[string]string{"NSG": "one of All"}},
		{annotationBackendNSG, []string{nsg + "," + nsg}, map[string]string{"x": "no OCID", "ocid1.vcn.oc1.iad.x": "of a vcn"}},
		{annotationSourceRanges, []string{"10.0.0.0/8, 203.0.113.7/24,", "fd00::/8"}, map[string]string{"10.0.0.1": "no CIDR block", "10.0.0.0/8 fd00::/8": "no CIDR block", "::ffff:10.0.0.0/104": "IPv6 notation"}},
		{annotationTLSPorts, nil, map[string]string{"*": "port", "443, https": "port", "0": "port", "65536": "port", "443;8443": "port"}},
		{annotationTLSSecret, nil, map[string]string{"Web": "name of a Secret", "a/b/c": "name of a Secret", "a/": "name of a Secret", "/a": "name of a Secret", "a b": "name of a Secret"}},
		{annotationBackendSetSecret, nil, map[string]string{"a.b/c": "name of a Secret"}},
		{annotationListenerTLS, nil, map[string]string{"x": "JSON", "[]": "JSON", `{"protocols":"TLSv1.2"}`: "JSON", `{"protocols":["SSLv3"]}`: "none of", `{"cipherSuiteName":"a b"}`: "no name"}},
		{annotationBackendSetTLS, nil, map[string]string{`{"CIPHERSUITENAME":1}`: "JSON", `{"Protocols":["TLSv1.4"]}`: "none of"}},
		{prefixNLB + "freeform-tags", nil, map[string]string{"x": "JSON"}},
		{prefixNLB + "defined-tags", nil, map[string]string{"x": "JSON"}},
		{prefixCommon + "oci-load-balancer-rule-sets", []string{"", "{}", `{"a":{"items":[{"action":"HTTP_HEADER"}]}}`}, map[string]string{"a": "JSON", `{"a":{}}`: "no items"}},
		{prefixCommon + "workload-service-account", []string{"balancer", "team.balancer-1"}, map[string]string{"Not A Name": "name of a ServiceAccount", "shop/balancer": "name of a ServiceAccount"}},
		{prefixCommon + "load-balancer-replace", []string{"TRUE", "false"}, map[string]string{"yes": "true or false"}},
		{flexMin, nil, map[string]string{"10": "both are needed"}},
		{flexMax, nil, map[string]string{"10": "both are needed"}},
	}
	covered := map[string]bool{}
	for _, test := range tests {
		covered[test.key] = true
		kind := oci.KindLB
		if strings.HasPrefix(test.key, prefixNLB) {
			kind = oci.KindNLB
		}
		for _, value := range test.legal {
			if _, problems := ParseAnnotations(map[string]string{test.key: value}, kind); len(problems) > 0 {
				t.Errorf("%s: %q is refused: %v", test.key, value, problems)
			}
		}
		for value, part := range test.bad {
			_, problems := ParseAnnotations(map[string]string{test.key: value}, kind)
			fatal := problems.Fatal()
			if part == "" && len(problems) == 0 {
				continue
			}
			if len(fatal) != 1 || !strings.Contains(fatal[0].Message, part) || fatal[0].Reason != ReasonInvalidAnnotation {
				t.Errorf("%s: %q gives %v, want one error with %q", test.key, value, problems, part)
			} else if !strings.Contains(fatal[0].Message, test.key[strings.LastIndex(test.key, "/")+1:]) && !strings.Contains(fatal[0].Message, "health-check-timeout") {
				t.Errorf("%s: the message does not name it: %s", test.key, fatal[0].Message)
			}
		}
	}
	for _, a := range Annotations() {
		if !a.Internal && !covered[a.Key] {
			t.Errorf("no value of %s is tested", a.Key)
		}
	}

	// C036: pairs of bounds.
	for _, test := range []struct{ low, high, want string }{
		{"10", "100", "10-100"}, {"10Mbps", "100Mbps", "10-100"}, {" 10 ", "100 mbps", "10-100"}, {"10MBPS", "8000", "10-8000"}, {"50", "50", "50-50"},
		{"abc", "100", ""}, {"", "100", ""}, {"0", "100", ""}, {"5", "100", ""}, {"10", "9000", ""}, {"100", "10", ""}, {"-50", "100", ""}, {"10", "", ""},
	} {
		s, problems := ParseAnnotations(map[string]string{flexMin: test.low, flexMax: test.high}, oci.KindLB)
		got := ""
		if len(problems) == 0 {
			got = shapeText(oci.Shape{Name: oci.ShapeFlexible, MinMbps: *s.FlexMin, MaxMbps: *s.FlexMax})
			got = strings.TrimSuffix(strings.TrimPrefix(got, "flexible "), " Mbps")
		}
		if got != test.want {
			t.Errorf("bounds %q and %q: got %q, want %q: %v", test.low, test.high, got, test.want, problems)
		}
	}
}

// C053: every unknown key under our prefixes is named together with a known one; foreign keys are nobody's business.
func TestUnknownAnnotations(t *testing.T) {
	for key, want := range map[string]string{
		prefixLB + "load-balancer-enable-proxy-protocol": prefixLB + "load-balancer-connection-proxy-protocol-version",
		prefixLB + "load-balancer-internall":             prefixLB + "load-balancer-internal",
		prefixCommon + "oci-load-balancer-shape":         prefixLB + "load-balancer-shape",
		prefixNLB + "oci-load-balancer-shape":            prefixLB + "load-balancer-shape",
		prefixCommon + "node-selector":                   prefixCommon + "node-label-selector",
		prefixCommon + "loadbalancer-type":               prefixCommon + "load-balancer-type",
	} {
		_, problems := ParseAnnotations(map[string]string{key: "x"}, oci.KindLB)
		if len(problems) != 1 || problems[0].Reason != ReasonUnknownAnnotation || problems[0].Fatal || !strings.HasSuffix(problems[0].Message, "did you mean "+want+"?") {
			t.Errorf("%s: got %v, want a hint at %s", key, problems, want)
		}
	}
	for _, key := range []string{"service.beta.kubernetes.io/aws-load-balancer-type", "example.com/oci", "oci.example.com/x", "kubectl.kubernetes.io/last-applied-configuration"} {
		if _, problems := ParseAnnotations(map[string]string{key: "x"}, oci.KindLB); len(problems) > 0 {
			t.Errorf("%s: %v", key, problems)
		}
	}
}

// Whatever annotations say, reading them ends, and gives the same result again.
func TestAnnotationsNeverFail(t *testing.T) {
	var keys []string
	for _, a := range Annotations() {
		keys = append(keys, a.Key)
	}
	rapid.Check(t, func(t *rapid.T) {
		annotations := rapid.MapOf(rapid.OneOf(rapid.SampledFrom(keys), rapid.Map(rapid.String(), func(s string) string { return prefixCommon + s })), rapid.String()).Draw(t, "annotations")
		kind := rapid.SampledFrom([]oci.BalancerKind{oci.KindLB, oci.KindNLB}).Draw(t, "kind")
		_, first := ParseAnnotations(annotations, kind)
		_, second := ParseAnnotations(maps.Clone(annotations), kind)
		if first.String() != second.String() {
			t.Fatalf("two readings differ: %v and %v", first, second)
		}
	})
}
