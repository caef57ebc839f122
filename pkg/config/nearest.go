// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/internal/nearest"
)

// suggest finds the known key that an unknown one at path probably meant: a sibling, or else the only key anywhere of
// that very name.
func (t *tree) suggest(block, name string) string {
	if meant := nearest.Word(name, t.children(block)); meant != "" {
		return join(block, meant)
	}
	found := ""
	for _, k := range t.keys {
		if k.Replacement != "" || !nearest.Same(last(k.Path), name) {
			continue
		}
		if found != "" {
			return ""
		}
		found = k.Path
	}
	return found
}

// within says whether key is block or a key below it.
func within(key, block string) bool {
	return key == block || strings.HasPrefix(key, block+".")
}

// join puts a name below a block; the top level is "".
func join(block, name string) string {
	if block == "" {
		return name
	}
	return block + "." + name
}

// parent returns the block of a key.
func parent(key string) string {
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		return key[:i]
	}
	return ""
}

// last returns the name of a key within its block.
func last(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }
