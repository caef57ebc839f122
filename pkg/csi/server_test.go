// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi"
)

var errNoSpace = errors.New("no space in this availability domain")

// driver is a controller whose CreateVolume does what a test says.
type driver struct {
	spec.UnimplementedControllerServer

	create func(context.Context, *spec.CreateVolumeRequest) error
}

func (d *driver) CreateVolume(ctx context.Context, r *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	if err := d.create(ctx, r); err != nil {
		return nil, err
	}
	return &spec.CreateVolumeResponse{Volume: &spec.Volume{VolumeId: r.GetName()}}, nil
}

// serving is a server that runs, and a client of it.
type serving struct {
	conn   *grpc.ClientConn
	log    ktesting.Buffer
	cancel context.CancelFunc
	done   chan error
}

func (s *serving) controller() spec.ControllerClient { return spec.NewControllerClient(s.conn) }

// stop ends the server and returns what Run returned.
func (s *serving) stop() error {
	s.cancel()
	err := <-s.done
	s.done <- err
	return err
}

func serve(t *testing.T, o csi.Options) *serving {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "csi.sock")
	o.Driver, o.Version, o.Endpoint = "test.csi.example", "0.1.0", "unix://"+socket
	server, err := csi.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(5)))
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
	s := &serving{cancel: cancel, done: make(chan error, 1), log: logger.GetSink().(ktesting.Underlier).GetBuffer()}
	go func() { s.done <- server.Run(ctx) }()
	s.conn, err = grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.conn.Close()
		_ = s.stop()
	})
	return s
}

func create(name string) *spec.CreateVolumeRequest {
	return &spec.CreateVolumeRequest{Name: name, Secrets: map[string]string{"password": "open sesame"}}
}

func TestErrorsGetTheirCodes(t *testing.T) {
	errs := map[string]error{
		"domain":   fmt.Errorf("create: %w", errNoSpace),
		"coded":    fmt.Errorf("create: %w", status.Error(codes.OutOfRange, "too large")),
		"deadline": fmt.Errorf("create: %w", context.DeadlineExceeded),
		"unknown":  errors.New("surprise"),
	}
	s := serve(t, csi.Options{
		Controller: &driver{create: func(_ context.Context, r *spec.CreateVolumeRequest) error { return errs[r.GetName()] }},
		Code: func(err error) codes.Code {
			if errors.Is(err, errNoSpace) {
				return codes.ResourceExhausted
			}
			return codes.Unknown
		},
	})
	for name, want := range map[string]codes.Code{
		"domain": codes.ResourceExhausted, "coded": codes.OutOfRange, "deadline": codes.DeadlineExceeded, "unknown": codes.Internal, "fine": codes.OK,
	} {
		_, err := s.controller().CreateVolume(t.Context(), create(name))
		if status.Code(err) != want {
			t.Errorf("%s: code %s (%v), want %s", name, status.Code(err), err, want)
		}
		if err != nil && !strings.Contains(err.Error(), errs[name].Error()) {
			t.Errorf("%s: the message has lost its text: %v", name, err)
		}
	}
	if _, err := s.controller().ListVolumes(t.Context(), &spec.ListVolumesRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a method that the driver does not have: %v", err)
	}
	if log := s.log.String(); strings.Contains(log, "open sesame") || !strings.Contains(log, "***stripped***") {
		t.Errorf("the log should have the request without its secrets:\n%s", log)
	}
}

func TestPanicIsOneCallsTrouble(t *testing.T) {
	s := serve(t, csi.Options{Controller: &driver{create: func(_ context.Context, r *spec.CreateVolumeRequest) error {
		if r.GetName() == "bad" {
			panic("no map")
		}
		return nil
	}}})
	before := panics(t)
	if _, err := s.controller().CreateVolume(t.Context(), create("bad")); status.Code(err) != codes.Internal || strings.Contains(err.Error(), "no map") {
		t.Errorf("a panic became %v", err)
	}
	if _, err := s.controller().CreateVolume(t.Context(), create("good")); err != nil {
		t.Errorf("the call after the panic: %v", err)
	}
	// It is counted once, and nothing of it is busy any more.
	if _, err := s.controller().CreateVolume(t.Context(), create("bad")); status.Code(err) != codes.Internal {
		t.Errorf("the same call again: %v", err)
	}
	if got := panics(t) - before; got != 2 {
		t.Errorf("%v panics are counted, want 2", got)
	}
	if !strings.Contains(s.log.String(), "no map") {
		t.Error("the log does not say what the panic was")
	}
}

