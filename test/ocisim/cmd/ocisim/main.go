// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command ocisim runs a simulated OCI region that programs built on an OCI SDK use unchanged.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/oracle/oci-cloud-controller-manager/pkg/version"
)

const description = `ocisim is a simulated Oracle Cloud Infrastructure region: identity, compute, networking, load balancers, instance
metadata and instance principals, over TLS and with verified request signatures.

Programs built on an OCI SDK use it as they are. "ocisim serve" starts it and prints the environment variables that
point a program at it; "ocisim env" prints them again, for a shell:

    ocisim serve --seed test/ocisim/seeds/demo.yaml &
    eval "$(ocisim env --user demo)"
    my-program

Nothing is forwarded to the real cloud.`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ocisim:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "ocisim",
		Short:         "A simulated OCI region for unmodified SDK programs",
		Long:          description,
		Version:       version.Get().String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(serveCommand(), envCommand(), checkCommand())
	return root
}
