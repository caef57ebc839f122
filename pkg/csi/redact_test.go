// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi_test

import (
	"context"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi"
)

// attacher gives publish contexts with credentials, and takes them, or refuses to.
type attacher struct {
	spec.UnimplementedControllerServer
	spec.UnimplementedNodeServer
}

const chapSecret = "open sesame"

func (attacher) ControllerPublishVolume(context.Context, *spec.ControllerPublishVolumeRequest) (*spec.ControllerPublishVolumeResponse, error) {
	return &spec.ControllerPublishVolumeResponse{PublishContext: map[string]string{"chapUser": "ali", "chapSecret": chapSecret}}, nil
}

func (attacher) NodeStageVolume(context.Context, *spec.NodeStageVolumeRequest) (*spec.NodeStageVolumeResponse, error) {
	return nil, status.Error(codes.Unavailable, "not now")
}

func (attacher) NodePublishVolume(context.Context, *spec.NodePublishVolumeRequest) (*spec.NodePublishVolumeResponse, error) {
	return &spec.NodePublishVolumeResponse{}, nil
}

func TestCredentialsInPublishContextsAreNotLogged(t *testing.T) {
	s := serve(t, csi.Options{Controller: attacher{}, Node: attacher{}})
	published, err := s.controller().ControllerPublishVolume(t.Context(), &spec.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: "n"})
	if err != nil || published.GetPublishContext()["chapSecret"] != chapSecret {
		t.Fatalf("the caller got %v: %v", published, err)
	}
	node := spec.NewNodeClient(s.conn)
	_, err = node.NodeStageVolume(t.Context(), &spec.NodeStageVolumeRequest{VolumeId: "v", PublishContext: published.GetPublishContext()})
	if status.Code(err) != codes.Unavailable || status.Convert(err).Message() != "not now" {
		t.Errorf("error %v", err)
	}
	if _, err := node.NodePublishVolume(t.Context(), &spec.NodePublishVolumeRequest{VolumeId: "v", PublishContext: published.GetPublishContext()}); err != nil {
		t.Error(err)
	}
	if log := s.log.String(); strings.Contains(log, chapSecret) || strings.Count(log, "***stripped***") != 3 || !strings.Contains(log, "ali") {
		t.Errorf("the log has secrets, or lacks calls:\n%s", log)
	}
}
