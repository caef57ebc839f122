// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/internal/nearest"
	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Keys of classes (contract storage.md §2.1, §2.2; those of auto-tune and of changes are new).
const (
	parameterAttachmentType  = "attachment-type"
	parameterVPUs            = "vpusPerGB"
	parameterKMSKey          = "kms-key-id"
	parameterTuneDetached    = "auto-tune-detached"
	parameterTuneMaxVPUs     = "auto-tune-max-vpus-per-gb"
	parameterBackupType      = "backupType"
	parameterInitialFreeform = "oci.oraclecloud.com/initial-freeform-tags-override"
	parameterInitialDefined  = "oci.oraclecloud.com/initial-defined-tags-override"
	parameterFreeform        = "oci.oraclecloud.com/freeform-tags"
	parameterDefined         = "oci.oraclecloud.com/defined-tags"
	parameterFSType          = "fstype"

	// sidecarPrefix begins the keys that are for sidecars, and those that they add.
	sidecarPrefix = "csi.storage.k8s.io/"
)

// wishes are what the parameters of a class ask for.
type wishes struct {
	attachmentType string
	vpus           *int64
	autoTune       blockvolume.AutoTuneChange
	kmsKeyID       string
	tags           oci.Tags
	tagged         bool     // one of the keys of tags is there
	more           oci.Tags // of a VolumeAttributesClass, laid over the others
	incremental    bool
}

// Parameter is a key of a class.
type Parameter struct {
	Key     string
	Values  string // which it takes
	Default string
	Text    string // what it does
	// In says which classes may have it.
	In []Class

	read func(w *wishes, value string) error
}

// Class is a kind of object that has parameters.
type Class string

// The classes.
const (
	StorageClass             Class = "StorageClass"
	VolumeAttributesClass    Class = "VolumeAttributesClass"
	VolumeSnapshotClass      Class = "VolumeSnapshotClass"
	VolumeGroupSnapshotClass Class = "VolumeGroupSnapshotClass"
)

// Parameters is the table of all keys.
func Parameters() []Parameter {
	volumes, changes := []Class{StorageClass}, []Class{StorageClass, VolumeAttributesClass}
	snapshots := []Class{VolumeSnapshotClass, VolumeGroupSnapshotClass}
	return []Parameter{
		{parameterAttachmentType, "`iscsi`, `paravirtualized`", "`iscsi`, or what the instance requires",
			"How the volume is attached. Instances with in-transit encryption take `paravirtualized` only, bare metal takes `iscsi` only.", volumes,
			func(w *wishes, value string) error { return w.setAttachmentType(value) }},
		{parameterVPUs, "multiples of 10 from 0 to 120", "10", "Performance in volume performance units per GB: 0 lower cost, 10 balanced, 20 higher, 30 and more ultra high performance.", changes,
			func(w *wishes, value string) (err error) { w.vpus, err = vpus(value); return err }},
		{parameterTuneDetached, "`true`, `false`", "`false`", "The cloud lowers the performance of a volume that is detached for long, and restores it when it is attached.", changes,
			func(w *wishes, value string) error { return w.setDetached(value) }},
		{parameterTuneMaxVPUs, "multiples of 10 up to 120; 0 for none", "0", "The cloud raises the performance of a volume under load, up to so many units per GB.", changes,
			func(w *wishes, value string) error { return w.setMaxVPUs(value) }},
		{parameterKMSKey, "OCID of a key", "a key of Oracle's", "The volume is encrypted with this key of the Vault service.", volumes,
			func(w *wishes, value string) error { w.kmsKeyID = value; return nil }},
		{parameterInitialFreeform, "JSON object of strings", "`tags.blockVolume` of the config", "Free-form tags of new volumes. With either of the two keys, the config's tags of both kinds are not used.", volumes,
			func(w *wishes, value string) error { return w.setFreeform(value) }},
		{parameterInitialDefined, "JSON object: namespace, key, value", "`tags.blockVolume` of the config", "Defined tags of new volumes.", volumes,
			func(w *wishes, value string) error { return w.setDefined(value) }},
		{parameterFreeform, "JSON object of strings", "none", "Free-form tags of backups; of a VolumeAttributesClass, those that are laid over the volume's.",
			append([]Class{VolumeAttributesClass}, snapshots...), func(w *wishes, value string) error { return w.setFreeform(value) }},
		{parameterDefined, "JSON object: namespace, key, value", "none", "Defined tags, likewise.",
			append([]Class{VolumeAttributesClass}, snapshots...), func(w *wishes, value string) error { return w.setDefined(value) }},
		{parameterBackupType, "`incremental`, `full`", "`incremental`", "The kind of backup.", snapshots,
			func(w *wishes, value string) error { return w.setBackupType(value) }},
		{parameterFSType, "", "", "Deprecated, without effect: use `csi.storage.k8s.io/fstype`.", volumes, nil},
	}
}

