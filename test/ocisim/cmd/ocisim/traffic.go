// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/traffic"
)

// trafficFlags let balancers listen.
type trafficFlags struct {
	on       bool
	offset   int
	loopback string
	backends []string // ADDRESS=TARGET
	direct   bool
	speed    float64
}

func (f *trafficFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.on, "traffic", false, "let balancers listen on loopback addresses, check their backends and forward TCP to them")
	flags.IntVar(&f.offset, "traffic-offset", 20000, "what is added to the ports of listeners; those below 1024 need root without it")
	flags.StringVar(&f.loopback, "traffic-loopback", "127.64.0.1", "first of the addresses that balancers listen on")
	flags.StringSliceVar(&f.backends, "traffic-backend", nil,
		"ADDRESS=TARGET: what a backend leads to, as 10.0.10.2:30080=127.0.0.1:4711, 10.0.10.2=127.0.0.1 or 10.0.10.0/24=127.0.0.1")
	flags.BoolVar(&f.direct, "traffic-direct", false, "connect to backends without --traffic-backend by their own address")
	flags.Float64Var(&f.speed, "traffic-speed", 1, "how many times faster than configured backends are checked")
}

var errTraffic = errors.New("want ADDRESS=TARGET")

// body makes the body of the region's balancers; nil without --traffic.
func (f *trafficFlags) body(logger klog.Logger) (*traffic.Body, error) {
	if !f.on {
		return nil, nil
	}
	first, err := netip.ParseAddr(f.loopback)
	if err != nil || !first.Is4() || !first.IsLoopback() {
		return nil, fmt.Errorf("--traffic-loopback %s: %w", f.loopback, traffic.ErrLoopback)
	}
	body := traffic.New(traffic.Options{PortOffset: f.offset, Loopback: first, Direct: f.direct, Speed: f.speed, Logger: logger})
	for _, pair := range f.backends {
		backend, target, ok := strings.Cut(pair, "=")
		if !ok || backend == "" || target == "" {
			return nil, fmt.Errorf("--traffic-backend %s: %w", pair, errTraffic)
		}
		body.MapBackend(backend, target)
	}
	return body, nil
}
