// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"encoding/json"
	"maps"
	"regexp"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Marks: free-form tags on the volumes, backups and groups that this package makes.
const (
	TagCluster = "oci-k8s-cluster"
	TagOwner   = "oci-k8s-owner" // the name under which it was asked for
)

// Limits of tags on a resource (oci-api.md §3.5).
const (
	maxFreeformTags = 10
	maxTagsBytes    = 5 * 1024
)

// systemNamespace holds the tags that Oracle's own clusters put on their resources. Not every tenancy has it.
const systemNamespace = "orcl-containerengine"

// ownership is how something is known to be the one that was asked for under a name.
type ownership int

const (
	notOwned ownership = iota
	ownedByName
	ownedByMark
)

// unmistakable is a name that nobody gives by chance: the sidecars make names of UIDs.
var unmistakable = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// owns says whether something with these tags and this display name is what was asked for under a name. Marks of another
// cluster or owner outweigh the name. Without marks, as the existing implementation leaves it, the name has to be one that
// contains a UID: others may be anybody's.
func (s *Service) owns(name, displayName string, tags oci.Tags) ownership {
	owner, cluster := tags.Freeform[TagOwner], tags.Freeform[TagCluster]
	switch {
	case owner != "" && owner != name:
		return notOwned
	case cluster != "" && s.cfg.ClusterID != "" && cluster != s.cfg.ClusterID:
		return notOwned
	case owner != "":
		return ownedByMark
	case displayName == name && unmistakable.MatchString(name):
		return ownedByName
	}
	return notOwned
}

// marked returns tags with the marks.
func (s *Service) marked(name string, tags oci.Tags) oci.Tags {
	marks := map[string]string{TagOwner: name}
	if s.cfg.ClusterID != "" {
		marks[TagCluster] = s.cfg.ClusterID
	}
	return oci.Tags{Freeform: over(tags.Freeform, marks), Defined: tags.Defined}
}

// over returns free-form tags with others laid over them.
func over(tags, others map[string]string) map[string]string {
	out := make(map[string]string, len(tags)+len(others))
	maps.Copy(out, tags)
	maps.Copy(out, others)
	return out
}

// overTagLimit says whether the documented limits do not allow these tags.
func overTagLimit(tags oci.Tags) bool {
	if len(tags.Freeform) > maxFreeformTags {
		return true
	}
	text, err := json.Marshal(tags)
	return err == nil && len(text) > maxTagsBytes
}

// tagChoices are the tags to try on a create, the best first: with everything; without what only tells people which claim
// it is for; without marks. The next one is tried where the limits do not allow the one before.
func (s *Service) tagChoices(name string, tags oci.Tags, notes map[string]string) []oci.Tags {
	full := s.marked(name, oci.Tags{Freeform: over(notes, tags.Freeform), Defined: tags.Defined})
	choices := []oci.Tags{full}
	if len(notes) > 0 {
		choices = append(choices, s.marked(name, tags))
	}
	return append(choices, oci.Tags{Freeform: maps.Clone(tags.Freeform), Defined: tags.Defined})
}

// withoutSystemTags returns the tags without those of the system namespace, and whether there were any.
func withoutSystemTags(tags oci.Tags) (oci.Tags, bool) {
	if _, there := tags.Defined[systemNamespace]; !there {
		return tags, false
	}
	defined := maps.Clone(tags.Defined)
	delete(defined, systemNamespace)
	return oci.Tags{Freeform: tags.Freeform, Defined: defined}, true
}
