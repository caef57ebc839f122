// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server/adminclient"
)

// defaultAdmin is where serve puts the admin API and where the other commands look for it.
const defaultAdmin = "127.0.0.1:18080"

func envCommand() *cobra.Command {
	var (
		admin, user, instance string
		noProxy               []string
	)
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print the environment that points a program at a running ocisim",
		Long: `Print export lines for the environment of a program, as asked from a running ocisim.

Without --user the program has to bring its own way to authenticate; instance principals need no more than these lines.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client := adminclient.New("http://" + admin)
			lines, err := client.Env(cmd.Context(), adminclient.EnvRequest{User: user, Instance: instance, NoProxy: noProxy})
			if err != nil {
				return fmt.Errorf("ask the ocisim at %s (is it running?): %w", admin, err)
			}
			return printExports(cmd.OutOrStdout(), "", lines)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&admin, "admin", defaultAdmin, "address of the admin API")
	flags.StringVar(&user, "user", "", "act as this user; it is made if it does not exist")
	flags.StringVar(&instance, "instance", "", "run on this instance (OCID or display name); default is the simulator's")
	flags.StringSliceVar(&noProxy, "no-proxy", nil, "hosts, domains and networks to reach directly, such as the Kubernetes API server")
	return cmd
}

// printExports writes lines of the form NAME=value for a POSIX shell.
func printExports(w io.Writer, indent string, lines []string) error {
	for _, line := range lines {
		name, value, _ := strings.Cut(line, "=")
		if _, err := fmt.Fprintf(w, "%sexport %s=%s\n", indent, name, shellQuote(value)); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

// shellQuote quotes a word where a POSIX shell would not take it as it is.
func shellQuote(word string) string {
	plain := func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%", r)
	}
	if word != "" && strings.IndexFunc(word, plain) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
