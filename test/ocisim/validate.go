// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/oracle/oci-go-sdk/v65/common"
)

// decode reads a request body into a model of the SDK and validates what the model's tags and enums say: mandatory
// fields, known values, tags. Everything else is the handler's.
func decode[T any](c *call) (*T, error) {
	details := new(T)
	body := c.body
	if len(body) == 0 {
		body = []byte("{}")
	}
	if err := unmarshalModel(body, details); err != nil {
		return nil, &APIError{Status: http.StatusBadRequest, Code: "CannotParseRequest", Message: messageParse}
	}
	if err := checkModel(reflect.ValueOf(details).Elem(), ""); err != nil {
		return nil, err
	}
	if err := c.checkTags(reflect.ValueOf(details).Elem()); err != nil {
		return nil, err
	}
	return details, nil
}

// unmarshalModel reads a model of the SDK. Some of them panic at a variant that they do not know.
func unmarshalModel(body []byte, model any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the SDK cannot read the body: %v", r)
		}
	}()
	return json.Unmarshal(body, model)
}

// enumerated is implemented by all models of the SDK.
type enumerated interface {
	ValidateEnumValue() (bool, error)
}

// checkModel walks a request and refuses missing mandatory fields and unknown enum values.
func checkModel(v reflect.Value, path string) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return checkModel(v.Elem(), path)
	case reflect.Slice:
		for i := range v.Len() {
			if err := checkModel(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		for _, key := range sortedMapKeys(v) {
			if err := checkModel(v.MapIndex(key), path+"."+key.String()); err != nil {
				return err
			}
		}
		return nil
	case reflect.Struct:
		return checkStruct(v, path)
	default:
		return nil
	}
}

func checkStruct(v reflect.Value, path string) error {
	if v.Type() == reflect.TypeFor[common.SDKTime]() {
		return nil
	}
	t := v.Type()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		full := strings.TrimPrefix(path+"."+name, ".")
		if t.Field(i).Tag.Get("mandatory") == "true" && absent(v.Field(i)) {
			return errMissing(full)
		}
		if err := checkModel(v.Field(i), full); err != nil {
			return err
		}
	}
	if e, ok := v.Interface().(enumerated); ok {
		if _, err := e.ValidateEnumValue(); err != nil {
			return errInvalid("%v", err)
		}
	}
	return nil
}

const (
	maxTagKey   = 100
	maxTagValue = 256
)

// checkTags validates the tags of a request. The numeric limits are entries of the behaviour table; a namespace that
// the tenancy does not know is a missing related resource.
func (c *call) checkTags(details reflect.Value) error {
	var freeform map[string]string
	var defined map[string]map[string]interface{}
	if f := details.FieldByName("FreeformTags"); f.IsValid() {
		freeform, _ = f.Interface().(map[string]string)
	}
	if f := details.FieldByName("DefinedTags"); f.IsValid() {
		defined, _ = f.Interface().(map[string]map[string]interface{})
	}
	return c.checkTagMaps(freeform, defined)
}

func (c *call) checkTagMaps(freeform map[string]string, defined map[string]map[string]interface{}) error {
	if len(freeform) == 0 && len(defined) == 0 {
		return nil
	}
	var unknown []string
	count := 0
	for namespace, tags := range defined {
		count += len(tags)
		if !c.tagNamespaces[namespace] || !c.granted(permission{Use, tagNamespacesPolicy}, c.options.Tenancy) {
			unknown = append(unknown, "'"+namespace+"'")
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return &APIError{
			Status: http.StatusBadRequest, Code: "RelatedResourceNotAuthorizedOrNotFound",
			Message: "The following tag namespaces / keys are not authorized or not found: " + strings.Join(unknown, ", "),
		}
	}
	if problem := c.tagProblem(freeform, defined, count); problem != "" {
		return c.rule(TooManyTags, problem)
	}
	return nil
}

func (c *call) tagProblem(freeform map[string]string, defined map[string]map[string]interface{}, definedCount int) string {
	b := c.behaviour
	if len(freeform) > b.MaxFreeformTags {
		return fmt.Sprintf("%d freeform tags, the limit is %d", len(freeform), b.MaxFreeformTags)
	}
	if definedCount > b.MaxDefinedTags {
		return fmt.Sprintf("%d defined tags, the limit is %d", definedCount, b.MaxDefinedTags)
	}
	for key, v := range freeform {
		if key == "" || utf8.RuneCountInString(key) > maxTagKey {
			return fmt.Sprintf("the size of a key must be between 1 and %d", maxTagKey)
		}
		if strings.ContainsAny(key, ". ") {
			return fmt.Sprintf("the key '%s' has a dot or a blank", key)
		}
		if utf8.RuneCountInString(v) > maxTagValue {
			return fmt.Sprintf("the size of a value must be at most %d", maxTagValue)
		}
	}
	raw, err := json.Marshal([]any{freeform, defined})
	if err != nil || len(raw) > b.MaxTagBytes {
		return fmt.Sprintf("their JSON is larger than %d bytes", b.MaxTagBytes)
	}
	return ""
}

// checkSize refuses a string whose length in characters is outside the limits.
func checkSize(field, v string, least, most int) error {
	if n := utf8.RuneCountInString(v); n < least || n > most {
		return errInvalid("%s size must be between %d and %d", field, least, most)
	}
	return nil
}

// checkNumber refuses a number outside the limits.
func checkNumber(field string, v, least, most int) error {
	if v < least || v > most {
		return errInvalid("%s must be between %d and %d", field, least, most)
	}
	return nil
}

// checkPattern refuses a string that does not match.
func checkPattern(field, v string, pattern *regexp.Regexp) error {
	if !pattern.MatchString(v) {
		return errInvalid("%s must match %s", field, pattern)
	}
	return nil
}

// related returns a resource that the body refers to; absent or not visible, it is 400
// RelatedResourceNotAuthorizedOrNotFound.
func (k kind[T]) related(c *call, id string) (*T, error) {
	res := k.lookup(c.cloud, id)
	if res == nil || terminal(res.state) || c.denied(k.policy, Read, res.compartment) {
		return nil, errRelated(id)
	}
	return k.of(res), nil
}

// createIn checks the compartment of a create: it must exist, and the principal must be allowed to create there.
// Anything else is the common 404.
func (c *call) createIn(compartment string) error {
	if res := compartments.lookup(c.cloud, compartment); res == nil || terminal(res.state) {
		return errNotFound()
	}
	if c.denied(c.operation.Resource, c.operation.Verb, compartment) {
		return errNotFound()
	}
	return nil
}
