// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package block_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
	"github.com/oracle/oci-cloud-controller-manager/pkg/host"
)

var errNoRoute = errors.New("no route to host")

// TestTopologyOfANode: C087. The new label goes before the legacy one, and both before instance metadata; no value is ever empty.
func TestTopologyOfANode(t *testing.T) {
	metadata := block.Instance{AvailabilityDomain: "zkJl:PHX-AD-2", Shape: "VM.Standard.E5.Flex"}
	zones := func(zone string, more ...string) map[string]string {
		out := map[string]string{"topology.kubernetes.io/zone": zone, "failure-domain.beta.kubernetes.io/zone": zone}
		return with(out, more)
	}
	for name, c := range map[string]struct {
		labels   []string
		forbid   bool
		metadata block.Instance
		want     map[string]string
	}{
		"new label":            {labels: []string{"topology.kubernetes.io/zone", "PHX-AD-1", "failure-domain.beta.kubernetes.io/zone", "X"}, metadata: metadata, want: zones("PHX-AD-1")},
		"legacy label":         {labels: []string{"topology.kubernetes.io/zone", "", "failure-domain.beta.kubernetes.io/zone", "PHX-AD-1"}, metadata: metadata, want: zones("PHX-AD-1")},
		"no label":             {metadata: metadata, want: zones("PHX-AD-2")},
		"no right":             {forbid: true, metadata: metadata, want: zones("PHX-AD-2")},
		"IPv6 alone":           {labels: []string{"topology.kubernetes.io/zone", "PHX-AD-1", "csi-ipv6-full-ad-name", "zkJl.PHX-AD-1", "oci.oraclecloud.com/ip-family-ipv6", "true"}, want: zones("PHX-AD-1", "csi-ipv6-full-ad-name", "zkJl.PHX-AD-1")},
		"IPv6 alone, no label": {labels: []string{"oci.oraclecloud.com/ip-family-ipv6", "true"}, metadata: metadata, want: zones("PHX-AD-2", "csi-ipv6-full-ad-name", "zkJl.PHX-AD-2")},
		"both families":        {labels: []string{"topology.kubernetes.io/zone", "PHX-AD-1", "csi-ipv6-full-ad-name", "zkJl.PHX-AD-1", "oci.oraclecloud.com/ip-family-ipv6", "true", "oci.oraclecloud.com/ip-family-ipv4", "true"}, want: zones("PHX-AD-1")},
	} {
		t.Run(name, func(t *testing.T) {
			o := nodeOptions(&machine{})
			if o.Labels = labels(c.labels...); c.forbid {
				o.Labels = func(context.Context) (map[string]string, error) {
					return nil, fmt.Errorf("%w: no", block.ErrLabelsForbidden)
				}
			}
			o.Metadata = func(context.Context) (block.Instance, error) { return c.metadata, nil }
			got, err := block.NewNode(o).NodeGetInfo(during(t, time.Second), &spec.NodeGetInfoRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if segments := got.GetAccessibleTopology().GetSegments(); !maps.Equal(segments, c.want) || got.GetNodeId() != nodeName {
				t.Errorf("node %q at %v, want %v", got.GetNodeId(), segments, c.want)
			}
		})
	}
}

// TestLabelThatComesLate: C087. The API server is away for two minutes, then the label is not there for three, and instance metadata
// does not answer. Each call is a temporary error that says what is waited for, in time for the kubelet to hear it, until the label is there.
func TestLabelThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		o := nodeOptions(&machine{})
		o.Labels = func(context.Context) (map[string]string, error) {
			switch up := time.Since(began); {
			case up < 2*time.Minute:
				return nil, errNoRoute
			case up < 5*time.Minute:
				return map[string]string{"topology.kubernetes.io/zone": ""}, nil
			}
			return map[string]string{"topology.kubernetes.io/zone": "PHX-AD-1"}, nil
		}
		o.Metadata = func(ctx context.Context) (block.Instance, error) {
			select {
			case <-time.After(5 * time.Second):
			case <-ctx.Done():
			}
			return block.Instance{}, errors.New("metadata: timeout")
		}
		n, said := block.NewNode(o), map[string]bool{}
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			asked := time.Now()
			info, err := n.NodeGetInfo(ctx, &spec.NodeGetInfoRequest{})
			late := ctx.Err() != nil
			cancel()
			if err == nil {
				if zone := info.GetAccessibleTopology().GetSegments()["topology.kubernetes.io/zone"]; zone != "PHX-AD-1" {
					t.Errorf("zone %q", zone)
				}
				break
			}
			if code := block.Code(err); code != codes.Unavailable || late {
				t.Fatalf("code %s after %s: %v", code, time.Since(asked), err)
			}
			for _, text := range []string{"no route to host", "topology.kubernetes.io/zone", "metadata: timeout"} {
				said[text] = said[text] || strings.Contains(err.Error(), text)
			}
		}
		if up := time.Since(began); up > 5*time.Minute+10*time.Second {
			t.Errorf("an answer after %s only", up)
		}
		if len(said) != 3 || !said["no route to host"] || !said["topology.kubernetes.io/zone"] || !said["metadata: timeout"] {
			t.Errorf("said %v", said)
		}
	})
}

