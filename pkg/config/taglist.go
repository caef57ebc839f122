// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/oracle/oci-cloud-controller-manager/pkg/taglabel"
)

// tagKeyList is a list of tags that become labels.
type tagKeyList struct {
	name  string
	parse func(string) (taglabel.Tag, error)
	at    func(*document) *[]taglabel.Tag
}

func (l tagKeyList) kind() string { return l.name }

func (l tagKeyList) decode(n *yaml.Node, d *document) []fault {
	if n.Kind != yaml.SequenceNode {
		return wrong(n, "want %s, got a %s", article(l.name), shape(n))
	}
	var tags []taglabel.Tag
	var faults []fault
	first := map[string]*yaml.Node{} // by label
	for _, item := range n.Content {
		item = resolve(item)
		if item.Kind != yaml.ScalarNode {
			faults = append(faults, wrong(item, "want a tag's key, got a %s", shape(item))...)
			continue
		}
		tag, err := l.parse(textOf(item))
		if err != nil {
			faults = append(faults, fault{message: err.Error(), got: item.Value}.at(item, "")...)
			continue
		}
		if before := first[tag.Label()]; before != nil {
			faults = append(faults, fault{warning: true, got: item.Value, message: fmt.Sprintf(
				"%s in line %d becomes the same label, %s: this one is left out", quote(before.Value), before.Line, tag.Label())}.at(item, "")...)
			continue
		}
		first[tag.Label()] = item
		tags = append(tags, tag)
	}
	*l.at(d) = tags
	return faults
}

func (l tagKeyList) show(d *document) any {
	var list []string
	for _, tag := range *l.at(d) {
		list = append(list, tag.String())
	}
	if list == nil {
		return nil
	}
	return list
}
