// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func parse(t *testing.T, args ...string) (ocisim.Options, error) {
	t.Helper()
	var f regionFlags
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.add(flags)
	if err := flags.Parse(args); err != nil {
		return ocisim.Options{}, err
	}
	return f.options()
}

// TestOptionFlags knows the order: preset, files, flags, wherever they stand.
func TestOptionFlags(t *testing.T) {
	dir := t.TempDir()
	file, behaviour := filepath.Join(dir, "options.yaml"), filepath.Join(dir, "behaviour.yaml")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "pageSize: 7\neventualReads: 9\ndurations: {loadbalancer.create: 9s, loadbalancer.delete: 8s}\n"+
		"behaviour: {values: {maxGroupRules: 5, vnicLinger: 1s}}\n")
	write(behaviour, "values: {maxGroupRules: 6}\n")
	o, err := parse(t, "--duration", "loadbalancer.create=1s-2s", "--page-size=3", "--options", file, "--harsh", "--behaviour="+behaviour,
		"--latency", "*=5ms", "--latency=compute.GetInstance=1s", "--rate=compute.read=5/6", "--read-rate=2", "--write-rate=3/4",
		"--retry-after=2s", "--short-pages=0.5", "--signatures=false", "--random-seed=11", "--availability-domains=a,b")
	if err != nil {
		t.Fatal(err)
	}
	if o.PageSize != 3 || o.EventualReads != 9 || o.DropOptional != ocisim.Harsh().DropOptional || o.ShortPages != 0.5 {
		t.Errorf("preset, file and flags: %+v", o)
	}
	if o.Durations["loadbalancer.create"].String() != "1s-2s" || o.Durations["loadbalancer.delete"].String() != "8s" {
		t.Errorf("durations %v", o.Durations)
	}
	if len(o.Latency) != 2 || o.Rates["compute.read"].String() != "5/6" || o.Read.String() != "2" || o.Write.String() != "3/4" {
		t.Errorf("latency %v, rates %v %v %v", o.Latency, o.Rates, o.Read, o.Write)
	}
	if o.RetryAfter != 2*time.Second || o.Signatures || o.Seed != 11 || strings.Join(o.AvailabilityDomains, " ") != "a b" {
		t.Errorf("the rest: %+v", o)
	}
	if b := o.Behaviour; b.MaxGroupRules != 6 || b.VNICLinger.String() != "1s" {
		t.Errorf("behaviour %+v", b)
	}
	if o, err := parse(t); err != nil || !o.Signatures || o.Seed != 1 || o.Behaviour != nil {
		t.Errorf("without flags: %+v, %v", o, err)
	}
}

func TestOptionFlagErrors(t *testing.T) {
	for flag, names := range map[string]string{
		"--duration=loadbalancer.creation=1s": "loadbalancer.creation",
		"--duration=loadbalancer.create":      "--duration",
		"--latency=*=soon":                    "--latency",
		"--latency=compute.Nothing=1s":        "compute.Nothing",
		"--rate=compute.reads=1":              "compute.reads",
		"--page-size=many":                    "--page-size",
		"--drop-optional=2":                   "dropOptional",
		"--options=/nonexistent":              "/nonexistent",
		"--behaviour=options_test.go":         "options_test.go",
	} {
		if _, err := parse(t, flag); err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if _, err := parse(t, "--rate=x.read=1"); !errors.Is(err, ocisim.ErrOption) {
		t.Errorf("an unknown budget: %v", err)
	}
}

// TestServeTakesOptions asks the running binary for what its flags and files said.
func TestServeTakesOptions(t *testing.T) {
	behaviour := filepath.Join(t.TempDir(), "behaviour.yaml")
	if err := os.WriteFile(behaviour, []byte("values: {vnicLinger: 1s}\nrulings: {delete of a protected balancer: {allow: true}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := run(t, "--harsh", "--duration", "loadbalancer.create=1s-2s", "--latency=identity.*=5ms", "--rate=compute.read=7", "--behaviour", behaviour)
	durations, err := s.admin.Durations(t.Context())
	if err != nil || durations["loadbalancer.create"].String() != "1s-2s" {
		t.Errorf("durations %v, %v", durations, err)
	}
	latency, err := s.admin.Latency(t.Context())
	if err != nil || latency["identity.*"].Min != 5*time.Millisecond {
		t.Errorf("latency %v, %v", latency, err)
	}
	rates, err := s.admin.Rates(t.Context())
	if err != nil || rates.Services["compute.read"] == nil || rates.Services["compute.read"].PerSecond != 7 || rates.Read != ocisim.Harsh().Read {
		t.Errorf("rates %v, %v", rates, err)
	}
	b, err := s.admin.Behaviour(t.Context())
	if err != nil || b.VNICLinger.Max != time.Second || !b.Rulings[ocisim.DeleteProtected].Allow {
		t.Errorf("behaviour %v, %v", b, err)
	}
	o, err := s.admin.Options(t.Context())
	if err != nil || o.DropOptional != ocisim.Harsh().DropOptional || !o.Signatures {
		t.Errorf("options %v, %v", o, err)
	}
}
