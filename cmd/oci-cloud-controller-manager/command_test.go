// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
	"github.com/oracle/oci-cloud-controller-manager/pkg/version"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func newCommand(t *testing.T) (*process, *cobra.Command) {
	t.Helper()
	p := &process{context: t.Context()}
	command, err := p.command()
	if err != nil {
		t.Fatal(err)
	}
	command.SilenceErrors, command.SilenceUsage = true, true
	return p, command
}

// execute runs a command line and returns what it printed.
func execute(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	_, command := newCommand(t)
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(arguments)
	err := command.Execute()
	// The flag is the library's, and the process's.
	if f := command.Flags().Lookup("version"); f.Changed {
		if err := f.Value.Set("false"); err != nil {
			t.Fatal(err)
		}
	}
	return out.String(), err
}

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), go test -update rewrites it:\n%s", path, diff)
	}
}

// The visible flags are part of what users rely on.
func TestVisibleFlags(t *testing.T) {
	_, command := newCommand(t)
	var list strings.Builder
	command.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			fmt.Fprintln(&list, strings.TrimSpace("--"+f.Name+" "+f.DefValue))
		}
	})
	golden(t, "flags.txt", list.String())
}

// Every flag that changes nothing exists, so that old command lines are accepted, and is hidden.
func TestMeaninglessFlags(t *testing.T) {
	_, command := newCommand(t)
	var arguments []string
	for name := range meaningless() {
		f := command.Flags().Lookup(name)
		if f == nil {
			t.Errorf("--%s is not known", name)
			continue
		}
		if !f.Hidden || f.Deprecated != "" {
			t.Errorf("--%s: hidden %v, deprecated %q", name, f.Hidden, f.Deprecated)
		}
		value := f.DefValue
		if f.Value.Type() == "stringSlice" || f.Value.Type() == "int32Slice" || strings.HasPrefix(value, "[") {
			continue
		}
		arguments = append(arguments, "--"+name+"="+value)
	}
	if err := command.ParseFlags(arguments); err != nil {
		t.Fatal(err)
	}
	ignored := ignoredFlags(command.Flags())
	if len(ignored) != len(arguments) || !slices.IsSorted(ignored) {
		t.Errorf("%d of %d flags are said to be ignored: %q", len(ignored), len(arguments), ignored)
	}
	if _, fresh := newCommand(t); len(ignoredFlags(fresh.Flags())) != 0 {
		t.Errorf("flags that were not given are said to be ignored: %q", ignoredFlags(fresh.Flags()))
	}
}

// Framework trap 1: workers default to 1, and the budget of the API server is small. What an old manifest leaves out gets
// our defaults; what it sets stays.
func TestTrap1Defaults(t *testing.T) {
	for _, test := range []struct {
		arguments                []string
		services, nodes, expired int32
		qps                      float32
		burst                    int32
	}{
		{nil, 32, 16, 8, 200, 400},
		{[]string{"--concurrent-service-syncs=3", "--kube-api-qps=20"}, 3, 16, 8, 20, 400},
	} {
		o, err := frameworkOptions()
		if err != nil {
			t.Fatal(err)
		}
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		for _, set := range o.Flags(nil, nil, nil, nil, nil).FlagSets {
			fs.AddFlagSet(set)
		}
		if err := fs.Parse(test.arguments); err != nil {
			t.Fatal(err)
		}
		if o.ServiceController.ConcurrentServiceSyncs != test.services || o.NodeController.ConcurrentNodeSyncs != test.nodes ||
			o.NodeLifecycleController.ConcurrentNodeLifecycleSyncs != test.expired {
			t.Errorf("%q: workers %d, %d, %d", test.arguments, o.ServiceController.ConcurrentServiceSyncs,
				o.NodeController.ConcurrentNodeSyncs, o.NodeLifecycleController.ConcurrentNodeLifecycleSyncs)
		}
		if c := o.Generic.ClientConnection; c.QPS != test.qps || c.Burst != test.burst {
			t.Errorf("%q: QPS %v, burst %d", test.arguments, c.QPS, c.Burst)
		}
		if o.KubeCloudShared.CloudProvider.Name != cloudprovider.Name {
			t.Errorf("cloud provider %q", o.KubeCloudShared.CloudProvider.Name)
		}
		// contract/ccm.md §8.1
		l := o.Generic.LeaderElection
		if !l.LeaderElect || l.ResourceLock != "leases" || l.ResourceNamespace != "kube-system" || l.ResourceName != "cloud-controller-manager" ||
			l.LeaseDuration.Duration != 15*time.Second || l.RenewDeadline.Duration != 10*time.Second || l.RetryPeriod.Duration != 2*time.Second {
			t.Errorf("leader election %+v", l)
		}
		if o.SecureServing.BindPort != 10258 {
			t.Errorf("port %d", o.SecureServing.BindPort)
		}
	}
}

