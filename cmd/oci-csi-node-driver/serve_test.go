// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"
)

// oldArguments are those of the DaemonSet of release v1.35.
func oldArguments(t *testing.T) []string {
	t.Helper()
	return argumentsIn(t, "../../test/fixtures/v1.35/csi-node.yaml")
}

// argumentsIn are those of the DaemonSet of a manifest.
func argumentsIn(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var d appsv1.DaemonSet
		if err := yaml.Unmarshal([]byte(document), &d); err != nil {
			t.Fatal(err)
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			if len(c.Command) > 0 && strings.HasSuffix(c.Command[0], programName) {
				args := append(slices.Clone(c.Command[1:]), c.Args...)
				return strings.Split(strings.ReplaceAll(strings.Join(args, "\n"), "$(KUBE_NODE_NAME)", "node-1"), "\n")
			}
		}
	}
	t.Fatal(path + " does not run " + programName)
	return nil
}

func TestShippedArguments(t *testing.T) {
	o, err := parse(argumentsIn(t, "../../manifests/container-storage-interface/oci-csi-node-driver.yaml"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.nodeID != "node-1" || o.endpoint != "unix:///csi/csi.sock" || o.stateDir != "/csi/volumes" || o.hostRoot != "/host" || o.httpEndpoint == "" ||
		len(o.withoutEffect(false)) > 0 {
		t.Errorf("options %+v", o)
	}
}

// TestOldArguments: an upgrade changes the image, and not the manifest.
func TestOldArguments(t *testing.T) {
	o, err := parse(oldArguments(t), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.nodeID != "node-1" || o.stateDir != "/csi/volumes" || o.hostRoot != "/host" || o.maxVolumes != 0 || !klog.V(4).Enabled() || klog.V(5).Enabled() {
		t.Errorf("options %+v", o)
	}
	if list := o.withoutEffect(true); len(list) != 2 || !strings.Contains(list[0], "unix:///fss/csi.sock") || !strings.Contains(list[1], "unix:///lustre/csi.sock") {
		t.Errorf("without effect: %q", list)
	}
	more := append(oldArguments(t), "--fss-csi-driver-enabled=false", "-lustre-csi-address=/x", "--lustre-kubelet-registration-path", "/y",
		"-master=http://x", "--kubeconfig=/k", "--logtostderr=false", "--vmodule=a=1")
	if o, err = parse(more, io.Discard); err != nil || len(o.withoutEffect(false)) != 0 || o.master != "http://x" {
		t.Errorf("options %+v: %v", o, err)
	}
}

func TestArguments(t *testing.T) {
	for text, says := range map[string]string{
		"":                                       "--nodeid is required",
		"--nodeid=n --max-volumes-per-node=-1":   "--max-volumes-per-node",
		"--nodeid=n serve":                       "serve",
		"--nodeid=n --endpoint=tcp://1.2.3.4:80": "unix",
		"--nodeid=n --no-such-flag":              "no-such-flag",
	} {
		if _, err := parse(strings.Fields(text), io.Discard); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want one that says %q", text, err, says)
		}
	}
	for level, verbosity := range map[string]int{"debug": 4, "info": 2, "warn": 0, "error": 0, "nonsense": 2} {
		if _, err := parse([]string{"--nodeid=n", "--loglevel=" + level}, io.Discard); err != nil {
			t.Fatal(err)
		}
		if v := klog.Level(verbosity); !klog.V(v).Enabled() || klog.V(v+1).Enabled() {
			t.Errorf("--loglevel=%s is not --v=%d", level, verbosity)
		}
	}
	o, err := parse([]string{"--nodeid=n", "--host-root=/", "--endpoint=unix://run/csi.sock", "--state-dir=/s"}, io.Discard)
	if err != nil || o.hostRoot != "" || o.stateDir != "/s" {
		t.Errorf("options %+v: %v", o, err)
	}
	var help bytes.Buffer
	if _, err := parse([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-max-volumes-per-node") {
		t.Errorf("help %q: %v", help.String(), err)
	}
	if o, err := parse([]string{"--version"}, io.Discard); err != nil || !o.version {
		t.Errorf("version: %v", err)
	}
}

// TestServesWithoutAPIServer: the process neither waits for the API server nor dies without it; and ends in order. C087.
func TestServesWithoutAPIServer(t *testing.T) {
	dir := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	health := listener.Addr().String()
	listener.Close()
	socket := filepath.Join(dir, "csi.sock")
	o, err := parse([]string{
		"--nodeid=node-1", "--endpoint=unix://" + socket, "--master=http://127.0.0.1:1", "--host-root=/", "--http-endpoint=" + health, "--loglevel=error",
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	variables := map[string]string{"BLOCK_VOLUME_DRIVER_NAME": "x.blockvolume.csi.oraclecloud.com"}
	go func() {
		done <- o.serve(ctx, environment{all: []string{"LOG_FIELD_cluster=c"}, lookup: func(name string) (string, bool) { v, has := variables[name]; return v, has }})
	}()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	soon, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	info, err := spec.NewIdentityClient(conn).GetPluginInfo(soon, &spec.GetPluginInfoRequest{})
	if err != nil || info.GetName() != variables["BLOCK_VOLUME_DRIVER_NAME"] || info.GetVendorVersion() != "0.1.0" {
		t.Errorf("plugin %v: %v", info, err)
	}
	if probe, err := spec.NewIdentityClient(conn).Probe(soon, &spec.ProbeRequest{}); err != nil || !probe.GetReady().GetValue() {
		t.Errorf("probe %v: %v", probe, err)
	}
	if c, err := spec.NewNodeClient(conn).NodeGetCapabilities(soon, &spec.NodeGetCapabilitiesRequest{}); err != nil || len(c.GetCapabilities()) != 4 {
		t.Errorf("capabilities %v: %v", c, err)
	}
	for path, want := range map[string]string{"/healthz": "ok", "/metrics": "csi_plugin_operations_seconds"} {
		if text := get(soon, t, "http://"+health+path); !strings.Contains(text, want) {
			t.Errorf("%s: %.80q, want %q", path, text, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("made %v: %v", entries, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// get reads an address, as soon as somebody listens there.
func get(ctx context.Context, t *testing.T, url string) string {
	t.Helper()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// TestHostRootThatIsNot: the error names the flag.
func TestHostRootThatIsNot(t *testing.T) {
	o, err := parse([]string{"--nodeid=n", "--host-root=/nowhere", "--master=http://127.0.0.1:1"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	err = o.serve(t.Context(), environment{lookup: func(string) (string, bool) { return "", false }})
	if err == nil || !strings.Contains(err.Error(), "--host-root=/nowhere") {
		t.Errorf("error %v", err)
	}
}
