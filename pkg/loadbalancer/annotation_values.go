// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Bounds of a flexible shape in Mbps (oci-go-sdk, loadbalancer.ShapeDetails).
const (
	minFlexMbps = 10
	maxFlexMbps = 8000
)

// maxNumber is the upper bound of numbers for which the API documents none.
const maxNumber = math.MaxInt32

// setter puts the text of an annotation into the settings. It gets the text trimmed and never empty.
type setter = func(s *Settings, value string) error

// boolean reads what strconv.ParseBool reads, in any case.
func boolean(field func(*Settings) **bool) setter {
	return func(s *Settings, value string) error {
		b, err := strconv.ParseBool(strings.ToLower(value))
		if err != nil {
			return errors.New("it must be true or false")
		}
		*field(s) = &b
		return nil
	}
}

// choice matches the text with the allowed values in any case and hands over the allowed spelling.
func choice(allowed []string, assign func(s *Settings, value string)) setter {
	return func(s *Settings, value string) error {
		for _, a := range allowed {
			if strings.EqualFold(a, value) {
				assign(s, a)
				return nil
			}
		}
		return fmt.Errorf("it must be one of %s", strings.Join(allowed, ", "))
	}
}

// number reads a decimal number with one of the units behind it, in any case, or with none.
func number(field func(*Settings) **int, low, high int, units ...string) setter {
	return func(s *Settings, value string) error {
		text := strings.ToLower(value)
		for _, unit := range units {
			if cut, found := strings.CutSuffix(text, unit); found {
				text = strings.TrimRightFunc(cut, unicode.IsSpace)
				break
			}
		}
		n, err := strconv.Atoi(text)
		switch {
		case err != nil && len(units) > 0:
			return fmt.Errorf("it must be a number, with or without the unit %s", strings.Join(units, " or "))
		case err != nil:
			return errors.New("it must be a whole number")
		case (n < low || n > high) && high == maxNumber:
			return fmt.Errorf("it must be at least %d", low)
		case n < low || n > high:
			return fmt.Errorf("it must be from %d to %d", low, high)
		}
		*field(s) = &n
		return nil
	}
}

// ocid reads an OCID of one of the given types.
func ocid(types ...string) func(field func(*Settings) *string) setter {
	return func(field func(*Settings) *string) setter {
		return func(s *Settings, value string) error {
			if err := checkOCID(value, types...); err != nil {
				return err
			}
			*field(s) = value
			return nil
		}
	}
}

func checkOCID(value string, types ...string) error {
	id, err := oci.ParseOCID(value)
	if err != nil {
		return fmt.Errorf("%q is no OCID", value)
	}
	if !slices.Contains(types, id.Type) {
		return fmt.Errorf("%q is the OCID of a %s, not of a %s", value, id.Type, strings.Join(types, " or "))
	}
	return nil
}

// nsgs reads a list of OCIDs, at most so many; 0 sets no limit. Empty elements, as after a trailing comma, are passed over.
func nsgs(most int, field func(*Settings) *[]string) setter {
	return func(s *Settings, value string) error {
		var ids []string
		for id := range strings.SplitSeq(value, ",") {
			id = strings.TrimSpace(id)
			if id == "" {
				continue
			}
			if err := checkOCID(id, "networksecuritygroup"); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		slices.Sort(ids)
		ids = slices.Compact(ids)
		if most > 0 && len(ids) > most {
			return fmt.Errorf("it names %d groups; a balancer can be in at most %d", len(ids), most)
		}
		*field(s) = ids
		return nil
	}
}

func selector(s *Settings, value string) error {
	parsed, err := labels.Parse(value)
	if err != nil {
		return fmt.Errorf("it is no label selector: %w", err)
	}
	s.Selector = parsed
	return nil
}

// shape normalises the spelling of the shapes that are known; others are for the API to judge.
func shape(s *Settings, value string) error {
	for _, known := range []string{oci.ShapeFlexible, "10Mbps", "100Mbps", "400Mbps", "8000Mbps", "10Mbps-Micro"} {
		if strings.EqualFold(known, value) {
			value = known
		}
	}
	s.Shape = value
	return nil
}

func address(field func(*Settings) *string, v6 bool) setter {
	return func(s *Settings, value string) error {
		ip, err := netip.ParseAddr(value)
		switch {
		case err != nil || ip.Zone() != "" || ip.Is4In6():
			return errors.New("it must be an IP address")
		case v6 && !ip.Is6():
			return errors.New("it must be an IPv6 address")
		case !v6 && !ip.Is4():
			return errors.New("it must be an IPv4 address")
		}
		*field(s) = ip.String()
		return nil
	}
}

func freeformTags(field func(*Settings) *tagPair) setter {
	return func(s *Settings, value string) error {
		var tags map[string]string
		if err := json.Unmarshal([]byte(value), &tags); err != nil {
			return fmt.Errorf(`it must be JSON like {"team":"shop"}: %w`, err)
		}
		field(s).Freeform = tags
		return nil
	}
}

func definedTags(field func(*Settings) *tagPair) setter {
	return func(s *Settings, value string) error {
		var tags map[string]map[string]any
		if err := json.Unmarshal([]byte(value), &tags); err != nil {
			return fmt.Errorf(`it must be JSON like {"namespace":{"key":"value"}}: %w`, err)
		}
		field(s).Defined = tags
		return nil
	}
}
