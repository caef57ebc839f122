// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	framework "k8s.io/cloud-provider"
	ccmconfig "k8s.io/cloud-provider/app/config"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/cmd/internal/connect"
	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/pkg/podcidr"
)

// identityTimeout bounds the wait for the API server to tell the cluster's identity.
const identityTimeout = 2 * time.Minute

// initializeCloud is called by the framework with its configuration. It has no way to return an error.
func (p *process) initializeCloud(c *ccmconfig.CompletedConfig) framework.Interface {
	provider, err := p.newProvider(c)
	if err != nil {
		klog.ErrorS(err, "Could not start")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	p.provider = provider
	return provider
}

// newProvider wires everything together.
func (p *process) newProvider(c *ccmconfig.CompletedConfig) (*cloudprovider.Provider, error) {
	setLogger(config.LogFields(os.Environ()))
	ctx := klog.NewContext(p.context, klog.Background())
	for _, flag := range p.ignored {
		klog.FromContext(ctx).Info("Flag without effect", "flag", flag)
	}
	if err := p.completeConfig(ctx); err != nil {
		return nil, err
	}
	notices := p.configNotices(ctx)
	identityCtx, cancel := context.WithTimeout(ctx, identityTimeout)
	defer cancel()
	clusterID, more, err := cloudprovider.ClusterIdentity(identityCtx, c.Client, p.config.ClusterID)
	if err != nil {
		return nil, err
	}
	client, err := connect.New(p.config, clusterID)
	if err != nil {
		return nil, err
	}
	klog.FromContext(ctx).Info("Connecting to OCI", "principal", string(p.config.Principal()), "region", p.config.Auth.Region,
		"compartment", p.config.Compartment, "cluster", clusterID)

	if c.ComponentConfig.KubeCloudShared.UseServiceAccountCredentials {
		own := clientbuilder.SimpleControllerClientBuilder{ClientConfig: c.Kubeconfig}
		c.ClientBuilder = cloudprovider.NewAccounts(c.ClientBuilder, own, p.config.Environment.EnableFlexCIDR)
	}
	election := c.ComponentConfig.Generic.LeaderElection
	p.leadership = &leadership{enabled: election.LeaderElect, namespace: election.ResourceNamespace, name: election.ResourceName, client: c.Client}
	var provider *cloudprovider.Provider
	instances := inventory.New(inventory.Config{
		CompartmentID: p.config.Compartment,
		VCNID:         p.config.VCN,
		SubnetID:      p.config.LoadBalancer.Subnet1,
		Trim:          cloudprovider.TrimInstance(p.config.NodeLabels.Tags()),
		Report:        func(f inventory.Fallback) { provider.ReportFallback(f) },
	}, client.Compute(), client.Network())
	o := cloudprovider.Options{
		Inventory:       instances,
		CompartmentID:   p.config.Compartment,
		IPv6SingleStack: p.config.Environment.IPv6Only(),
		TagLabels:       p.config.NodeLabels.Tags(),
		NewNodeGrace:    p.flags.newNodeGrace,
		ServiceResync:   p.flags.serviceResync,
		StatusPeriod:    c.ComponentConfig.NodeStatusUpdateFrequency.Duration,
		SecretPoll:      p.flags.secretPoll,
		Process:         processObject(election.ResourceNamespace, election.ResourceName),
		Notices:         append(notices, more...),
		Leading:         p.leadership.began,
	}
	if p.config.Environment.EnableFlexCIDR {
		o.PodCIDRs = podcidr.New(client.Network(), clusterID)
	}
	if o.InstanceTagging, err = instanceTagging(p.config, client); err != nil {
		return nil, err
	}
	if !p.config.LoadBalancer.Disabled {
		o.NewBalancers = func(s *cloudprovider.ServiceSupport) cloudprovider.Balancers {
			return newBalancers(p.config, clusterID, client, instances, s, p.flags.keepAnonymous)
		}
	}
	provider = cloudprovider.New(o)
	return provider, nil
}

// instanceTagging says how to tag the instances of OpenShift's nodes; nil if that is switched off.
func instanceTagging(c *config.Config, client *oci.Client) (*cloudprovider.InstanceTagging, error) {
	if c.Environment.DisableInstanceTagging {
		return nil, nil
	}
	selector, err := labels.Parse(c.Environment.OpenShiftNodeLabel)
	if err != nil {
		return nil, fmt.Errorf("environment variable OPENSHIFT_NODE_LABEL_ID: %w", err)
	}
	return &cloudprovider.InstanceTagging{Cloud: client.Compute(), Nodes: selector, Tags: cloudprovider.OpenShiftTags(c.Tags.Common.Defined)}, nil
}

// completeConfig asks instance metadata for what the config leaves out, and checks that all is there now.
func (p *process) completeConfig(ctx context.Context) error {
	report, err := connect.Complete(ctx, p.config)
	p.report = p.report.Merge(report)
	return err
}

// configNotices tells what is questionable in the cloud config: in the log, as a metric, and as events.
func (p *process) configNotices(ctx context.Context) []cloudprovider.Notice {
	p.report = p.report.Merge(config.WithoutEffect(p.config))
	p.report.Log(ctx)
	warnings := p.report.Warnings()
	cloudprovider.SetConfigWarnings(len(warnings))
	var notices []cloudprovider.Notice
	for _, w := range warnings {
		notices = append(notices, cloudprovider.Notice{Reason: "ConfigWarning", Message: w.Error()})
	}
	return notices
}

// processObject is the object of events about the process: the lease, which every installation has, whatever else its
// manifest is made of.
func processObject(namespace, name string) *v1.ObjectReference {
	return &v1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: namespace, Name: name}
}

