// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/common"
	nlb "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
)

// checked is a served region with a program's user.
type checked struct {
	t      *testing.T
	region *ocisim.Region
	server *server.Server
	user   *server.User
	dir    string
}

func newChecked(t *testing.T) *checked {
	t.Helper()
	c := &checked{t: t, region: ocisim.New(ocisim.Options{Seed: 1, Signatures: true}), dir: t.TempDir()}
	if err := seed(c.region, seedFile); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.server, err = server.Start(t.Context(), server.Options{Region: c.region}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.server.Close)
	if c.user, err = c.server.User("program"); err != nil {
		t.Fatal(err)
	}
	return c
}

// file writes a file and returns its path.
func (c *checked) file(name string, text []byte) string {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// run calls "ocisim check" against the admin API.
func (c *checked) run(args ...string) (string, error) {
	c.t.Helper()
	var out bytes.Buffer
	root := command()
	root.SetOut(&out)
	root.SetArgs(append([]string{"check", "--admin", strings.TrimPrefix(c.server.AdminURL(), "http://")}, args...))
	err := root.ExecuteContext(c.t.Context())
	return out.String(), err
}

// finds wants a report with these words and exit code 1; no words mean that nothing is found.
func (c *checked) finds(args []string, words ...string) {
	c.t.Helper()
	text, err := c.run(args...)
	if len(words) == 0 {
		if err != nil || !strings.Contains(text, "nothing to report") {
			c.t.Errorf("check %v: %v\n%s", args, err, text)
		}
		return
	}
	if !errors.Is(err, errFindings) {
		c.t.Errorf("check %v: error %v", args, err)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			c.t.Errorf("check %v: %q is not in the report:\n%s", args, word, text)
		}
	}
}

// createNLB makes a balancer as the program, with the SDK.
func (c *checked) createNLB(owner string) {
	c.t.Helper()
	u := c.user
	client, err := nlb.NewNetworkLoadBalancerClientWithConfigurationProvider(
		common.NewRawConfigurationProvider(u.Tenancy, u.OCID, u.Region, u.Fingerprint, u.PrivateKeyPEM(), nil))
	if err != nil {
		c.t.Fatal(err)
	}
	client.HTTPClient = &http.Client{Transport: c.region.Transport()}
	_, err = client.CreateNetworkLoadBalancer(c.t.Context(), nlb.CreateNetworkLoadBalancerRequest{
		CreateNetworkLoadBalancerDetails: nlb.CreateNetworkLoadBalancerDetails{
			CompartmentId: common.String(compartment), SubnetId: c.region.Subnets()[0].Id, DisplayName: common.String("web"),
			FreeformTags: map[string]string{oracle.TagCluster: "c1", oracle.TagOwner: owner},
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	c := newChecked(t)
	args := []string{"--before", c.file("before.json", c.region.Snapshot()), "--principal", c.user.OCID, "--cluster", "c1"}
	with := func(more ...string) []string { return slices.Concat(args, more) }
	c.finds(args)
	c.createNLB("uid-1")
	c.finds(args, "ORPHANS", "its owner uid-1 does not exist", "CreateNetworkLoadBalancer by "+c.user.OCID)
	c.finds(with("--owner", "uid-0,uid-1"))
	args = with("--owner", "uid-1")
	c.finds(with("--settled"), "not come to rest")
	c.finds(with("--budget", "CreateNetworkLoadBalancer=1", "--may-write", "networkloadbalancer", "--quiet-since", "1"))
	c.finds(with("--budget", "networkloadbalancer=0"), "OVER BUDGET")
	c.finds(with("--may-write", "loadbalancer"), "FORBIDDEN WRITES")
	c.finds(with("--quiet-since", "2"), "NOT JUDGED")
	c.finds(with("--name", "^node-(.*)$"), "by its name")

	key := c.file("key.pem", []byte(c.user.PrivateKeyPEM()))
	c.finds(with("--secret-file", key, "--log", c.file("clean.log", []byte("ready"))))
	dirty := c.file("dirty.log", []byte("ready\n"+c.user.PrivateKeyPEM()))
	c.finds(with("--secret-file", key, "--log", dirty), "SECRETS IN LOGS", "dirty.log has the value in line 2")

	instance := *c.region.Instances()[0].Id
	if err := c.region.Foreign().Patch(instance, []byte(`{"displayName":"renamed"}`)); err != nil {
		t.Fatal(err)
	}
	c.finds(args, "FOREIGN CHANGES", `"node-1" -> "renamed"`)
	c.finds(with("--expect", instance))
	c.finds(with("--others"))
}

// TestCheckSaysTheSame: the admin API is only another way to the same evidence.
func TestCheckSaysTheSame(t *testing.T) {
	c := newChecked(t)
	c.createNLB("uid-1")
	text, err := c.run("--output", "json")
	if !errors.Is(err, errFindings) {
		t.Errorf("error %v", err)
	}
	var got oracle.Report
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	want, err := oracle.Check(t.Context(), oracle.InProcess(c.region), oracle.Question{})
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("over the admin API:\n%s\nin process:\n%s", got.String(), want)
	}
}

func TestCheckRefusesWrongFlags(t *testing.T) {
	c := newChecked(t)
	for _, args := range [][]string{
		{"--budget", "GetInstance"}, {"--budget", "GetInstance=x"}, {"--budget", "GetInstance=-1"}, {"--name", "("}, {"--output", "yaml"},
		{"--before", "missing.json"}, {"--before", c.file("broken.json", []byte("{"))}, {"--log", "missing.log"}, {"--secret-file", "missing.pem"},
		{"--admin", "127.0.0.1:1"},
	} {
		if text, err := c.run(args...); err == nil || errors.Is(err, errFindings) {
			t.Errorf("%v: %v\n%s", args, err, text)
		}
	}
}
