// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	lb "github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// maxRuleSetName is how long the name of a rule set can be: that of a backend set (oci-api.md §3.5), since the API documents
// none of its own.
const maxRuleSetName = 32

// RuleSet is a rule set of a load balancer. Rules are of a dozen types, which only the service tells apart: they are kept as
// JSON in one canonical spelling, so that values can be compared and printed.
type RuleSet struct {
	Name  string
	Rules string // a JSON array of the API's rules, with sorted keys and without nulls
}

// SatisfiedBy says whether another rule set has all that this one asks for, rule by rule in their order. Fields that this one
// leaves to the service may have any value there.
func (s RuleSet) SatisfiedBy(other RuleSet) bool {
	want, errWant := decodeJSON([]byte(s.Rules))
	have, errHave := decodeJSON([]byte(other.Rules))
	return errWant == nil && errHave == nil && covers(want, have)
}

// covers says whether have is want, with further fields in objects at most.
func covers(want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		for key, value := range want {
			ok = ok && covers(value, have[key])
		}
		return ok
	case []any:
		have, ok := have.([]any)
		return ok && slices.EqualFunc(want, have, covers)
	}
	return want == have
}

// ParseRuleSets reads a JSON object from names of rule sets to their details, {"name":{"items":[…]}}, as the API takes them.
// Names of fields and actions may be written in any case. An empty text is an empty object.
func ParseRuleSets(text string) (map[string]RuleSet, error) {
	sets := map[string]RuleSet{}
	if strings.TrimSpace(text) == "" {
		return sets, nil
	}
	var details map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &details); err != nil {
		return nil, fmt.Errorf(`it must be JSON like {"name":{"items":[{"action":"REMOVE_HTTP_REQUEST_HEADER","header":"x-debug"}]}}: %w`, err)
	}
	for _, name := range slices.Sorted(maps.Keys(details)) {
		if name == "" || len(name) > maxRuleSetName {
			return nil, fmt.Errorf("the name %q of a rule set must have 1 to %d characters", name, maxRuleSetName)
		}
		rules, err := parseRules(details[name])
		if err != nil {
			return nil, fmt.Errorf("rule set %s: %w", name, err)
		}
		sets[name] = RuleSet{Name: name, Rules: rules}
	}
	return sets, nil
}

