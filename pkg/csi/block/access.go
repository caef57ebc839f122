// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
)

// access is how a volume is to be used.
type access struct {
	block    bool // a raw block volume
	shared   bool // by several nodes
	readOnly bool
}

// accessOf translates a capability of a request (contract storage.md §2.3).
func accessOf(c *spec.VolumeCapability) (access, error) {
	var a access
	switch {
	case c.GetBlock() != nil:
		a.block = true
	case c.GetMount() == nil:
		return a, status.Error(codes.InvalidArgument, "the request has no volume capability with an access type")
	}
	switch mode := c.GetAccessMode().GetMode(); mode {
	case spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		spec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
		spec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
	case spec.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:
		a.readOnly = true
	case spec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:
		if !a.block {
			return a, status.Error(codes.InvalidArgument,
				"access mode ReadWriteMany needs volumeMode: Block: a file system of a block volume that several nodes write to is destroyed. For shared files use a class of file storage")
		}
		a.shared = true
	case spec.VolumeCapability_AccessMode_UNKNOWN:
		return a, status.Error(codes.InvalidArgument, "the request has no access mode")
	default:
		return a, status.Errorf(codes.InvalidArgument, "access mode %s is not supported: ReadWriteOnce and ReadWriteOncePod are, and ReadWriteMany with volumeMode: Block", mode)
	}
	return a, nil
}

// accessOfAll translates the capabilities of a request, which have to be of one access type.
func accessOfAll(all []*spec.VolumeCapability) (access, error) {
	if len(all) == 0 {
		return access{}, status.Error(codes.InvalidArgument, "the request has no volume capabilities")
	}
	var out access
	for i, c := range all {
		a, err := accessOf(c)
		switch {
		case err != nil:
			return a, err
		case i > 0 && a.block != out.block:
			return a, status.Error(codes.InvalidArgument, "the request wants both a raw block volume and a file system")
		}
		out = access{block: a.block, shared: out.shared || a.shared, readOnly: a.readOnly}
	}
	return out, nil
}
