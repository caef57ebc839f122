// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"encoding/json"
	"strconv"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// publishContext tells the node what it needs of an attachment. The node may run the driver of another release: the keys of contract
// storage.md §3.1 are all there, and more only where they say more.
func publishContext(a *oci.VolumeAttachment, size int64, volume map[string]string) map[string]string {
	vpus := volume[ContextVPUs]
	if vpus == "" {
		vpus = "10" // a PV that was made by hand
	}
	out := map[string]string{
		ContextAttachmentType:   a.Type,
		ContextVPUs:             vpus,
		ContextNeedResize:       volume[ContextNeedResize],
		ContextNewSize:          volume[ContextNewSize],
		ContextMultipath:        strconv.FormatBool(a.Multipath),
		ContextMultipathDevices: multipathDevices(a),
		ContextSize:             strconv.FormatInt(size, 10),
	}
	if a.Device != "" || a.Type == AttachmentParavirtualized {
		out[ContextDevice] = a.Device
	}
	if a.Type != AttachmentISCSI {
		return out
	}
	out[ContextIQN], out[ContextIP], out[ContextPort] = a.IQN, a.IPv4, strconv.Itoa(a.Port)
	if a.CHAPUser != "" {
		out[ContextCHAPUser], out[ContextCHAPSecret] = a.CHAPUser, string(a.CHAPSecret)
	}
	return out
}

// multipathDevices is the list of further paths as the SDK encodes it; empty without any.
func multipathDevices(a *oci.VolumeAttachment) string {
	type device struct {
		IPv4 string `json:"ipv4"`
		IQN  string `json:"iqn"`
		Port int    `json:"port"`
	}
	if len(a.Paths) == 0 {
		return ""
	}
	list := make([]device, 0, len(a.Paths))
	for _, p := range a.Paths {
		list = append(list, device(p))
	}
	raw, err := json.Marshal(list)
	if err != nil { // a struct of strings and numbers
		panic(err)
	}
	return string(raw)
}