// parseRules reads the details of one rule set. The SDK knows the types of rules, but passes over what it does not know.
func parseRules(details []byte) (string, error) {
	given, err := decodeJSON(details)
	if err != nil {
		return "", err
	}
	object, ok := given.(map[string]any)
	if !ok {
		return "", errors.New(`it must be an object like {"items":[…]}`)
	}
	var items []any
	for key, value := range object {
		list, isList := value.([]any)
		if !strings.EqualFold(key, "items") {
			return "", fmt.Errorf("it has a field %s, which is not known; the only one is items", key)
		}
		if !isList {
			return "", errors.New("items must be a list of rules")
		}
		items = list
	}
	if len(items) == 0 {
		return "", errors.New("it has no items")
	}
	for i, item := range items {
		if err := normaliseAction(item); err != nil {
			return "", fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	text, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		return "", err
	}
	var typed lb.RuleSetDetails
	if err := json.Unmarshal(text, &typed); err != nil {
		return "", err
	}
	for i, rule := range typed.Items {
		if err := checkRule(items[i], rule); err != nil {
			return "", fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return canonicalRules(typed.Items)
}

// normaliseAction spells the action of a rule as the API does.
func normaliseAction(item any) error {
	rule, ok := item.(map[string]any)
	if !ok {
		return errors.New("it must be an object with an action")
	}
	for key, value := range rule {
		if !strings.EqualFold(key, "action") {
			continue
		}
		text, _ := value.(string)
		action, known := lb.GetMappingRuleActionEnum(text)
		if !known {
			break
		}
		delete(rule, key)
		rule["action"] = string(action)
		return nil
	}
	return fmt.Errorf("action must be one of %s", strings.Join(lb.GetRuleActionEnumStringValues(), ", "))
}

// checkRule refuses fields that the type of the rule does not have, and mandatory ones that are missing.
func checkRule(given any, typed lb.Rule) error {
	text, err := json.Marshal(typed)
	if err != nil {
		return err
	}
	known, err := decodeJSON(text)
	if err != nil {
		return err
	}
	if key := unknownField(given, known); key != "" {
		return fmt.Errorf("it has a field %s, which is not known there", key)
	}
	if key := missingField(reflect.ValueOf(typed)); key != "" {
		return fmt.Errorf("%s is missing", key)
	}
	return nil
}

// unknownField finds a field of one value that the other one lacks, whatever its spelling.
func unknownField(given, known any) string {
	switch given := given.(type) {
	case map[string]any:
		object, _ := known.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(given)) {
			if given[key] == nil {
				continue
			}
			counterpart, found := any(nil), false
			for other, value := range object {
				if strings.EqualFold(key, other) {
					counterpart, found = value, true
				}
			}
			if !found {
				return key
			}
			if inner := unknownField(given[key], counterpart); inner != "" {
				return inner
			}
		}
	case []any:
		list, _ := known.([]any)
		for i := range min(len(given), len(list)) {
			if inner := unknownField(given[i], list[i]); inner != "" {
				return inner
			}
		}
	}
	return ""
}

// missingField finds a mandatory field of an SDK value that has no value.
func missingField(v reflect.Value) string {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch v.Kind() { //nolint:exhaustive // the others have no fields
	case reflect.Slice:
		for i := range v.Len() {
			if name := missingField(v.Index(i)); name != "" {
				return name
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field, value := v.Type().Field(i), v.Field(i)
			if !field.IsExported() {
				continue
			}
			if field.Tag.Get("mandatory") == "true" && value.IsZero() {
				return field.Tag.Get("json")
			}
			if name := missingField(value); name != "" {
				return name
			}
		}
	}
	return ""
}

// canonicalRules is the text of rules in the spelling of RuleSet.
func canonicalRules(rules []lb.Rule) (string, error) {
	text, err := json.Marshal(rules)
	if err != nil {
		return "", err
	}
	value, err := decodeJSON(text)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(pruneNulls(value)); err != nil {
		return "", err
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

func pruneNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if inner == nil {
				delete(value, key)
				continue
			}
			value[key] = pruneNulls(inner)
		}
	case []any:
		for i := range value {
			value[i] = pruneNulls(value[i])
		}
	}
	return value
}

// decodeJSON decodes a value with its numbers as they are written.
func decodeJSON(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}

func lbRuleSetFromSDK(name string, s lb.RuleSet) RuleSet {
	rules, err := canonicalRules(s.Items)
	if err != nil {
		rules = "" // like none that anybody asks for: rules of a type that has no JSON form
	}
	return RuleSet{Name: name, Rules: rules}
}

// lbRules are the rules as the SDK sends them. What ParseRuleSets has made, and what was read, can be read again.
func lbRules(s RuleSet) []lb.Rule {
	var details lb.RuleSetDetails
	if json.Unmarshal([]byte(`{"items":`+s.Rules+`}`), &details) != nil {
		return []lb.Rule{}
	}
	return details.Items
}

// CreateRuleSet adds a rule set.
func (s *LoadBalancers) CreateRuleSet(ctx context.Context, id string, rs RuleSet, token string) (string, error) {
	request := lb.CreateRuleSetRequest{
		LoadBalancerId:       &id,
		OpcRetryToken:        retryToken(token),
		CreateRuleSetDetails: lb.CreateRuleSetDetails{Name: &rs.Name, Items: lbRules(rs)},
	}
	return s.change(ctx, "CreateRuleSet", "load_balancer_rule_set", "create", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.CreateRuleSet(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// UpdateRuleSet replaces the rules of a rule set.
func (s *LoadBalancers) UpdateRuleSet(ctx context.Context, id string, rs RuleSet, etag string) (string, error) {
	request := lb.UpdateRuleSetRequest{
		LoadBalancerId:       &id,
		RuleSetName:          &rs.Name,
		IfMatch:              present(etag),
		OpcRetryToken:        retryToken(""),
		UpdateRuleSetDetails: lb.UpdateRuleSetDetails{Items: lbRules(rs)},
	}
	return s.change(ctx, "UpdateRuleSet", "load_balancer_rule_set", "update", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.UpdateRuleSet(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// DeleteRuleSet removes a rule set, which no listener may use any more.
func (s *LoadBalancers) DeleteRuleSet(ctx context.Context, id, name string) (string, error) {
	return s.change(ctx, "DeleteRuleSet", "load_balancer_rule_set", "delete", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.DeleteRuleSet(ctx, lb.DeleteRuleSetRequest{LoadBalancerId: &id, RuleSetName: &name})
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}