// newBalancers makes the part that looks after load balancers.
func newBalancers(c *config.Config, clusterID string, client *oci.Client, instances *inventory.Inventory, s *cloudprovider.ServiceSupport, keepAnonymous bool) *loadbalancer.Manager {
	cfg := loadbalancer.Config{
		ClusterID:         clusterID,
		CompartmentID:     c.Compartment,
		Subnet1:           c.LoadBalancer.Subnet1,
		Subnet2:           c.LoadBalancer.Subnet2,
		DisplayNamePrefix: c.Environment.LoadBalancerPrefix,
		Tags:              oci.Tags(c.Tags.LoadBalancer),
		RulesLB:           ruleMode(c.LoadBalancer.SecurityListManagementMode),
		RulesNLB:          ruleMode(c.NetworkLoadBalancer.SecurityListManagementMode),
		SecurityLists:     c.LoadBalancer.SecurityLists,
		OperationTimeout:  cloudprovider.OperationTimeout,
	}
	rules := firewall.New(firewall.Config{
		ClusterID:     clusterID,
		KeepAnonymous: keepAnonymous,
		Owners: func() []firewall.Owner {
			services, known := s.Services()
			return loadbalancer.RuleOwners(services, known, cfg)
		},
	}, client.Network(), client.Network())
	return loadbalancer.New(cfg, loadbalancer.Deps{
		LB:         client.LoadBalancers(),
		NLB:        client.NetworkLoadBalancers(),
		Subnets:    client.Network(),
		PublicIPs:  client.Network(),
		Events:     s.Event,
		Records:    s,
		Conditions: s,
		Identities: s.Identities(func(account string, token func() (string, error)) (*loadbalancer.Identity, error) {
			return connectAs(c, clusterID, account, token)
		}),
		Fresh:    s.Fresh,
		Nodes:    s.Nodes,
		Secret:   s.Secret,
		Gone:     instances.Terminated,
		Firewall: loadbalancer.Firewall{Rules: rules, Lists: client.Network(), NodeSubnets: s.NodeSubnets},
	})
}

// ruleMode is the mode of security rules that the config sets; empty if it does not.
func ruleMode(m config.SecurityListMode) loadbalancer.RuleMode {
	return map[config.SecurityListMode]loadbalancer.RuleMode{
		config.ModeAll: loadbalancer.RulesAll, config.ModeFrontend: loadbalancer.RulesFrontend, config.ModeNone: loadbalancer.RulesNone,
	}[m]
}

// connectAs connects to the OCI API with the workload identity of a ServiceAccount of an enhanced cluster.
func connectAs(c *config.Config, clusterID, account string, token oci.TokenSource) (*loadbalancer.Identity, error) {
	client, err := connect.As(c, clusterID, account, token)
	if err != nil {
		return nil, err
	}
	return &loadbalancer.Identity{LB: client.LoadBalancers(), NLB: client.NetworkLoadBalancers(), PublicIPs: client.Network()}, nil
}
