// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"fmt"
	"maps"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/protosanitizer"
	"google.golang.org/protobuf/proto"
)

// loggable is a message without what the specification marks as secret, and without the secrets in publish contexts, which it does not
// mark: credentials for CHAP.
func loggable(message any) fmt.Stringer {
	switch m := message.(type) {
	case *csi.ControllerPublishVolumeResponse:
		if c, has := redacted(m.GetPublishContext()); has {
			m = proto.CloneOf(m)
			m.PublishContext, message = c, m
		}
	case *csi.NodeStageVolumeRequest:
		if c, has := redacted(m.GetPublishContext()); has {
			m = proto.CloneOf(m)
			m.PublishContext, message = c, m
		}
	case *csi.NodePublishVolumeRequest:
		if c, has := redacted(m.GetPublishContext()); has {
			m = proto.CloneOf(m)
			m.PublishContext, message = c, m
		}
	}
	return protosanitizer.StripSecrets(message)
}

// redacted is a publish context without the values of its secrets; it is false if it has none.
func redacted(c map[string]string) (map[string]string, bool) {
	var out map[string]string
	for key := range c {
		if strings.HasSuffix(strings.ToLower(key), "secret") {
			if out == nil {
				out = maps.Clone(c)
			}
			out[key] = "***stripped***"
		}
	}
	return out, out != nil
}
