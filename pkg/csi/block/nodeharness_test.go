// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package block_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi"
	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
	"github.com/oracle/oci-cloud-controller-manager/pkg/host"
)

const (
	nodeName   = "node-1"
	nodeVolume = "ocid1.volume.oc1.phx.a"
)

// machine is a host that writes down what it is asked for, and answers what a test says.
type machine struct {
	mu        sync.Mutex
	staged    []host.StageRequest
	published []host.PublishRequest
	attached  []host.Attached
	err       error
}

func (m *machine) Stage(_ context.Context, r host.StageRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.staged = append(m.staged, r)
	return m.err
}

func (m *machine) Publish(_ context.Context, r host.PublishRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.published = append(m.published, r)
	return m.err
}

func (m *machine) Unstage(context.Context, string, string) error   { return m.err }
func (m *machine) Unpublish(context.Context, string, string) error { return m.err }
func (m *machine) Fits(string, string) error                       { return nil }
func (m *machine) Attached() ([]host.Attached, error)              { return m.attached, nil }

func (m *machine) Grow(_ context.Context, _, _ string, size int64) (int64, error) { return size, m.err }
func (m *machine) Stats(context.Context, string) (host.Usage, error)              { return host.Usage{}, m.err }

// labels is an API that knows these labels of the node.
func labels(keysAndValues ...string) func(context.Context) (map[string]string, error) {
	out := map[string]string{}
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		out[keysAndValues[i]] = keysAndValues[i+1]
	}
	return func(context.Context) (map[string]string, error) { return out, nil }
}

// nodeOptions are those of a node with a zone and nothing else.
func nodeOptions(h block.Host) block.NodeOptions {
	return block.NodeOptions{
		NodeName:       nodeName,
		Host:           h,
		Labels:         labels("topology.kubernetes.io/zone", "PHX-AD-1", "node.kubernetes.io/instance-type", "VM.Standard.E5.Flex"),
		Metadata:       func(context.Context) (block.Instance, error) { return block.Instance{}, net.ErrClosed },
		OwnAttachments: func(context.Context) ([]map[string]string, error) { return nil, nil },
	}
}

// serveNode serves the node service as the binary does, and connects.
func serveNode(t *testing.T, o block.NodeOptions) spec.NodeClient {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "csi.sock")
	server, err := csi.NewServer(csi.Options{
		Driver: block.DefaultName, Version: block.Version, Endpoint: "unix://" + socket,
		Plugin: block.NodePluginCapabilities(), Code: block.Code, Node: block.NewNode(o),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return spec.NewNodeClient(conn)
}

// capability is one to mount; the changes are made to it.
func capability(changes ...func(*spec.VolumeCapability)) *spec.VolumeCapability {
	c := &spec.VolumeCapability{
		AccessType: &spec.VolumeCapability_Mount{Mount: &spec.VolumeCapability_MountVolume{}},
		AccessMode: &spec.VolumeCapability_AccessMode{Mode: spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
	for _, f := range changes {
		f(c)
	}
	return c
}

func raw(c *spec.VolumeCapability) {
	c.AccessType = &spec.VolumeCapability_Block{Block: &spec.VolumeCapability_BlockVolume{}}
}

func mode(m spec.VolumeCapability_AccessMode_Mode) func(*spec.VolumeCapability) {
	return func(c *spec.VolumeCapability) { c.AccessMode.Mode = m }
}

func fsType(name string) func(*spec.VolumeCapability) {
	return func(c *spec.VolumeCapability) { c.GetMount().FsType = name }
}

// refusedWith fails the test if an error has not this code, or its text lacks something.
func refusedWith(t *testing.T, err error, code codes.Code, says ...string) {
	t.Helper()
	if status.Code(err) != code {
		t.Fatalf("error %v, want %s", err, code)
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
}

// during is a context that ends soon.
func during(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
