// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// object is one entry of a snapshot.
type object struct {
	kind  string
	id    string
	etag  string
	value map[string]any
}

// world is a snapshot, decoded.
type world map[string]*object

// workRequestKind begins the kinds that are records of calls, not things in the cloud.
const workRequestKind = "work request"

func decodeWorld(snapshot []byte) (world, error) {
	var kinds map[string]map[string]struct {
		ETag  string          `json:"etag"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(snapshot, &kinds); err != nil {
		return nil, fmt.Errorf("decode the snapshot: %w", err)
	}
	w := world{}
	for kind, objects := range kinds {
		if strings.HasPrefix(kind, workRequestKind) {
			continue
		}
		for id, o := range objects {
			decoder := json.NewDecoder(bytes.NewReader(o.Value))
			decoder.UseNumber()
			fields := map[string]any{}
			if err := decoder.Decode(&fields); err != nil {
				return nil, fmt.Errorf("decode %s %s: %w", kind, id, err)
			}
			w[id] = &object{kind: kind, id: id, etag: o.ETag, value: fields}
		}
	}
	return w, nil
}

// sorted returns the objects by kind and identifier.
func (w world) sorted() []*object {
	list := make([]*object, 0, len(w))
	for _, o := range w {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b *object) int {
		if c := strings.Compare(a.kind, b.kind); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
	return list
}

func (o *object) text(field string) string {
	s, _ := o.value[field].(string)
	return s
}

// name is what a person knows the object by.
func (o *object) name() string {
	for _, field := range []string{"displayName", "name", "path", "description", "ipAddress"} {
		if s := o.text(field); s != "" {
			return s
		}
	}
	return ""
}

// tag returns a freeform tag.
func (o *object) tag(key string) string {
	tags, _ := o.value["freeformTags"].(map[string]any)
	s, _ := tags[key].(string)
	return s
}

// owner is the owner that the object's marks name.
func (o *object) owner() string {
	if owner := o.tag(TagOwner); owner != "" || o.tag("CreatedBy") != "CCM" {
		return owner
	}
	return o.tag(TagService)
}

func (o *object) state() string { return o.text("lifecycleState") }

// stage is what a lifecycle state means for the question whether something is there.
type stage int

const (
	present stage = iota
	changing
	failed
	going
	gone
)

var stages = map[string]stage{
	"CREATING": changing, "PROVISIONING": changing, "UPDATING": changing, "ATTACHING": changing, "RESTORING": changing,
	"STARTING": changing, "STOPPING": changing, "MOVING": changing, "REQUEST_RECEIVED": changing,
	"FAILED": failed, "FAULTY": failed,
	"DELETING": going, "TERMINATING": going, "DETACHING": going, "UNASSIGNING": going,
	"DELETED": gone, "TERMINATED": gone, "DETACHED": gone, "UNASSIGNED": gone,
}

func (o *object) stage() stage { return stages[o.state()] }

// leaving says whether the object is gone or about to go.
func (o *object) leaving() bool { return o.stage() >= going }

// parentFields name, by kind, the objects without which one has no reason to be.
var parentFields = map[string][]string{
	"private IP":             {"vnicId"},
	"IPv6 address":           {"vnicId"},
	"VNIC attachment":        {"instanceId"},
	"volume attachment":      {"volumeId", "instanceId"},
	"boot volume attachment": {"bootVolumeId", "instanceId"},
	"export":                 {"exportSetId", "fileSystemId"},
	"snapshot":               {"fileSystemId"},
}

// serviceVNIC begins the display name of a VNIC that a service made for a resource; the rest is the resource's OCID.
const serviceVNIC = "VNIC of "

// parents returns the identifiers of what the object is a part of, as far as the object itself says.
func (o *object) parents() []string {
	var ids []string
	for _, field := range parentFields[o.kind] {
		if id := o.text(field); id != "" {
			ids = append(ids, id)
		}
	}
	switch o.kind {
	case "VNIC":
		if owner, ok := strings.CutPrefix(o.text("displayName"), serviceVNIC); ok {
			ids = append(ids, owner)
		}
	case "public IP":
		if id := o.text("assignedEntityId"); id != "" && o.text("lifetime") == "EPHEMERAL" {
			ids = append(ids, id)
		}
	case groupRuleKind:
		if group, _, ok := strings.Cut(o.id, "/"); ok {
			ids = append(ids, group)
		}
	}
	return ids
}