func TestVersionAndHelp(t *testing.T) {
	out, err := execute(t, "--version")
	if want := programName + " " + version.Get().String() + "\n"; out != want || err != nil {
		t.Errorf("--version: %q, error %v; want %q", out, err, want)
	}
	for _, field := range []string{version.Get().Version, version.Get().Commit, version.Get().BuildDate} {
		if !strings.Contains(out, field) {
			t.Errorf("--version does not show %q: %q", field, out)
		}
	}

	out, err = execute(t, "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{programName + " [flags]", programName + " validate-config", "--cloud-config", "OCI flags:", "--strict-config", "Global flags:", "--version", "-h, --help"} {
		if !strings.Contains(out, part) {
			t.Errorf("--help does not show %q", part)
		}
	}
	for name := range meaningless() {
		if strings.Contains(out, "--"+name+" ") || strings.Contains(out, "--"+name+"[") {
			t.Errorf("--help shows --%s", name)
		}
	}
	if strings.Contains(out, "Webhook flags:") || strings.Contains(out, "Webhook serving flags:") {
		t.Error("--help has a section of webhooks")
	}

	out, err = execute(t, "validate-config", "--help")
	if err != nil || !strings.Contains(out, "--cloud-config") || strings.Contains(out, "--leader-elect") {
		t.Errorf("help of validate-config: error %v\n%s", err, out)
	}
}

// What is wrong before anything is started is one plain error.
func TestRefusals(t *testing.T) {
	write := func(content string) string {
		path := filepath.Join(t.TempDir(), "cloud-provider.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, test := range map[string]struct {
		arguments []string
		words     []string
	}{
		"no config":           {nil, []string{"--cloud-config is required"}},
		"config is not there": {[]string{"--cloud-config=/nonexistent"}, []string{"/nonexistent", "cannot be used"}},
		"config is wrong":     {[]string{"--cloud-config=" + write("useInstancePrincipals: perhaps\n")}, []string{"cannot be used", "1 error"}},
		"strict":              {[]string{"--strict-config", "--cloud-config=" + write("useInstancePrincipals: true\nloadbalancer: {}\n")}, []string{"cannot be used"}},
		"another provider":    {[]string{"--cloud-provider=aws"}, []string{`"aws"`}},
		"bad period":          {[]string{"--oci-service-resync-period=0s"}, []string{"--oci-service-resync-period", "0s"}},
		"unknown flag":        {[]string{"--bogus"}, []string{"--bogus"}},
		"argument":            {[]string{"bogus"}, []string{"bogus"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execute(t, test.arguments...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, word := range test.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q lacks %q", err, word)
				}
			}
		})
	}
}

// A stray key in an old file is a warning, so that an upgrade does not stop a cluster; the warning is not lost.
func TestStrayKeyIsAWarning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cloud-provider.yaml")
	if err := os.WriteFile(path, []byte("useInstancePrincipals: true\ncompartment: ocid1.compartment.oc1..c\nloadbalancer: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &process{context: t.Context()}
	if err := p.readConfig(path); err != nil {
		t.Fatal(err)
	}
	notices := p.configNotices(t.Context())
	if len(notices) == 0 || notices[0].Reason != "ConfigWarning" || !strings.Contains(notices[0].Message, ":3:1") || !strings.Contains(notices[0].Message, "loadBalancer") {
		t.Errorf("notices %+v", notices)
	}
	p.flags.strictConfig = true
	if err := p.readConfig(path); err == nil {
		t.Error("accepted under --strict-config")
	}
}
