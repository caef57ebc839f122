// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
)

// metadataWait bounds how long validate-config waits for instance metadata.
const metadataWait = 20 * time.Second

// newValidateConfigCommand returns the sub-command validate-config. It exits with 0 if a start would accept the file
// even with --strict-config, and with 1 after naming every problem.
func newValidateConfigCommand() *cobra.Command { return validateConfigCommand(os.Exit) }

// validateConfigCommand takes the exit so that a test can look at the code. The command ends by it and not by an
// error, because an error would be printed below the problems.
func validateConfigCommand(exit func(code int)) *cobra.Command {
	var (
		path     string
		metadata bool
	)
	cmd := &cobra.Command{
		Use:   "validate-config --cloud-config FILE",
		Short: "Check a cloud config and print what it means",
		Long: `Check a cloud config strictly: unknown and misspelt keys are errors too.

Prints the effective configuration with the origin of each value and with secrets redacted, or else every
problem with its line. Nothing is started and no API is called. The exit code is 0 or 1.`,
		Example: "  oci-cloud-controller-manager validate-config --cloud-config /etc/oci/cloud-provider.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options := config.ValidateOptions{Path: path, Lookup: os.LookupEnv}
			ctx := cmd.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			if metadata {
				environment, _ := config.FromEnviron(os.LookupEnv)
				options.Metadata = config.NewMetadataClient(environment.MetadataBaseURL)
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, metadataWait)
				defer cancel()
			}
			if code := config.ValidateCommand(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr(), options); code != 0 {
				exit(code)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&path, "cloud-config", "", "Path of the cloud config to check.")
	flags.BoolVar(&metadata, "instance-metadata", false, "Ask instance metadata for what the file leaves out, as a start does. Works on an OCI instance only.")
	if err := cmd.MarkFlagRequired("cloud-config"); err != nil {
		panic(err) // only if the flag above is renamed
	}
	return cmd
}