func panics(t *testing.T) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, f := range families {
		if f.GetName() == "oci_csi_panics_total" {
			for _, m := range f.GetMetric() {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return total
}

func TestSecondCallIsAborted(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, csi.Options{Controller: &driver{create: func(_ context.Context, r *spec.CreateVolumeRequest) error {
		if r.GetName() == "slow" {
			inside <- struct{}{}
			<-leave
		}
		return nil
	}}})
	first := make(chan error, 1)
	go func() {
		_, err := s.controller().CreateVolume(t.Context(), create("slow"))
		first <- err
	}()
	<-inside
	if _, err := s.controller().CreateVolume(t.Context(), create("slow")); status.Code(err) != codes.Aborted {
		t.Errorf("the second call: %v", err)
	}
	if _, err := s.controller().CreateVolume(t.Context(), create("other")); err != nil {
		t.Errorf("a call about something else: %v", err)
	}
	close(leave)
	if err := <-first; err != nil {
		t.Errorf("the first call: %v", err)
	}
	go func() { <-inside }()
	if _, err := s.controller().CreateVolume(t.Context(), create("slow")); err != nil {
		t.Errorf("a call after it: %v", err)
	}
}

func TestStopWaitsForCallsInFlight(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, csi.Options{Grace: time.Hour, Controller: &driver{create: func(context.Context, *spec.CreateVolumeRequest) error {
		close(inside)
		<-leave
		return nil
	}}})
	result := make(chan error, 1)
	go func() {
		_, err := s.controller().CreateVolume(t.Context(), create("slow"))
		result <- err
	}()
	<-inside
	s.cancel()
	select {
	case err := <-s.done:
		t.Fatalf("the server ended while a call was in flight: %v", err)
	case err := <-result:
		t.Fatalf("the call was cut off: %v", err)
	case <-time.After(50 * time.Millisecond): // time enough for a wrong server to end
	}
	close(leave)
	if err := <-result; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	if err := s.stop(); err != nil {
		t.Errorf("Run returned %v", err)
	}
}

func TestStopCutsOffWhatHangs(t *testing.T) {
	inside := make(chan struct{})
	s := serve(t, csi.Options{Grace: time.Millisecond, Controller: &driver{create: func(ctx context.Context, _ *spec.CreateVolumeRequest) error {
		close(inside)
		<-ctx.Done()
		return ctx.Err()
	}}})
	result := make(chan error, 1)
	go func() {
		_, err := s.controller().CreateVolume(context.WithoutCancel(t.Context()), create("stuck"))
		result <- err
	}()
	<-inside
	if err := s.stop(); err != nil {
		t.Errorf("Run returned %v", err)
	}
	if err := <-result; err == nil {
		t.Error("the call that hangs succeeded")
	}
}

func TestProbe(t *testing.T) {
	ready := make(chan bool, 1)
	s := serve(t, csi.Options{
		Controller: &driver{}, Ready: func() bool { return <-ready },
		Plugin: csi.PluginCapabilities(spec.PluginCapability_Service_CONTROLLER_SERVICE, spec.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS),
	})
	identity := spec.NewIdentityClient(s.conn)
	for _, want := range []bool{false, true} {
		ready <- want
		got, err := identity.Probe(t.Context(), &spec.ProbeRequest{})
		if err != nil || got.GetReady().GetValue() != want {
			t.Errorf("Probe: %v, %v, want %t", got, err, want)
		}
	}
	info, err := identity.GetPluginInfo(t.Context(), &spec.GetPluginInfoRequest{})
	if err != nil || info.GetName() != "test.csi.example" || info.GetVendorVersion() != "0.1.0" {
		t.Errorf("GetPluginInfo: %v, %v", info, err)
	}
	caps, err := identity.GetPluginCapabilities(t.Context(), &spec.GetPluginCapabilitiesRequest{})
	if err != nil || len(caps.GetCapabilities()) != 2 {
		t.Errorf("GetPluginCapabilities: %v, %v", caps, err)
	}
}

func TestEndpoints(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	left := filepath.Join(dir, "left.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: left, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	served, err := net.Listen("unix", filepath.Join(dir, "served.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	for endpoint, want := range map[string]string{
		"unix://" + dir + "/absolute.sock":  dir + "/absolute.sock",
		"unix://run/relative.sock":          "run/relative.sock", // the form of the manifests of the existing implementation
		"unix://plain.sock":                 "plain.sock",
		"unix://" + left:                    left,
		"unix://" + dir + "/served.sock":    "",
		"unix://" + dir + "/file":           "",
		"unix://" + dir + "/nowhere/a.sock": "",
		"tcp://127.0.0.1:1":                 "",
		"unix://":                           "",
		"/csi/csi.sock":                     "",
	} {
		l, err := csi.Listen(t.Context(), endpoint)
		switch {
		case err != nil && want == "":
		case err != nil:
			t.Errorf("%s: %v", endpoint, err)
		case want == "":
			t.Errorf("%s: serves at %s", endpoint, l.Addr())
		case l.Addr().String() != want:
			t.Errorf("%s: serves at %s, want %s", endpoint, l.Addr(), want)
		}
		if l != nil {
			_ = l.Close()
		}
	}
	if content, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(content) != "precious" {
		t.Errorf("a file in the way is now %q, %v", content, err)
	}
	if _, err := net.Dial("unix", filepath.Join(dir, "served.sock")); err != nil {
		t.Errorf("the socket of another process was taken away: %v", err)
	}
}
