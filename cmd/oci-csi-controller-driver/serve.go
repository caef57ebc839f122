// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/cmd/internal/connect"
	"github.com/oracle/oci-cloud-controller-manager/cmd/internal/health"
	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
	"github.com/oracle/oci-cloud-controller-manager/pkg/csi"
	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/kube"
	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/pkg/version"
)

// The budget of calls to the Kubernetes API. An attachment costs one read; a few hundred of them come at once.
const (
	kubeAPIQPS   = 100
	kubeAPIBurst = 200
)

// environment is that of the process.
type environment struct {
	lookup func(string) (string, bool)
	all    []string
}

// get reads a variable; empty if it is not set.
func (e environment) get(name string) string {
	value, _ := e.lookup(name)
	return value
}

// serve wires everything together and serves until ctx ends.
func (o *options) serve(ctx context.Context, env environment) error {
	logger := klog.Background()
	for name, value := range config.LogFields(env.all) {
		logger = logger.WithValues(name, value)
	}
	ctx = klog.NewContext(ctx, logger)
	cfg, err := o.readConfig(ctx, env)
	if err != nil {
		return err
	}
	logger.Info("Starting", "program", programName, "version", version.Get().String(), "driver", cfg.Environment.BlockVolumeDriver)
	for _, text := range o.withoutEffect(cfg.Environment.LustreController) {
		logger.Info("Without effect", "what", text)
	}
	var ready atomic.Bool
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return health.Serve(ctx, o.httpEndpoint, ready.Load) })
	group.Go(func() error {
		server, err := o.newServer(ctx, cfg)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return nil // the process was told to end before it had begun
			}
			return err
		}
		ready.Store(true)
		return server.Run(ctx)
	})
	return group.Wait()
}

// readConfig reads the cloud config, and has instance metadata complete it.
func (o *options) readConfig(ctx context.Context, env environment) (*config.Config, error) {
	path, err := configFile(o.cloudConfig, env.get("CONFIG_YAML_FILENAME"), configPaths())
	if err != nil {
		return nil, err
	}
	cfg, report, err := connect.Read(path, o.strictConfig, env.lookup)
	if err != nil {
		return nil, err
	}
	if _, err := connect.Complete(ctx, cfg); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	report.Merge(config.WithoutEffect(cfg)).Log(ctx)
	klog.FromContext(ctx).Info("Using the cloud config", "path", path)
	return cfg, nil
}

// newServer makes everything that a call needs. It waits for the Kubernetes API.
func (o *options) newServer(ctx context.Context, cfg *config.Config) (*csi.Server, error) {
	kubernetesAPI, err := o.kubernetes()
	if err != nil {
		return nil, err
	}
	driver := cfg.Environment.BlockVolumeDriver
	cluster := kube.NewCluster(kubernetesAPI, driver)
	identity, missing, err := kube.Identity(ctx, kubernetesAPI, cfg.ClusterID)
	if err != nil {
		return nil, err
	}
	if err := cluster.Start(ctx); err != nil {
		return nil, err
	}
	if missing != "" {
		cluster.NoteMissing(ctx, []string{missing},
			"the mark with the cluster's identity on volumes and backups. Without the rule, set clusterId in the cloud config")
	}
	client, err := connect.New(cfg, identity)
	if err != nil {
		return nil, err
	}
	klog.FromContext(ctx).Info("Connecting to OCI", "principal", string(cfg.Principal()), "region", cfg.Auth.Region,
		"compartment", cfg.Compartment, "cluster", identity)
	settings := o.controllerOptions(cfg, newVolumes(cfg, identity, client), cluster)
	if settings.Drafts, err = cluster.Drafts(ctx); err != nil {
		return nil, err
	}
	controller := block.NewController(settings)
	go controller.CollectDrafts(ctx)
	return csi.NewServer(csi.Options{
		Driver: driver, Version: block.Version, Endpoint: o.endpoint, Plugin: block.PluginCapabilities(), Code: block.Code,
		Ready: cluster.Synced, Controller: controller, GroupController: controller,
	})
}

// kubernetes makes a client of the Kubernetes API. It makes no call: the API server may come up later.
func (o *options) kubernetes() (kubernetes.Interface, error) {
	access, err := clientcmd.BuildConfigFromFlags(o.master, o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("access to the Kubernetes API: %w", err)
	}
	access.QPS, access.Burst = kubeAPIQPS, kubeAPIBurst
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(access, programName))
	if err != nil {
		return nil, fmt.Errorf("access to the Kubernetes API: %w", err)
	}
	return client, nil
}

// newVolumes makes the part that looks after volumes in the cloud.
func newVolumes(cfg *config.Config, identity string, client *oci.Client) *blockvolume.Service {
	instances := inventory.New(inventory.Config{CompartmentID: cfg.Compartment, VCNID: cfg.VCN}, client.Compute(), client.Network())
	return blockvolume.New(blockvolume.Config{ClusterID: identity, CompartmentID: cfg.Compartment}, blockvolume.Deps{
		Storage:   client.BlockStorage(),
		Compute:   client.Compute(),
		Domains:   client.Identity(),
		NodeNames: instances.NodeNames,
	})
}

func (o *options) controllerOptions(cfg *config.Config, volumes block.Volumes, cluster block.Cluster) block.ControllerOptions {
	out := block.ControllerOptions{
		Volumes:          volumes,
		Cluster:          cluster,
		Tags:             oci.Tags(cfg.Tags.BlockVolume),
		IPv6SingleStack:  cfg.Environment.IPv6Only(),
		StrictParameters: o.strictParameters,
		PublishedNodes:   o.publishedNodes,
	}
	if cfg.Environment.ResourceAttribution {
		out.CommonTags = oci.Tags(cfg.Tags.Common)
	}
	return out
}
