// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package block

import (
	"context"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/host"
)

// shapeLimit is how many volumes can be attached to an instance of some shapes, beside the boot volume.
type shapeLimit struct {
	prefix                 string // of the names of the shapes
	iscsi, paravirtualized int
}

// shapeLimits is the table of shapes; the first line that fits counts. The service attaches 32 volumes to an instance, whatever its
// shape. Of paravirtualized ones, instances of virtual machines were seen to have 16 at most, the boot volume among them; bare
// metal has none at all, so that its volumes are iSCSI's.
func shapeLimits() []shapeLimit {
	return []shapeLimit{
		{prefix: "BM.", iscsi: 32, paravirtualized: 32},
		{prefix: "", iscsi: 32, paravirtualized: 15},
	}
}

// ownAge is for how long it is remembered which volumes are ours.
const ownAge = 10 * time.Minute

// limitOf is how many volumes an instance of a shape can have.
func limitOf(shape string, paravirtualized bool) int {
	for _, l := range shapeLimits() {
		if !strings.HasPrefix(shape, l.prefix) {
			continue
		}
		if paravirtualized {
			return l.paravirtualized
		}
		return l.iscsi
	}
	return 0
}

// maxVolumes is how many volumes of this driver the node can have. The scheduler subtracts those that it has; what others have
// attached is subtracted here. It is never 0, which would mean no limit.
func (n *NodeServer) maxVolumes(ctx context.Context, shape string) int {
	if n.options.MaxVolumes > 0 {
		return n.options.MaxVolumes
	}
	return max(1, limitOf(shape, n.options.ParavirtualizedLimit)-n.foreign(ctx))
}

// foreign counts the volumes on the machine that are no VolumeAttachments of this driver. What is not known counts as ours: the
// scheduler may then choose this node in vain, which an attachment that is refused tells.
func (n *NodeServer) foreign(ctx context.Context) int {
	logger := klog.FromContext(ctx)
	attached, err := n.options.Host.Attached()
	if err != nil {
		logger.Error(err, "Volumes of others are not subtracted from the limit of the node: they cannot be seen")
		return 0
	}
	if len(attached) == 0 {
		return 0
	}
	if n.allRemembered(attached) {
		return 0
	}
	own, err := n.options.OwnAttachments(ctx)
	if err != nil {
		logger.Error(err, "Volumes of others are not subtracted from the limit of the node: it is not known which are ours")
		return 0
	}
	n.mu.Lock()
	n.own, n.ownAt = own, time.Now()
	n.mu.Unlock()
	count := strangers(attached, own)
	for _, c := range own {
		if len(c) == 0 { // on its way; it may be any of them
			count--
		}
	}
	if count = max(0, count); count > 0 {
		logger.Info("Volumes of others are subtracted from the limit of the node", "count", count)
	}
	return count
}

// allRemembered says whether all volumes on the machine are ours, going by what the API has told some time ago. The kubelet asks every
// few minutes, on every node, and on most of them nothing but our volumes is attached.
func (n *NodeServer) allRemembered(attached []host.Attached) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(n.ownAt) < ownAge && strangers(attached, n.own) == 0
}

// strangers counts the volumes that none of the publish contexts is about.
func strangers(attached []host.Attached, own []map[string]string) int {
	count := 0
	for _, a := range attached {
		if !ours(a, own) {
			count++
		}
	}
	return count
}

// ours says whether a volume on the machine is that of one of the publish contexts.
func ours(a host.Attached, own []map[string]string) bool {
	for _, c := range own {
		if a.Device != "" && a.Device == c[ContextDevice] || a.IQN != "" && a.IQN == c[ContextIQN] {
			return true
		}
	}
	return false
}
