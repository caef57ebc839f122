// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"

	"github.com/oracle/oci-cloud-controller-manager/cmd/internal/connect"
	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
	"github.com/oracle/oci-cloud-controller-manager/pkg/version"
)

const (
	programName = "oci-cloud-controller-manager"

	description = `The cloud controller manager of Oracle Cloud Infrastructure (OCI) initialises the nodes of a Kubernetes
cluster, removes the Nodes of instances that are gone, and makes load balancers and network load balancers for
Services of type LoadBalancer.`
)

// process is one run of the program.
type process struct {
	context context.Context // ends with the first signal
	flags   ownFlags
	ignored []string // flags that were given and change nothing

	config *config.Config
	report config.Report

	provider   *cloudprovider.Provider
	leadership *leadership
}

// command returns the command line.
func (p *process) command() (*cobra.Command, error) {
	framework, err := frameworkOptions()
	if err != nil {
		return nil, err
	}
	controllers := cloudprovider.Controllers()
	own := p.flags.sets()
	sections, err := sectionNames(slices.Sorted(maps.Keys(controllers)), own)
	if err != nil {
		return nil, err
	}
	command := app.NewCloudControllerManagerCommand(framework, p.initializeCloud, controllers,
		names.CCMControllerAliases(), own, p.context.Done())
	command.Use, command.Long = programName, description
	command.CompletionOptions.DisableDefaultCmd = true
	command.Flags().Lookup("help").Usage = "help for " + programName
	hideMeaningless(command.Flags())
	command.AddCommand(newValidateConfigCommand())
	setHelp(command, sections)

	start := command.RunE
	command.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Lookup("version").Value.String() == "true" {
			printVersion(c.OutOrStdout(), programName, version.Get().String())
			return nil
		}
		if err := p.prepare(c, framework); err != nil {
			return err
		}
		return start(c, args)
	}
	return command, nil
}

// prepare looks at what can be wrong before anything is started, so that it is told plainly.
func (p *process) prepare(c *cobra.Command, framework *options.CloudControllerManagerOptions) error {
	if c.Flags().Lookup("version").Value.String() == "raw" {
		return nil // the framework prints it and exits
	}
	p.ignored = ignoredFlags(c.Flags())
	framework.Webhook, framework.WebhookServing = nil, nil // spares a certificate and a port
	if err := p.flags.validate(); err != nil {
		return err
	}
	cloud := framework.KubeCloudShared.CloudProvider
	if cloud.Name != cloudprovider.Name {
		return fmt.Errorf("--cloud-provider must be %s, got %q", cloudprovider.Name, cloud.Name)
	}
	if cloud.CloudConfigFile == "" {
		return errors.New("--cloud-config is required: the path of the cloud config")
	}
	return p.readConfig(cloud.CloudConfigFile)
}

// readConfig reads the cloud config and the environment, without asking anybody.
func (p *process) readConfig(path string) error {
	var err error
	p.config, p.report, err = connect.Read(path, p.flags.strictConfig, os.LookupEnv)
	return err
}
