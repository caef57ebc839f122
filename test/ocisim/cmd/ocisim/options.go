// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
)

// regionFlags are the options of the region: a preset, then files, then flags; the later wins, whatever the order on the
// command line.
type regionFlags struct {
	harsh     bool
	file      string
	behaviour string
	given     []func(*ocisim.Options) error
}

// add defines the flags.
func (f *regionFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.harsh, "harsh", false, "small and short pages, eventual reads, dropped optional fields, and the budgets that third parties saw")
	flags.StringVar(&f.file, "options", "", "YAML file with the options of the region, in the form that GET /options shows")
	flags.StringVar(&f.behaviour, "behaviour", "", "YAML file that changes what Oracle does not document, in the form that GET /behaviour shows")

	text := func(name, standard, usage string, field func(*ocisim.Options) *string) {
		f.option(flags, name, "string", standard, usage, func(o *ocisim.Options, v string) error {
			*field(o) = v
			return nil
		})
	}
	number := func(name, standard, usage string, field func(*ocisim.Options) *int) {
		f.option(flags, name, "int", standard, usage, func(o *ocisim.Options, v string) (err error) {
			*field(o), err = strconv.Atoi(v)
			return err
		})
	}
	fraction := func(name, usage string, field func(*ocisim.Options) *float64) {
		f.option(flags, name, "float", "0", usage, func(o *ocisim.Options, v string) (err error) {
			*field(o), err = strconv.ParseFloat(v, 64)
			return err
		})
	}
	rate := func(name, usage string, field func(*ocisim.Options) *ocisim.Rate) {
		f.option(flags, name, "rate", "0", usage, func(o *ocisim.Options, v string) (err error) {
			*field(o), err = ocisim.ParseRate(v)
			return err
		})
	}
	text("region", "us-ashburn-1", "region name", func(o *ocisim.Options) *string { return &o.Region })
	text("region-key", "iad", "region key", func(o *ocisim.Options) *string { return &o.RegionKey })
	text("realm", "oc1", "realm", func(o *ocisim.Options) *string { return &o.Realm })
	text("tenancy", "", "OCID of the tenancy; made from the realm if empty", func(o *ocisim.Options) *string { return &o.Tenancy })
	number("page-size", "100", "most items of a page", func(o *ocisim.Options) *int { return &o.PageSize })
	number("eventual-reads", "0", "reads that miss a new resource", func(o *ocisim.Options) *int { return &o.EventualReads })
	number("log-size", "200000", "calls that the call log keeps", func(o *ocisim.Options) *int { return &o.LogSize })
	fraction("drop-optional", "probability that an optional field is left out of an answer", func(o *ocisim.Options) *float64 { return &o.DropOptional })
	fraction("short-pages", "probability that a page ends early although more follows", func(o *ocisim.Options) *float64 { return &o.ShortPages })
	rate("read-rate", "reads per second and principal and service, \"20\" or with a burst \"20/40\"; 0 is unlimited", func(o *ocisim.Options) *ocisim.Rate { return &o.Read })
	rate("write-rate", "writes per second and principal and service; 0 is unlimited", func(o *ocisim.Options) *ocisim.Rate { return &o.Write })
	f.addOthers(flags)
}

func (f *regionFlags) addOthers(flags *pflag.FlagSet) {
	f.option(flags, "signatures", "bool", "true", "refuse requests that are not correctly signed", func(o *ocisim.Options, v string) (err error) {
		o.Signatures, err = strconv.ParseBool(v)
		return err
	}).NoOptDefVal = "true"
	f.option(flags, "random-seed", "uint", "1", "start of all random choices: durations, dropped fields", func(o *ocisim.Options, v string) (err error) {
		o.Seed, err = strconv.ParseUint(v, 10, 64)
		return err
	})
	f.option(flags, "availability-domains", "strings", "", "full names, comma separated; three that are named after the region if empty",
		func(o *ocisim.Options, v string) error {
			o.AvailabilityDomains = strings.Split(v, ",")
			return nil
		})
	f.option(flags, "retry-after", "duration", "0s", "what a 429 tells in Retry-After; OCI sends no such header", func(o *ocisim.Options, v string) (err error) {
		o.RetryAfter, err = time.ParseDuration(v)
		return err
	})
	f.option(flags, "duration", "NAME=RANGE", "", `how long a state change takes, such as loadbalancer.create=1s-2s or "*=50ms"; more than once (GET /durations lists the names)`,
		func(o *ocisim.Options, v string) error { return setEntry(&o.Durations, v, ocisim.ParseRange) })
	f.option(flags, "latency", "NAME=RANGE", "", `delay of an operation's answers, such as compute.GetInstance=100ms-1s, identity.*=1s or "*=10ms"; more than once`,
		func(o *ocisim.Options, v string) error { return setEntry(&o.Latency, v, ocisim.ParseRange) })
	f.option(flags, "rate", "NAME=RATE", "", "budget of each principal for a service, such as compute.read=20/40; more than once",
		func(o *ocisim.Options, v string) error { return setEntry(&o.Rates, v, ocisim.ParseRate) })
}

// optionFlag is a flag that is applied after the files.
type optionFlag struct {
	typeName, shown string
	set             func(string) error
}

// String implements pflag.Value.
func (f *optionFlag) String() string { return f.shown }

// Type implements pflag.Value.
func (f *optionFlag) Type() string { return f.typeName }

// Set implements pflag.Value.
func (f *optionFlag) Set(text string) error {
	f.shown = text
	return f.set(text)
}

// option defines a flag. What it sets is tried at once, so that the error names the flag.
func (f *regionFlags) option(
	flags *pflag.FlagSet, name, typeName, standard, usage string, set func(*ocisim.Options, string) error,
) *pflag.Flag {
	v := &optionFlag{typeName: typeName, shown: standard, set: func(text string) error {
		var scratch ocisim.Options
		if err := set(&scratch, text); err != nil {
			return err
		}
		f.given = append(f.given, func(o *ocisim.Options) error { return set(o, text) })
		return nil
	}}
	return flags.VarPF(v, name, "", usage)
}

var errEntry = errors.New("want NAME=VALUE")

// setEntry sets one entry of a map from NAME=VALUE.
func setEntry[T any](into *map[string]T, text string, parse func(string) (T, error)) error {
	name, rest, ok := strings.Cut(text, "=")
	if !ok {
		return errEntry
	}
	v, err := parse(rest)
	if err != nil {
		return err
	}
	if *into == nil {
		*into = map[string]T{}
	}
	(*into)[name] = v
	return nil
}

// options are what the region starts with.
func (f *regionFlags) options() (ocisim.Options, error) {
	var o ocisim.Options
	if f.harsh {
		o = ocisim.Harsh()
	}
	o.Signatures, o.Seed = true, 1
	if f.file != "" {
		text, err := os.ReadFile(f.file)
		if err != nil {
			return o, fmt.Errorf("read the options: %w", err)
		}
		if o, err = server.ParseOptions(text, o); err != nil {
			return o, fmt.Errorf("options %s: %w", f.file, err)
		}
	}
	if f.behaviour != "" {
		if o.Behaviour == nil {
			o.Behaviour = ocisim.DefaultBehaviour()
		}
		text, err := os.ReadFile(f.behaviour)
		if err != nil {
			return o, fmt.Errorf("read the behaviour table: %w", err)
		}
		if err := server.ParseBehaviour(text, o.Behaviour); err != nil {
			return o, fmt.Errorf("behaviour %s: %w", f.behaviour, err)
		}
	}
	for _, set := range f.given {
		if err := set(&o); err != nil {
			return o, err
		}
	}
	return o, o.Validate()
}