// TestMetadataIsAskedUntilItAnswers: and then not again.
func TestMetadataIsAskedUntilItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, asked := nodeOptions(&machine{}), 0
		o.Labels = labels()
		o.Metadata = func(context.Context) (block.Instance, error) {
			switch asked++; asked {
			case 1:
				return block.Instance{}, errNoRoute
			case 2:
				return block.Instance{}, nil // an answer without content
			}
			return block.Instance{AvailabilityDomain: "zkJl:PHX-AD-1"}, nil
		}
		n := block.NewNode(o)
		for range 3 {
			if _, err := n.NodeGetInfo(t.Context(), &spec.NodeGetInfoRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		if asked != 3 {
			t.Errorf("asked %d times", asked)
		}
	})
}

// TestHowManyVolumes: C094. By flag, by shape and type, less what others have attached, and never 0, which would mean no limit.
func TestHowManyVolumes(t *testing.T) {
	device := func(letter string) host.Attached { return host.Attached{Device: "/dev/oracleoci/oraclevd" + letter} }
	three := []host.Attached{device("b"), {IQN: testIQN}, device("d")}
	many := make([]host.Attached, 40)
	for i := range many {
		many[i] = device(string(rune('a' + i)))
	}
	for name, c := range map[string]struct {
		shape    string
		change   func(*block.NodeOptions)
		attached []host.Attached
		own      []map[string]string
		ownErr   error
		want     int64
	}{
		"virtual machine":                    {shape: "VM.Standard.E5.Flex", want: 32},
		"bare metal":                         {shape: "BM.Standard.E5.192", want: 32},
		"shape not known":                    {want: 32},
		"virtual machine, paravirtualized":   {shape: "VM.Standard.E5.Flex", change: func(o *block.NodeOptions) { o.ParavirtualizedLimit = true }, want: 15},
		"bare metal, paravirtualized":        {shape: "BM.Standard.E5.192", change: func(o *block.NodeOptions) { o.ParavirtualizedLimit = true }, want: 32},
		"by flag":                            {shape: "VM.Standard.E5.Flex", change: func(o *block.NodeOptions) { o.MaxVolumes = 12 }, attached: three, want: 12},
		"three of others":                    {attached: three, want: 29},
		"one of ours by its path":            {attached: three, own: []map[string]string{{"device": "/dev/oracleoci/oraclevdb"}}, want: 30},
		"one of ours by its target":          {attached: three, own: []map[string]string{{"iscci_iqn": testIQN, "device": "/dev/oracleoci/oraclevdz"}}, want: 30},
		"one on its way":                     {attached: three, own: []map[string]string{nil}, want: 30},
		"more on their way than there are":   {attached: three, own: []map[string]string{nil, nil, nil, nil}, want: 32},
		"ours that are not on the machine":   {own: []map[string]string{{"iscci_iqn": testIQN}}, want: 32},
		"it is not known which are ours":     {attached: three, ownErr: errNoRoute, want: 32},
		"as many of others as there can be":  {attached: many, want: 1},
		"three of others, paravirtualized 2": {attached: three, change: func(o *block.NodeOptions) { o.ParavirtualizedLimit = true }, want: 12},
	} {
		t.Run(name, func(t *testing.T) {
			o := nodeOptions(&machine{attached: c.attached})
			o.Labels = labels("topology.kubernetes.io/zone", "PHX-AD-1", "node.kubernetes.io/instance-type", c.shape)
			o.OwnAttachments = func(context.Context) ([]map[string]string, error) { return c.own, c.ownErr }
			if c.change != nil {
				c.change(&o)
			}
			info, err := block.NewNode(o).NodeGetInfo(t.Context(), &spec.NodeGetInfoRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if got := info.GetMaxVolumesPerNode(); got != c.want {
				t.Errorf("%d volumes, want %d", got, c.want)
			}
		})
	}
}

// TestShapeFromMetadata: C094. Where the node has no label of its shape.
func TestShapeFromMetadata(t *testing.T) {
	o := nodeOptions(&machine{})
	o.Labels = labels("topology.kubernetes.io/zone", "PHX-AD-1")
	o.Metadata = func(context.Context) (block.Instance, error) {
		return block.Instance{AvailabilityDomain: "zkJl:PHX-AD-1", Shape: "BM.Standard.E5.192"}, nil
	}
	o.ParavirtualizedLimit = true
	info, err := block.NewNode(o).NodeGetInfo(t.Context(), &spec.NodeGetInfoRequest{})
	if err != nil || info.GetMaxVolumesPerNode() != 32 {
		t.Errorf("%d volumes: %v", info.GetMaxVolumesPerNode(), err)
	}
}

// TestOwnAttachmentsAreNotReadEachTime: C094. The kubelet asks every few minutes, on every node. What is known is enough as long as
// nothing else appears, and is not old.
func TestOwnAttachmentsAreNotReadEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, reads := &machine{attached: []host.Attached{{IQN: testIQN}}}, 0
		o := nodeOptions(m)
		o.OwnAttachments = func(context.Context) ([]map[string]string, error) {
			reads++
			return []map[string]string{{"iscci_iqn": testIQN}}, nil
		}
		n := block.NewNode(o)
		ask := func(volumes int64, want int) {
			t.Helper()
			info, err := n.NodeGetInfo(t.Context(), &spec.NodeGetInfoRequest{})
			if err != nil || info.GetMaxVolumesPerNode() != volumes || reads != want {
				t.Errorf("%d volumes after %d reads: %v", info.GetMaxVolumesPerNode(), reads, err)
			}
		}
		ask(32, 1)
		time.Sleep(5 * time.Minute)
		ask(32, 1)
		time.Sleep(6 * time.Minute)
		ask(32, 2)
		m.attached = append(m.attached, host.Attached{Device: "/dev/oracleoci/oraclevdb"})
		ask(31, 3)
	})
}