var (
	errNotOneOf = errors.New("not one of the values")
	errNoNumber = errors.New("not a whole number")
)

// unknown is a key that no parameter has.
type unknown struct{ key, meant string }

func (u unknown) String() string {
	switch {
	case u.key == parameterFSType:
		return "parameter fstype has no effect: use csi.storage.k8s.io/fstype"
	case u.meant != "":
		return fmt.Sprintf("parameter %q is not known and has no effect: did you mean %q?", u.key, u.meant)
	}
	return fmt.Sprintf("parameter %q is not known and has no effect: remove it", u.key)
}

// readParameters reads the parameters of a class. Keys that it does not know come back; a bad value of a key that it knows is an error, of
// blockvolume.ErrInvalid.
func readParameters(class Class, parameters map[string]string) (wishes, []unknown, error) {
	w := wishes{incremental: true}
	table := slices.DeleteFunc(Parameters(), func(p Parameter) bool { return !slices.Contains(p.In, class) })
	var strange []unknown
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		i := slices.IndexFunc(table, func(p Parameter) bool { return p.Key == key })
		switch {
		case strings.HasPrefix(key, sidecarPrefix):
		case i < 0 || table[i].read == nil:
			strange = append(strange, unknown{key, meant(key, table)})
		case strings.TrimSpace(parameters[key]) == "": // as if it were not there, as it has always been
		default:
			if err := table[i].read(&w, strings.TrimSpace(parameters[key])); err != nil {
				return w, nil, fmt.Errorf("%w: parameter %s of the %s is %q: %w; it takes %s",
					blockvolume.ErrInvalid, key, class, parameters[key], err, strings.ReplaceAll(table[i].Values, "`", ""))
			}
		}
	}
	return w, strange, nil
}

// shortForms are names that people use for parameters.
func shortForms() map[string]string {
	return map[string]string{"kms-key": parameterKMSKey, "kms-key-ocid": parameterKMSKey, "vpus": parameterVPUs, "type": parameterAttachmentType}
}

// meant is the key that an unknown one was probably meant to be: its name counts, without the prefix.
func meant(key string, table []Parameter) string {
	var names []string
	aliases := shortForms()
	for _, p := range table {
		if p.read != nil {
			names = append(names, name(p.Key))
		}
	}
	found := nearest.Word(name(key), append(names, slices.Collect(maps.Keys(aliases))...))
	if full, is := aliases[found]; is {
		found = full
	}
	for _, p := range table {
		if found != "" && name(p.Key) == found {
			return p.Key
		}
	}
	return ""
}

func name(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

func (w *wishes) setAttachmentType(value string) error {
	w.attachmentType = strings.ToLower(value)
	if w.attachmentType != AttachmentISCSI && w.attachmentType != AttachmentParavirtualized {
		return errNotOneOf
	}
	return nil
}

func vpus(value string) (*int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return nil, errNoNumber
	}
	return &n, blockvolume.CheckVPUs(n)
}

func (w *wishes) setDetached(value string) error {
	on, err := strconv.ParseBool(value)
	if err != nil {
		return errNotOneOf
	}
	w.autoTune.Detached = &on
	return nil
}

func (w *wishes) setMaxVPUs(value string) error {
	n, err := vpus(value)
	if err != nil {
		return err
	}
	w.autoTune.MaxVPUs = n
	return nil
}

func (w *wishes) setFreeform(value string) error {
	w.tagged = true
	return decodeJSON(value, &w.tags.Freeform)
}

func (w *wishes) setDefined(value string) error {
	w.tagged = true
	return decodeJSON(value, &w.tags.Defined)
}

func (w *wishes) setBackupType(value string) error {
	switch strings.ToLower(value) {
	case "incremental":
	case "full":
		w.incremental = false
	default:
		return errNotOneOf
	}
	return nil
}

func decodeJSON(value string, into any) error {
	if err := json.Unmarshal([]byte(value), into); err != nil {
		return fmt.Errorf("not the JSON that is wanted: %w", err)
	}
	return nil
}
