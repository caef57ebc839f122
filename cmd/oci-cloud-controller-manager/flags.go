// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/term"

	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
)

// Defaults where the framework's are too small for a cluster of some size: there the workers are 1 each and the budget is
// 20 requests per second. They hold wherever a manifest leaves a flag out.
const (
	defaultServiceWorkers   = 32
	defaultNodeWorkers      = 16
	defaultLifecycleWorkers = 8

	// When 500 nodes join at once, they should be initialised within 15 s; each takes four to six requests.
	defaultKubeAPIQPS   = 200
	defaultKubeAPIBurst = 400
)

// frameworkOptions returns the options of the framework with our defaults. They have to be set before the flags are made.
func frameworkOptions() (*options.CloudControllerManagerOptions, error) {
	o, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		return nil, err
	}
	o.KubeCloudShared.CloudProvider.Name = cloudprovider.Name
	o.ServiceController.ConcurrentServiceSyncs = defaultServiceWorkers
	o.NodeController.ConcurrentNodeSyncs = defaultNodeWorkers
	o.NodeLifecycleController.ConcurrentNodeLifecycleSyncs = defaultLifecycleWorkers
	o.Generic.ClientConnection.QPS = defaultKubeAPIQPS
	o.Generic.ClientConnection.Burst = defaultKubeAPIBurst
	return o, nil
}

// ownFlags are the flags that the framework does not have.
type ownFlags struct {
	strictConfig  bool
	serviceResync time.Duration
	newNodeGrace  time.Duration
	keepAnonymous bool
	secretPoll    time.Duration
}

func (f *ownFlags) sets() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	fs := sets.FlagSet("OCI")
	fs.BoolVar(&f.strictConfig, "strict-config", false,
		"Refuse a cloud config with unknown or misspelt keys instead of warning about them.")
	fs.DurationVar(&f.serviceResync, "oci-service-resync-period", cloudprovider.DefaultServiceResync,
		"Period of the pass that looks for load balancers that are missing or were changed by others.")
	fs.DurationVar(&f.newNodeGrace, "oci-new-node-grace-period", cloudprovider.DefaultNewNodeGrace,
		"For how long after its creation a Node is kept although the API does not show its instance.")
	fs.BoolVar(&f.keepAnonymous, "keep-anonymous-rules", true,
		"Keep security rules that the implementation up to v1.35 has made and that no Service needs any more, and report them. They carry no mark; false has them removed.")
	fs.DurationVar(&f.secretPoll, "oci-secret-poll-period", cloudprovider.DefaultSecretPoll,
		"Period in which Secrets with certificates of Services are looked at that the ClusterRole does not allow to watch.")
	return sets
}

func (f *ownFlags) validate() error {
	for name, d := range map[string]time.Duration{
		"oci-service-resync-period": f.serviceResync, "oci-new-node-grace-period": f.newNodeGrace,
		"oci-secret-poll-period": f.secretPoll,
	} {
		if d <= 0 {
			return fmt.Errorf("--%s must be greater than 0, got %s", name, d)
		}
	}
	return nil
}

// meaningless are the framework's flags that change nothing here, and why. They are accepted, since old manifests may
// have them.
func meaningless() map[string]string {
	const (
		routes   = "routes are not managed"
		ipam     = "pod CIDRs are not allocated here"
		webhooks = "there are no webhooks"
	)
	return map[string]string{
		"allow-untagged-cloud":          "instances need no cluster tag",
		"cluster-name":                  "it identifies nothing; see clusterId in the cloud config",
		"external-cloud-volume-plugin":  "there are no in-tree volumes",
		"node-sync-period":              "the framework does not use it any more",
		"allocate-node-cidrs":           ipam,
		"cidr-allocator-type":           ipam,
		"cluster-cidr":                  ipam,
		"configure-cloud-routes":        routes,
		"route-reconciliation-period":   routes,
		"webhooks":                      webhooks,
		"webhook-bind-address":          webhooks,
		"webhook-cert-dir":              webhooks,
		"webhook-disable-http2-serving": webhooks,
		"webhook-secure-port":           webhooks,
		"webhook-tls-cert-file":         webhooks,
		"webhook-tls-cipher-suites":     webhooks,
		"webhook-tls-curve-preferences": webhooks,
		"webhook-tls-min-version":       webhooks,
		"webhook-tls-private-key-file":  webhooks,
		"webhook-tls-sni-cert-key":      webhooks,
	}
}

