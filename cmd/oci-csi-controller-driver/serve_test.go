// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// kubernetesAPI is an API server that allows nothing but events, and gives no answer until it is up.
type kubernetesAPI struct {
	up atomic.Bool

	mu     sync.Mutex
	events []string
}

func (k *kubernetesAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !k.up.Load() {
		http.Error(w, "not yet", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	body, _ := io.ReadAll(r.Body)
	switch {
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{},"status":{"allowed":false}}`)
	case strings.HasSuffix(r.URL.Path, "/events"):
		var e struct{ Reason, Message string }
		_ = json.Unmarshal(body, &e)
		k.mu.Lock()
		k.events = append(k.events, e.Reason+": "+e.Message)
		k.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	default:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
	}
}

func (k *kubernetesAPI) told(text string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.events, func(e string) bool { return strings.HasPrefix(e, "PermissionMissing: ") && strings.Contains(e, text) })
}

// installation is a config file under its old name, access to an API server, and a place for the socket.
type installation struct {
	options options
	env     environment
	api     *kubernetesAPI
	conn    *grpc.ClientConn
}

func install(t *testing.T) *installation {
	t.Helper()
	dir := t.TempDir()
	i := &installation{api: &kubernetesAPI{}}
	server := httptest.NewServer(i.api)
	t.Cleanup(server.Close)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := "    " + strings.ReplaceAll(strings.TrimSpace(pki.SigningKeyPEM()), "\n", "\n    ")
	config := write("config.yaml", `auth:
  region: us-ashburn-1
  tenancy: ocid1.tenancy.oc1..t
  user: ocid1.user.oc1..u
  fingerprint: 20:3b:97:13:55:1c:aa:66:41:41:4b:7c:7c:ef:2e:42
  key: |
`+key+`
compartment: ocid1.compartment.oc1..c
`)
	i.options = options{endpoint: "unix://" + filepath.Join(dir, "csi.sock"), kubeconfig: write("kubeconfig", `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+server.URL+`"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`)}
	i.env = environment{lookup: func(name string) (string, bool) {
		value, ok := map[string]string{"CONFIG_YAML_FILENAME": config, "BLOCK_VOLUME_DRIVER_NAME": "mine.blockvolume.csi.oraclecloud.com"}[name]
		return value, ok
	}}
	conn, err := grpc.NewClient(i.options.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	i.conn = conn
	return i
}

// TestServe covers the start under roles that allow less than any release's: it waits for the API server and not longer, says
// once what is off, serves under the name that the environment gives, and ends when it is told to.
func TestServe(t *testing.T) {
	i := install(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- i.options.serve(ctx, i.env) }()
	time.AfterFunc(300*time.Millisecond, func() { i.api.up.Store(true) })

	identity := csi.NewIdentityClient(i.conn)
	call, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	probe, err := identity.Probe(call, &csi.ProbeRequest{}, grpc.WaitForReady(true))
	if err != nil || !probe.GetReady().GetValue() || !i.api.up.Load() {
		t.Fatalf("probe %v, %v", probe, err)
	}
	info, err := identity.GetPluginInfo(call, &csi.GetPluginInfoRequest{})
	if err != nil || info.GetName() != "mine.blockvolume.csi.oraclecloud.com" || info.GetVendorVersion() != "0.1.0" {
		t.Errorf("plugin %v, %v", info, err)
	}
	// A refusal that needs nobody.
	_, err = csi.NewControllerClient(i.conn).CreateVolume(call, &csi.CreateVolumeRequest{})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("a volume without a name: %v", err)
	}
	if _, err := csi.NewGroupControllerClient(i.conn).GroupControllerGetCapabilities(call, &csi.GroupControllerGetCapabilitiesRequest{}); err != nil {
		t.Errorf("group controller: %v", err)
	}
	for _, rule := range []string{"get namespaces kube-system", "list persistentvolumeclaims, watch persistentvolumeclaims"} {
		for !i.api.told(rule) {
			if call.Err() != nil {
				t.Fatalf("no event about %s", rule)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

// TestEndWhileItWaits: a pod that is deleted before the API server answers ends at once, and not as a failure.
func TestEndWhileItWaits(t *testing.T) {
	i := install(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- i.options.serve(ctx, i.env) }()
	time.AfterFunc(100*time.Millisecond, stop)
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestWrongConfig(t *testing.T) {
	i := install(t)
	path := filepath.Join(t.TempDir(), "none.yaml")
	i.options.cloudConfig = path
	if err := i.options.serve(t.Context(), i.env); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a config that does not exist: %v", err)
	}
}
