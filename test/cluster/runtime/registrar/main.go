// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command registrar tells the kubelet's plugin watcher where the socket of a CSI driver is, as the sidecar
// node-driver-registrar does, whose module cannot be built from the Go module proxy. It knows the flags of that sidecar.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type registrar struct {
	registration.UnimplementedRegistrationServer

	driver, socket string
	refused        chan error
}

func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: r.driver, Endpoint: r.socket, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r *registrar) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	fmt.Println("registered:", s.GetPluginRegistered(), s.GetError())
	if !s.GetPluginRegistered() {
		r.refused <- fmt.Errorf("the kubelet refused %s: %s", r.driver, s.GetError())
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "registrar:", err)
		os.Exit(1)
	}
}

func run() error {
	address := flag.String("csi-address", "/csi/csi.sock", "socket of the driver, as this process sees it")
	path := flag.String("kubelet-registration-path", "", "socket of the driver, as the kubelet sees it")
	dir := flag.String("plugin-registration-path", "/registration", "directory that the kubelet watches, as this process sees it")
	timeout := flag.Duration("timeout", time.Minute, "of a call to the driver")
	flag.String("http-endpoint", "", "without effect")
	flag.String("v", "", "without effect")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	driver, err := nameOf(ctx, strings.TrimPrefix(*address, "unix://"), *timeout)
	if err != nil {
		return err
	}
	socket := filepath.Join(*dir, driver+"-reg.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	r := &registrar{driver: driver, socket: *path, refused: make(chan error, 1)}
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, r)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer server.Stop()
	select {
	case <-ctx.Done():
		return nil
	case err := <-r.refused:
		return err
	case err := <-served:
		return err
	}
}

// nameOf asks the driver for its name, and waits for the driver. The messages of the two calls are so simple that the
// CSI library is not needed for them: an empty request, and an answer whose first field is the name.
func nameOf(ctx context.Context, socket string, timeout time.Duration) (string, error) {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.WaitForReady(true)))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var answer []byte
	if err := conn.Invoke(ctx, "/csi.v1.Identity/GetPluginInfo", []byte{}, &answer); err != nil {
		return "", fmt.Errorf("ask the driver at %s for its name: %w", socket, err)
	}
	// Field 1, of wire type 2 (bytes), is the name; its length takes one byte.
	if len(answer) < 2 || answer[0] != 1<<3|2 || len(answer) < 2+int(answer[1]) {
		return "", fmt.Errorf("the driver at %s said %x for its name", socket, answer)
	}
	return string(answer[2 : 2+answer[1]]), nil
}

// raw passes messages as they are on the wire.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) ([]byte, error) { return v.([]byte), nil }

func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte{}, data...)
	return nil
}
