// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"path"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// inFlight keeps two calls from working on one thing at the same time. The second is Aborted, which the specification
// has for that: sidecars and kubelet repeat it with growing delay.
type inFlight struct {
	mu   sync.Mutex
	busy map[string]string // key to method
}

func newInFlight() *inFlight { return &inFlight{busy: map[string]string{}} }

func (f *inFlight) exclude(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	method := path.Base(info.FullMethod)
	key := keyOf(method, request)
	if key == "" {
		return handler(ctx, request)
	}
	if other, busy := f.begin(key, method); busy {
		return nil, status.Errorf(codes.Aborted, "%s is in progress for %s", other, key)
	}
	defer f.end(key)
	return handler(ctx, request)
}

func (f *inFlight) begin(key, method string) (other string, busy bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other, busy = f.busy[key]; !busy {
		f.busy[key] = method
	}
	return other, busy
}

func (f *inFlight) end(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.busy, key)
}

// keyOf names what a call works on; empty for calls that only read. A volume may be attached to several nodes, and published
// at several paths of one node, at the same time: node and path are a part of the key.
func keyOf(method string, request any) string {
	switch method {
	case "CreateVolume", "CreateSnapshot", "CreateVolumeGroupSnapshot":
		if r, ok := request.(interface{ GetName() string }); ok {
			return "name " + r.GetName()
		}
	case "DeleteSnapshot":
		if r, ok := request.(interface{ GetSnapshotId() string }); ok {
			return "snapshot " + r.GetSnapshotId()
		}
	case "DeleteVolumeGroupSnapshot":
		if r, ok := request.(interface{ GetGroupSnapshotId() string }); ok {
			return "group snapshot " + r.GetGroupSnapshotId()
		}
	case "DeleteVolume", "ControllerExpandVolume", "ControllerModifyVolume", "NodeStageVolume", "NodeUnstageVolume", "NodeExpandVolume",
		"ControllerPublishVolume", "ControllerUnpublishVolume", "NodePublishVolume", "NodeUnpublishVolume":
		return volumeKey(request)
	}
	return ""
}

func volumeKey(request any) string {
	r, ok := request.(interface{ GetVolumeId() string })
	if !ok || r.GetVolumeId() == "" {
		return "" // the driver refuses it
	}
	parts := []string{"volume " + r.GetVolumeId()}
	if on, ok := request.(interface{ GetNodeId() string }); ok {
		parts = append(parts, "node "+on.GetNodeId())
	}
	if at, ok := request.(interface{ GetTargetPath() string }); ok {
		parts = append(parts, "path "+at.GetTargetPath())
	}
	return strings.Join(parts, ", ")
}