// hideMeaningless takes flags out of --help. The library's own warning about deprecated ones gives way to ours.
func hideMeaningless(fs *pflag.FlagSet) {
	for name := range meaningless() {
		if f := fs.Lookup(name); f != nil {
			f.Hidden, f.Deprecated = true, ""
		}
	}
}

// ignoredFlags describes the flags on the command line that change nothing, in alphabetical order.
func ignoredFlags(fs *pflag.FlagSet) []string {
	var list []string
	why := meaningless()
	fs.VisitAll(func(f *pflag.Flag) {
		if reason, ok := why[f.Name]; ok && f.Changed {
			list = append(list, fmt.Sprintf("--%s is ignored: %s", f.Name, reason))
		}
	})
	return list
}

// setHelp makes --help show the flags by section, without the hidden ones and without sections that have no other. sections
// names the flags of each section; the flags themselves are those of the command.
func setHelp(command *cobra.Command, sections cliflag.NamedFlagSets) {
	columns, _, _ := term.TerminalSize(command.OutOrStdout())
	usage := func(out io.Writer) {
		fmt.Fprintf(out, "Usage:\n  %s\n", command.UseLine())
		for _, c := range command.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(out, "  %s %s\n      %s\n", command.Name(), c.Use, c.Short)
			}
		}
		visible, rest := visibleFlags(command, sections)
		cliflag.PrintSections(out, visible, columns)
		var global cliflag.NamedFlagSets
		global.FlagSet("global").AddFlagSet(rest)
		cliflag.PrintSections(out, global, columns)
	}
	command.SetUsageFunc(func(c *cobra.Command) error {
		usage(c.OutOrStderr())
		return nil
	})
	command.SetHelpFunc(func(c *cobra.Command, _ []string) {
		fmt.Fprintf(c.OutOrStdout(), "%s\n\n", c.Long)
		usage(c.OutOrStdout())
	})
	plain := &cobra.Command{}
	for _, c := range command.Commands() {
		c.SetHelpFunc(plain.HelpFunc())
		c.SetUsageFunc(plain.UsageFunc())
	}
}

// visibleFlags sorts the visible flags of a command into sections, and returns those of no section besides.
func visibleFlags(command *cobra.Command, sections cliflag.NamedFlagSets) (cliflag.NamedFlagSets, *pflag.FlagSet) {
	var visible cliflag.NamedFlagSets
	placed := map[string]bool{}
	for _, name := range sections.Order {
		sections.FlagSets[name].VisitAll(func(f *pflag.Flag) {
			placed[f.Name] = true
			if f = command.Flags().Lookup(f.Name); f != nil && !f.Hidden {
				visible.FlagSet(name).AddFlag(f)
			}
		})
	}
	rest := pflag.NewFlagSet("rest", pflag.ContinueOnError)
	command.Flags().VisitAll(func(f *pflag.Flag) {
		if !placed[f.Name] && !f.Hidden {
			rest.AddFlag(f)
		}
	})
	return visible, rest
}

// sectionNames returns the framework's flags by section, of options that are of no other use.
func sectionNames(controllers []string, own cliflag.NamedFlagSets) (cliflag.NamedFlagSets, error) {
	o, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		return cliflag.NamedFlagSets{}, err
	}
	sections := o.Flags(controllers, nil, names.CCMControllerAliases(), nil, nil)
	for _, name := range own.Order {
		sections.FlagSet(name).AddFlagSet(own.FlagSets[name])
	}
	return sections, nil
}

// printVersion says what was built.
func printVersion(out io.Writer, program, build string) {
	fmt.Fprintln(out, strings.TrimSpace(program+" "+build))
}
