// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseRuleSets(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want string // the rules of "r", or a part of the error
		bad  bool
	}{
		"headers":            {text: `{"r":{"items":[{"action":"ADD_HTTP_REQUEST_HEADER","header":"x-a","value":"<&>"},{"action":"REMOVE_HTTP_RESPONSE_HEADER","header":"x-b"}]}}`, want: `[{"action":"ADD_HTTP_REQUEST_HEADER","header":"x-a","value":"<&>"},{"action":"REMOVE_HTTP_RESPONSE_HEADER","header":"x-b"}]`},
		"any case":           {text: ` {"r":{"Items":[{"Action":"remove_http_request_header","HEADER":"x-a"}]}} `, want: `[{"action":"REMOVE_HTTP_REQUEST_HEADER","header":"x-a"}]`},
		"nulls are absent":   {text: `{"r":{"items":[{"action":"CONTROL_ACCESS_USING_HTTP_METHODS","allowedMethods":["GET"],"statusCode":null}]}}`, want: `[{"action":"CONTROL_ACCESS_USING_HTTP_METHODS","allowedMethods":["GET"]}]`},
		"redirect":           {text: `{"r":{"items":[{"action":"REDIRECT","responseCode":301,"redirectUri":{"protocol":"https","port":443},"conditions":[{"attributeName":"PATH","attributeValue":"/","operator":"FORCE_LONGEST_PREFIX_MATCH"}]}]}}`, want: `[{"action":"REDIRECT","conditions":[{"attributeName":"PATH","attributeValue":"/","operator":"FORCE_LONGEST_PREFIX_MATCH"}],"redirectUri":{"port":443,"protocol":"https"},"responseCode":301}]`},
		"no JSON":            {text: `r=1`, want: "must be JSON like", bad: true},
		"a list":             {text: `[]`, want: "must be JSON like", bad: true},
		"set is a list":      {text: `{"r":[]}`, want: "rule set r: it must be an object", bad: true},
		"no items":           {text: `{"r":{}}`, want: "rule set r: it has no items", bad: true},
		"empty items":        {text: `{"r":{"items":[]}}`, want: "it has no items", bad: true},
		"rules for items":    {text: `{"r":{"rules":[]}}`, want: "field rules, which is not known", bad: true},
		"items is an object": {text: `{"r":{"items":{}}}`, want: "items must be a list", bad: true},
		"no action":          {text: `{"r":{"items":[{"header":"x"}]}}`, want: "rule 1: action must be one of ADD_HTTP_REQUEST_HEADER", bad: true},
		"unknown action":     {text: `{"r":{"items":[{"action":"DROP"}]}}`, want: "rule 1: action must be one of", bad: true},
		"typing mistake":     {text: `{"r":{"items":[{"action":"REMOVE_HTTP_REQUEST_HEADER","header":"x"},{"action":"REMOVE_HTTP_REQUEST_HEADER","headr":"x"}]}}`, want: "rule 2: it has a field headr", bad: true},
		"header missing":     {text: `{"r":{"items":[{"action":"REMOVE_HTTP_REQUEST_HEADER"}]}}`, want: "rule 1: header is missing", bad: true},
		"wrong type":         {text: `{"r":{"items":[{"action":"REMOVE_HTTP_REQUEST_HEADER","header":1}]}}`, want: "cannot unmarshal", bad: true},
		"unknown condition":  {text: `{"r":{"items":[{"action":"ALLOW","conditions":[{"attributeName":"MOON","attributeValue":"x"}]}]}}`, want: "attributeValue", bad: true},
		"condition lacks":    {text: `{"r":{"items":[{"action":"ALLOW","conditions":[{"attributeName":"SOURCE_IP_ADDRESS"}]}]}}`, want: "attributeValue is missing", bad: true},
		"long name":          {text: `{"` + strings.Repeat("r", 33) + `":{"items":[]}}`, want: "1 to 32 characters", bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			sets, err := ParseRuleSets(test.text)
			switch {
			case test.bad && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, %v; want an error with %q", sets, err, test.want)
			case !test.bad && err != nil:
				t.Error(err)
			case !test.bad:
				if diff := cmp.Diff(map[string]RuleSet{"r": {Name: "r", Rules: test.want}}, sets); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	for _, text := range []string{"", "  ", "{}"} {
		if sets, err := ParseRuleSets(text); err != nil || sets == nil || len(sets) != 0 {
			t.Errorf("%q: got %v, %v; want an empty map", text, sets, err)
		}
	}
}

// What the service fills in does not count as a difference; what is asked for does, and so does the order of rules.
func TestRuleSetSatisfiedBy(t *testing.T) {
	const want = `[{"action":"REDIRECT","conditions":[{"attributeName":"PATH","attributeValue":"/"}],"redirectUri":{"port":443}}]`
	for have, same := range map[string]bool{
		want: true,
		`[{"action":"REDIRECT","conditions":[{"attributeName":"PATH","attributeValue":"/"}],"redirectUri":{"host":"{host}","port":443},"responseCode":302}]`: true,
		`[{"action":"REDIRECT","conditions":[{"attributeName":"PATH","attributeValue":"/"}],"redirectUri":{"port":444}}]`:                                    false,
		`[{"action":"REDIRECT","conditions":[],"redirectUri":{"port":443}}]`:                                                                                 false,
		`[{"action":"REDIRECT","redirectUri":{"port":443}}]`:                                                                                                 false,
		`[]`: false,
		``:   false,
	} {
		if got := (RuleSet{Rules: want}).SatisfiedBy(RuleSet{Rules: have}); got != same {
			t.Errorf("%s: got %t", have, got)
		}
	}
	one, two := `{"action":"REMOVE_HTTP_REQUEST_HEADER","header":"a"}`, `{"action":"REMOVE_HTTP_REQUEST_HEADER","header":"b"}`
	if (RuleSet{Rules: "[" + one + "," + two + "]"}).SatisfiedBy(RuleSet{Rules: "[" + two + "," + one + "]"}) {
		t.Error("the order of rules does not count")
	}
}

const testRules = `[{"action":"REMOVE_HTTP_REQUEST_HEADER","header":"x-debug"}]`

// changesOfOneKind are those that only one of the kinds has.
func changesOfOneKind() map[BalancerKind][]change {
	one := "/" + testBalancer
	set := RuleSet{Name: "headers", Rules: testRules}
	items := []any{map[string]any{"action": "REMOVE_HTTP_REQUEST_HEADER", "header": "x-debug"}}
	lb := func(s balancers) *LoadBalancers { return s.(*LoadBalancers) }
	return map[BalancerKind][]change{
		KindLB: {
			{"CreateRuleSet", func(ctx context.Context, s balancers) (string, error) {
				return lb(s).CreateRuleSet(ctx, testBalancer, set, "token")
			}, "POST", one + "/ruleSets", "token", "", map[string]any{"name": "headers", "items": items}},
			{"UpdateRuleSet", func(ctx context.Context, s balancers) (string, error) {
				return lb(s).UpdateRuleSet(ctx, testBalancer, set, "etag")
			}, "PUT", one + "/ruleSets/headers", "any", "etag", map[string]any{"items": items}},
			{"DeleteRuleSet", func(ctx context.Context, s balancers) (string, error) {
				return lb(s).DeleteRuleSet(ctx, testBalancer, "headers")
			}, "DELETE", one + "/ruleSets/headers", "", "", nil},
		},
		KindNLB: {
			{"UpdateIPMode", func(ctx context.Context, s balancers) (string, error) {
				return s.(*NetworkLoadBalancers).UpdateIPMode(ctx, testBalancer, IPModeDual, "fd00::7", "etag")
			}, "PUT", one, "", "etag", map[string]any{"nlbIpVersion": "IPV4_AND_IPV6", "assignedIpv6": "fd00::7"}},
		},
	}
}

// A rule set of a create comes back as it was asked for.
func TestRuleSetsOfACreate(t *testing.T) {
	sets := map[string]RuleSet{"headers": {Name: "headers", Rules: testRules}}
	body := lbCreateDetails(&Balancer{RuleSets: sets})
	if len(body.RuleSets) != 1 || len(body.RuleSets["headers"].Items) != 1 {
		t.Fatalf("the body has %v", body.RuleSets)
	}
	rules, err := canonicalRules(body.RuleSets["headers"].Items)
	if err != nil || rules != testRules {
		t.Errorf("got %s, %v", rules, err)
	}
	if body := lbCreateDetails(&Balancer{}); body.RuleSets != nil {
		t.Error("a balancer without rule sets sends some")
	}
}
