// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"k8s.io/klog/v2"
)

// DefaultGrace is how long a server that is told to stop waits for calls in flight, unless Options says otherwise. It is
// shorter than the 30 seconds that kubelet gives a pod.
const DefaultGrace = 20 * time.Second

// Options describe the server of one driver.
type Options struct {
	Driver   string // "blockvolume.csi.oraclecloud.com"
	Version  string // the vendor's version of the driver
	Endpoint string // see Listen

	// Plugin are the capabilities of the whole driver.
	Plugin []*csi.PluginCapability
	// Ready says whether the driver can work: its configuration is read and its caches are filled. It asks nobody. Nil is
	// always ready.
	Ready func() bool
	// Code translates errors of the domain; see Codes.
	Code Codes
	// Grace is how long calls in flight may take when the server stops; zero is DefaultGrace.
	Grace time.Duration

	// What the driver serves beside its identity; nil is not served.
	Controller      csi.ControllerServer
	GroupController csi.GroupControllerServer
	Node            csi.NodeServer
}

// Server serves one driver.
type Server struct {
	options Options
}

// NewServer makes a server, which does not listen yet.
func NewServer(o Options) (*Server, error) {
	switch {
	case o.Driver == "":
		return nil, errors.New("csi: a driver needs a name")
	case o.Controller == nil && o.Node == nil:
		return nil, errors.New("csi: a driver serves a controller or a node")
	}
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	registerMetrics()
	return &Server{options: o}, nil
}

// services registers what the driver serves.
func (s *Server) services(logger klog.Logger) *grpc.Server {
	o := s.options
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(measure(logger, o.Driver), translate(o.Code), recoverPanic(o.Driver), newInFlight().exclude))
	csi.RegisterIdentityServer(server, &identity{options: o})
	if o.Controller != nil {
		csi.RegisterControllerServer(server, o.Controller)
	}
	if o.GroupController != nil {
		csi.RegisterGroupControllerServer(server, o.GroupController)
	}
	if o.Node != nil {
		csi.RegisterNodeServer(server, o.Node)
	}
	return server
}

// Run listens, and serves until ctx ends; see Serve.
func (s *Server) Run(ctx context.Context) error {
	listener, err := Listen(ctx, s.options.Endpoint)
	if err != nil {
		return err
	}
	return s.Serve(ctx, listener)
}

// Serve serves at a listener until ctx ends. Then it takes no new calls, waits for those in flight, and cuts off what takes longer
// than Options.Grace. It returns nil after that, and an error if it cannot serve.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	logger := klog.FromContext(ctx).WithValues("driver", s.options.Driver)
	server := s.services(logger)
	logger.Info("Serving CSI", "endpoint", s.options.Endpoint)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	stopped := make(chan struct{})
	go func() {
		server.GracefulStop()
		close(stopped)
	}()
	timer := time.NewTimer(s.options.Grace)
	defer timer.Stop()
	select {
	case <-stopped:
	case <-timer.C:
		logger.Info("Calls in flight are cut off; the sidecars repeat them", "after", s.options.Grace)
		server.Stop()
	}
	return <-served
}
