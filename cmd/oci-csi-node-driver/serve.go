// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/cmd/internal/health"
	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
	"github.com/oracle/oci-cloud-controller-manager/pkg/csi"
	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/kube"
	"github.com/oracle/oci-cloud-controller-manager/pkg/host"
	"github.com/oracle/oci-cloud-controller-manager/pkg/version"
)

// readTimeout bounds one read of the Kubernetes API. Who needs the answer asks again.
const readTimeout = 10 * time.Second

// environment is that of the process.
type environment struct {
	lookup func(string) (string, bool)
	all    []string
}

// serve wires everything together and serves until ctx ends.
func (o *options) serve(ctx context.Context, env environment) error {
	logger := klog.Background()
	for name, value := range config.LogFields(env.all) {
		logger = logger.WithValues(name, value)
	}
	ctx = klog.NewContext(ctx, logger)
	known, report := config.FromEnviron(env.lookup)
	report.Log(ctx)

	driver := known.BlockVolumeDriver
	logger.Info("Starting", "program", programName, "version", version.Get().String(), "driver", driver, "node", o.nodeID)
	for _, text := range o.withoutEffect(known.LustreNode) {
		logger.Info("Without effect", "what", text)
	}
	machine, err := host.New(host.Options{Paths: host.HostPaths(o.hostRoot), StateDir: o.stateDir})
	if err != nil {
		return fmt.Errorf("--host-root=%s: %w", o.hostRoot, err)
	}
	for _, lack := range machine.Lacks() {
		logger.Info("The node lacks something", "without", lack.Without, "what", lack.Err.Error())
	}
	reader, err := o.reader(driver)
	if err != nil {
		return err
	}
	go noteTuning(ctx, reader)
	server, err := csi.NewServer(csi.Options{
		Driver: driver, Version: block.Version, Endpoint: o.endpoint, Plugin: block.NodePluginCapabilities(), Code: block.Code,
		Node: block.NewNode(o.nodeOptions(machine, reader, config.NewMetadataClient(known.MetadataBaseURL))),
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Run(ctx) })
	group.Go(func() error { return health.Serve(ctx, o.httpEndpoint, func() bool { return true }) })
	return group.Wait()
}

// reader connects to the Kubernetes API. It makes no call: the API server may come up later.
func (o *options) reader(driver string) (*kube.NodeReader, error) {
	rest, err := clientcmd.BuildConfigFromFlags(o.master, o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("access to the Kubernetes API: %w", err)
	}
	rest.Timeout = readTimeout
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return nil, fmt.Errorf("access to the Kubernetes API: %w", err)
	}
	return kube.NewNodeReader(client, driver, o.nodeID), nil
}

// nodeOptions are those of the block volume driver.
func (o *options) nodeOptions(machine *host.Host, reader *kube.NodeReader, metadata *config.MetadataClient) block.NodeOptions {
	return block.NodeOptions{
		NodeName: o.nodeID,
		Host:     machine,
		Labels: func(ctx context.Context) (map[string]string, error) {
			labels, err := reader.Labels(ctx)
			if errors.Is(err, kube.ErrForbidden) {
				return nil, fmt.Errorf("%w: %w", block.ErrLabelsForbidden, err)
			}
			return labels, err
		},
		Metadata: func(ctx context.Context) (block.Instance, error) {
			i, err := metadata.Instance(ctx)
			return block.Instance{AvailabilityDomain: i.AvailabilityDomain, Shape: i.Shape}, err
		},
		OwnAttachments:       reader.Attachments,
		MaxVolumes:           o.maxVolumes,
		ParavirtualizedLimit: o.paravirtualizedLimit,
	}
}

// noteTuning says which keys of the ConfigMap oci-csi-config change nothing, if it is there and may be read.
func noteTuning(ctx context.Context, reader *kube.NodeReader) {
	logger := klog.FromContext(ctx)
	keys, err := reader.Tuning(ctx)
	if err != nil {
		logger.V(4).Info("The ConfigMap kube-system/oci-csi-config is not read", "err", err)
		return
	}
	if slices.Contains(keys, "blockVolume") {
		logger.Info("Without effect", "what", "key blockVolume of the ConfigMap kube-system/oci-csi-config: stale links never hinder a volume")
	}
	if slices.Contains(keys, "lustre") {
		logger.Info("Without effect", "what", "key lustre of the ConfigMap kube-system/oci-csi-config: Lustre is not served by this release")
	}
}
