// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path/filepath"
)

// source is the kind of place that a value comes from.
type source int

const (
	fromNowhere source = iota
	fromDefault
	fromFile
	fromMetadata
	fromKeyFile
)

// Origin says where a value of the configuration comes from. The zero Origin means that it is not set.
type Origin struct {
	source source
	file   string
	line   int
	note   string // the deprecated key it was spelt as
}

// IsSet says whether the key has a value.
func (o Origin) IsSet() bool { return o.source != fromNowhere }

// String gives the origin for people: "provider.yaml:12", "default", "instance metadata".
func (o Origin) String() string {
	switch o.source {
	case fromDefault:
		return "default"
	case fromFile:
		s := fmt.Sprintf("%s:%d", filepath.Base(o.file), o.line)
		if o.note != "" {
			s += ", as " + o.note
		}
		return s
	case fromMetadata:
		return "instance metadata"
	case fromKeyFile:
		return "file " + o.file
	default:
		return "not set"
	}
}

// Origin returns where the value of a key ("auth.region") comes from.
func (c *Config) Origin(key string) Origin { return c.origins[key] }

func (c *Config) setOrigin(key string, o Origin) {
	if c.origins == nil {
		c.origins = map[string]Origin{}
	}
	c.origins[key] = o
}
