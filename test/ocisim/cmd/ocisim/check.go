// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server/adminclient"
)

// checkFlags are the flags of "ocisim check".
type checkFlags struct {
	admin      string
	before     string
	principals []string
	cluster    string
	owners     []string
	former     []string
	names      []string
	types      []string
	writes     []string
	expected   []string
	others     bool
	settled    bool
	quiet      uint64
	budgets    []string
	logs       []string
	secrets    []string
	output     string
}

// errFindings ends "ocisim check" with an error after the report was printed.
var errFindings = errors.New("the check found something")

func checkCommand() *cobra.Command {
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say whether a program has left the region as it should be",
		Long: `Ask a running ocisim whether a program has left the region as it should be, and print a report:

  objects of the program without a living owner, left behind, half made or failed; two objects with one mark;
  changes of what is not the program's (with --before); writes where it may not write (--may-write), or where nothing was
  left to do (--quiet-since); more calls than allowed (--budget); secrets in its logs (--log, --secret-file).

The program's objects are those with the freeform tags oci-k8s-cluster and oci-k8s-owner, those with a name that --name
describes, and those that a --principal created; of security lists, the rules with the description "k8s CLUSTER". The exit code is 1 if anything was found.`,
		Example: `  curl -s http://127.0.0.1:18080/state > before.json
  my-program
  ocisim check --before before.json --principal ocid1.user.oc1..… --owner 6c4e8cf6-… --budget CreateLoadBalancer=1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runCheck(cmd.Context(), cmd.OutOrStdout(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.admin, "admin", defaultAdmin, "address of the admin API")
	flags.StringVar(&f.before, "before", "", "file with the answer of GET /state from before; what is not the program's must be as it was")
	flags.StringSliceVar(&f.principals, "principal", nil, "OCIDs of the program's users or instances; everybody if none is given")
	flags.StringVar(&f.cluster, "cluster", "", "value of the tag oci-k8s-cluster; any if empty")
	flags.StringSliceVar(&f.owners, "owner", nil,
		"owners that still exist: values of the tag oci-k8s-owner, such as UIDs of Services and names of volumes, or OCIDs")
	flags.StringSliceVar(&f.former, "former", nil, "owners that do not exist any more; by them rules and objects without tags are known as the program's")
	flags.StringArrayVar(&f.names, "name", nil, "regular expression for display names of the program's objects without tags; its first group is the owner")
	flags.StringSliceVar(&f.types, "type", nil, "types, as in the answer of GET /state, of which everything is the program's")
	flags.StringSliceVar(&f.writes, "may-write", nil, "services and operations that the program may write to; all if none is given")
	flags.StringSliceVar(&f.expected, "expect", nil, "OCIDs of foreign objects that were changed on purpose")
	flags.BoolVar(&f.others, "others", false, "somebody else changes the region past the API: what no call explains is theirs")
	flags.BoolVar(&f.settled, "settled", false, "nothing of the program should be in the making, changing or being deleted any more")
	flags.Uint64Var(&f.quiet, "quiet-since", 0, "number of the call (seq) after which the program must not write")
	flags.StringSliceVar(&f.budgets, "budget", nil, "OPERATION=N: at most N calls; OPERATION may be a service, or *")
	flags.StringArrayVar(&f.logs, "log", nil, "log file of the program")
	flags.StringArrayVar(&f.secrets, "secret-file", nil, "file with a secret, such as a private key, that must not stand in a log")
	flags.StringVarP(&f.output, "output", "o", "text", "text or json")
	return cmd
}

func runCheck(ctx context.Context, out io.Writer, f *checkFlags) error {
	q, err := f.question()
	if err != nil {
		return err
	}
	report, err := oracle.Check(ctx, adminclient.New("http://"+f.admin), q)
	if err != nil {
		return fmt.Errorf("ask the ocisim at %s (is it running?): %w", f.admin, err)
	}
	text := []byte(report.String())
	if f.output == "json" {
		if text, err = report.JSON(); err != nil {
			return err
		}
		text = append(text, '\n')
	}
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if report.Err() != nil {
		return errFindings
	}
	return nil
}

var (
	errOutput = errors.New("want text or json")
	errBudget = errors.New("want OPERATION=N")
)

// question reads what the flags name.
func (f *checkFlags) question() (oracle.Question, error) {
	q := oracle.Question{
		Us:        oracle.Us{Principals: f.principals, Cluster: f.cluster, Owners: f.owners, Former: f.former, Types: f.types, Writes: f.writes},
		OthersAct: f.others,
		Settled:   f.settled,
	}
	if f.output != "text" && f.output != "json" {
		return q, fmt.Errorf("--output %s: %w", f.output, errOutput)
	}
	for _, expression := range f.names {
		compiled, err := regexp.Compile(expression)
		if err != nil {
			return q, fmt.Errorf("--name: %w", err)
		}
		q.Us.Names = append(q.Us.Names, compiled)
	}
	for _, id := range f.expected {
		q.Expected = append(q.Expected, oracle.Expectation{Resource: id})
	}
	if f.quiet > 0 {
		q.Quiet = []oracle.Window{{From: f.quiet}}
	}
	for _, budget := range f.budgets {
		operation, number, ok := strings.Cut(budget, "=")
		most, err := strconv.Atoi(number)
		if !ok || err != nil || most < 0 {
			return q, fmt.Errorf("--budget %s: %w", budget, errBudget)
		}
		q.Budgets = append(q.Budgets, oracle.Budget{Operation: operation, Most: most})
	}
	return q, f.readFiles(&q)
}

func (f *checkFlags) readFiles(q *oracle.Question) error {
	if f.before != "" {
		text, err := os.ReadFile(f.before)
		if err != nil {
			return fmt.Errorf("--before: %w", err)
		}
		q.Before = text
	}
	for _, path := range f.logs {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("--log: %w", err)
		}
		q.Logs = append(q.Logs, oracle.Log{Name: path, Text: string(text)})
	}
	for _, path := range f.secrets {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("--secret-file: %w", err)
		}
		q.Secrets = append(q.Secrets, oracle.Secret{Name: path, Value: strings.TrimSpace(string(text))})
	}
	return nil
}
