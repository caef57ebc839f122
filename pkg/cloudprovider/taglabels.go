// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/pkg/podcidr"
	"github.com/oracle/oci-cloud-controller-manager/pkg/taglabel"
)

const (
	// annotationTagLabels records the labels that we have made of tags, with their values, as JSON. What is not in it is
	// not ours: it is neither changed nor removed, even where a tag asks for that label.
	annotationTagLabels = "oci.oraclecloud.com/tag-labels"

	// tagPeriod is how often labels are compared with tags. Together with the staleness of what is known of instances,
	// shapeAge, it is how late a label may be. It hardly costs a call: the framework's passes read the instances too.
	tagPeriod = 5 * time.Minute
)

// labelByTags adds to the change what makes the labels of a node follow the tags of its instance: a three-way comparison of
// the tags, the labels, and the record of what we have set.
func (p *Provider) labelByTags(node *v1.Node, instance *oci.Instance, change *nodeChange) {
	before := tagRecord(node)
	if len(p.options.TagLabels) == 0 && len(before) == 0 {
		return
	}
	after := map[string]string{}
	for _, tag := range p.options.TagLabels {
		label := tag.Label()
		set, ours := before[label]
		value, has, known := tag.Value(instance.Freeform, instance.Defined)
		if !known && ours {
			value, has = set, true
		}
		if !has {
			continue
		}
		current, there := node.Labels[label]
		switch {
		case !there || ours:
			after[label] = value
			if !there || current != value {
				change.labels[label] = value
				change.exact = change.exact || there
			}
		case current != value:
			p.reportTaken(node, instance, tag, current, value)
		}
	}
	for label, value := range before {
		if _, stays := after[label]; !stays && hasKey(node.Labels, label) && node.Labels[label] == value {
			change.labels[label], change.exact = nil, true
		}
	}
	if maps.Equal(before, after) {
		return
	}
	if len(after) == 0 {
		change.annotations[annotationTagLabels] = nil
		return
	}
	record, err := json.Marshal(after)
	if err == nil { // a map of texts always can be marshalled
		change.annotations[annotationTagLabels] = string(record)
	}
}

// tagRecord reads the record. One that cannot be read counts as none: then nothing is ours.
func tagRecord(node *v1.Node) map[string]string {
	var record map[string]string
	if err := json.Unmarshal([]byte(node.Annotations[annotationTagLabels]), &record); err != nil {
		return nil
	}
	return record
}

// reportTaken says that a label belongs to somebody else.
func (p *Provider) reportTaken(node *v1.Node, instance *oci.Instance, tag taglabel.Tag, current, value string) {
	label := tag.Label()
	p.events.post(node, v1.EventTypeWarning, "NodeLabelTaken", label+"="+value, fmt.Sprintf(
		"The tag %s of instance %s does not become the label %s=%s, since the node has %s=%s from somebody else, which is left alone. "+
			"To have the tag there: kubectl label node %s %s-", tag, instance.ID, label, value, label, current, node.Name, label))
}

// TrimInstance returns what takes out of an instance all that the provider does not ask for: its metadata, which may hold
// kilobytes of cloud-init, and its tags, except those that become labels.
func TrimInstance(labels []taglabel.Tag) func(*oci.Instance) {
	keeper := taglabel.NewKeeper(labels)
	return func(instance *oci.Instance) {
		var metadata map[string]string
		if text := instance.Metadata[podcidr.MetadataKey]; text != "" {
			metadata = map[string]string{podcidr.MetadataKey: text}
		}
		freeform, defined := keeper.Keep(instance.Freeform, instance.Defined)
		if namespace := openShiftNamespaceOf(instance); namespace != "" && defined[namespace] == nil {
			shared := defined
			defined = map[string]map[string]any{namespace: {}}
			maps.Copy(defined, shared)
		}
		instance.Metadata, instance.Freeform, instance.Defined = metadata, freeform, defined
	}
}
