// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server/adminclient"
)

const (
	compartment = "ocid1.compartment.oc1..aaaaaaaademo"
	seedFile    = "../../seeds/demo.yaml"
)

// services are what the probe calls, in this order, with the number of things that the demo world has.
var services = []struct {
	service, operation string
	items              int
}{
	{ocisim.ServiceIdentity, "ListAvailabilityDomains", 3},
	{ocisim.ServiceCompute, "ListInstances", 3},
	{ocisim.ServiceVirtualNetwork, "ListSubnets", 2},
	{ocisim.ServiceLoadBalancer, "ListLoadBalancers", 0},
	{ocisim.ServiceNetworkLoadBalancer, "ListNetworkLoadBalancers", 0},
}

// binaries are built once for all tests of the package.
type binaries struct {
	simulator, client string
}

// TestMain builds the simulator and the SDK program, and removes them at the end.
func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

// built is set by TestMain only.
var built binaries

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ocisim-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built = binaries{simulator: filepath.Join(dir, "ocisim"), client: filepath.Join(dir, "sdkprobe")}
	out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), ".", "../sdkprobe").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "build the commands: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// simulator is the binary, running.
type simulator struct {
	cmd   *exec.Cmd
	help  string // what it printed
	admin *adminclient.Client
}

var adminLine = regexp.MustCompile(`(?m)^admin API +(http://\S+)$`)

// run starts the binary on free ports and waits until it has told how to use it.
func run(t *testing.T, flags ...string) simulator {
	t.Helper()
	args := append([]string{
		"serve", "--seed", seedFile, "--dir", t.TempDir(),
		"--listen", "127.0.0.1:0", "--proxy", "127.0.0.1:0", "--metadata", "127.0.0.1:0", "--admin", "127.0.0.1:0",
	}, flags...)
	cmd := exec.CommandContext(t.Context(), built.simulator, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // ends with an error where the test has stopped it already
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("ocisim wrote:\n%s", errs.String())
		}
	})
	var help strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		help.WriteString(lines.Text() + "\n")
		if found := adminLine.FindStringSubmatch(help.String()); found != nil {
			return simulator{cmd: cmd, help: help.String(), admin: adminclient.New(found[1])}
		}
	}
	t.Fatalf("ocisim ended without telling its admin API: %s%s", help.String(), errs.String())
	return simulator{}
}

// probe runs the SDK program with nothing but the given environment and returns its lines.
func probe(t *testing.T, env []string, args ...string) []map[string]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, built.client, append([]string{"--compartment", compartment}, args...)...)
	cmd.Env = env
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("sdkprobe %v: %v\n%s%s", args, err, out, errs.String())
	}
	var lines []map[string]any
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var line map[string]any
		if err := decoder.Decode(&line); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatalf("sdkprobe wrote %s: %v", out, err)
			}
			return lines
		}
		lines = append(lines, line)
	}
}

// check compares what the program got and what the simulator saw.
func check(t *testing.T, s simulator, lines []map[string]any, principal string) {
	t.Helper()
	if len(lines) != len(services) {
		t.Fatalf("the program made %d calls, want %d: %v", len(lines), len(services), lines)
	}
	page, err := s.admin.Calls(t.Context(), adminclient.CallQuery{Principal: principal})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Calls) != len(services) {
		t.Fatalf("the call log has %d calls by %s, want %d: %+v", len(page.Calls), principal, len(services), page.Calls)
	}
	for i, want := range services {
		if items, _ := lines[i]["items"].(float64); lines[i]["service"] != want.service || int(items) != want.items {
			t.Errorf("the program got %v, want %d items of %s", lines[i], want.items, want.service)
		}
		c := page.Calls[i]
		if c.Service != want.service || c.Operation != want.operation || c.Status != 200 || c.Reason != "" {
			t.Errorf("call log has %+v, want a good %s.%s", c, want.service, want.operation)
		}
		if c.RequestID != lines[i]["requestID"] {
			t.Errorf("%s: request id in the log %q, at the program %q", c.Name(), c.RequestID, lines[i]["requestID"])
		}
	}
}

// workloadAddress finds a loopback address whose port 12250 is free: the SDK takes no other port, and does not use the
// proxy.
func workloadAddress(t *testing.T) (host, address string) {
	t.Helper()
	for i := range 100 {
		host = fmt.Sprintf("127.%d.%d.1", 64+i, os.Getpid()%250)
		address = net.JoinHostPort(host, "12250")
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return host, address
	}
	t.Fatal("no loopback address with a free port 12250")
	return "", ""
}

// account is the subject of a service account's token.
func account(name string) string { return "system:serviceaccount:kube-system:" + name }

// workloadEnv is the environment of a pod with a service account.
func workloadEnv(t *testing.T, s simulator, host, name string) []string {
	t.Helper()
	env, err := s.admin.Env(t.Context(), adminclient.EnvRequest{})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(map[string]any{"sub": account(name), "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	token := filepath.Join(t.TempDir(), "token")
	text := encode([]byte(`{"alg":"RS256"}`)) + "." + encode(payload) + "." + encode([]byte("signature"))
	if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ca := ""
	for _, line := range env {
		if file, ok := strings.CutPrefix(line, "SSL_CERT_FILE="); ok {
			ca = file
		}
	}
	return append(env,
		"OCI_RESOURCE_PRINCIPAL_VERSION=2.2",
		"OCI_RESOURCE_PRINCIPAL_REGION=us-ashburn-1",
		"KUBERNETES_SERVICE_HOST="+host,
		"OCI_KUBERNETES_SERVICE_ACCOUNT_CERT_PATH="+ca,
		"OCI_WORKLOAD_IDENTITY_DOMAIN_URL=https://idcs-0123456789.identity.oraclecloud.com",
		"OCI_WORKLOAD_IDENTITY_CLIENT_ID=client",
		"OCI_WORKLOAD_IDENTITY_CLIENT_SECRET=secret",
		"OCI_WORKLOAD_IDENTITY_RESOURCE_TYPE=k8sworkload",
		"OCI_WORKLOAD_IDENTITY_TOKEN_PATH="+token,
	)
}

// TestSDKProgramsWorkUnchanged is the proof of fidelity: an ordinary program on the OCI SDK, which gets environment
// variables and nothing else, uses the binary as a user and as an instance.
func TestSDKProgramsWorkUnchanged(t *testing.T) {
	host, address := workloadAddress(t)
	s := run(t, "--proxymux", address)

	t.Run("user principal", func(t *testing.T) {
		requireNoOCIConfig(t)
		alice, err := s.admin.User(t.Context(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		env, err := s.admin.Env(t.Context(), adminclient.EnvRequest{User: "alice"})
		if err != nil {
			t.Fatal(err)
		}
		check(t, s, probe(t, env, "--auth", "user"), alice.OCID)
	})
	t.Run("instance principal", func(t *testing.T) {
		env, err := s.admin.Env(t.Context(), adminclient.EnvRequest{})
		if err != nil {
			t.Fatal(err)
		}
		check(t, s, probe(t, env, "--auth", "instance"), "ocid1.instance.oc1.iad.aaaaaaaademonode1")
	})
	t.Run("chosen instance", func(t *testing.T) {
		env, err := s.admin.Env(t.Context(), adminclient.EnvRequest{Instance: "node-3"})
		if err != nil {
			t.Fatal(err)
		}
		check(t, s, probe(t, env, "--auth", "instance"), "ocid1.instance.oc1.iad.aaaaaaaademonode3")
	})
	t.Run("OKE workload identity", func(t *testing.T) {
		env := workloadEnv(t, s, host, "workload")
		check(t, s, probe(t, env, "--auth", "workload"), account("workload"))
	})
	t.Run("token exchange", func(t *testing.T) {
		env := workloadEnv(t, s, host, "exchange")
		check(t, s, probe(t, env, "--auth", "exchange"), account("exchange"))
	})
	t.Run("nobody", func(t *testing.T) {
		counts, err := s.admin.Counters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		page, err := s.admin.Calls(t.Context(), adminclient.CallQuery{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Calls {
			if c.Status != 200 {
				t.Errorf("a call failed on the way: %+v", c)
			}
		}
		if len(counts) != len(services) {
			t.Errorf("operations called: %v, want only those of the probe", counts)
		}
	})
}

// requireNoOCIConfig skips where the account has OCI credentials of its own: the SDK prefers ~/.oci/config to
// OCI_CONFIG_FILE, finds the directory by the passwd entry, and no variable changes that.
func requireNoOCIConfig(t *testing.T) {
	t.Helper()
	account, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(account.HomeDir, ".oci", "config")); err == nil {
		t.Skip("this account has an ~/.oci/config, which the SDK uses before OCI_CONFIG_FILE")
	}
}

// TestKillAfterACall ends a client exactly after its second call.
func TestKillAfterACall(t *testing.T) {
	s := run(t)
	env, err := s.admin.Env(t.Context(), adminclient.EnvRequest{})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := s.admin.StopAfter(t.Context(), server.StopRule{N: 2, Freeze: true})
	if err != nil {
		t.Fatal(err)
	}
	victim := exec.CommandContext(t.Context(), built.client, "--auth", "instance", "--compartment", compartment)
	victim.Env = env
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	call, err := stop.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := victim.Wait(); err == nil {
		t.Error("the client ended well although it was killed")
	}
	if err := stop.Discard(ctx); err != nil {
		t.Fatal(err)
	}
	page, err := s.admin.Calls(ctx, adminclient.CallQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Calls) != 2 || page.Calls[1].Seq != call.Seq {
		t.Errorf("calls applied: %+v, want exactly two", page.Calls)
	}
}

func TestServeTellsHowToUseIt(t *testing.T) {
	s := run(t, "--user", "alice,bob", "--instance-metadata", "127.0.0.1:0=node-2", "--proxymux", "127.0.0.1:0")
	for _, text := range []string{
		"export HTTPS_PROXY=http://127.0.0.1:", "export HTTP_PROXY=", "export NO_PROXY=", "export SSL_CERT_FILE=", "export OCI_DEFAULT_CERTS_PATH=",
		"as user alice", "as user bob", "export OCI_CONFIG_FILE=", "export OCI_METADATA_BASE_URL=http://127.0.0.1:", "key of bob", "CA  ",
		"endpoint", "metadata of", "node-2  http://127.0.0.1:", "workload identity",
	} {
		if !strings.Contains(s.help, text) {
			t.Errorf("the help lacks %q:\n%s", text, s.help)
		}
	}
	address := strings.TrimPrefix(adminLine.FindStringSubmatch(s.help)[1], "http://")
	var out bytes.Buffer
	root := command()
	root.SetOut(&out)
	root.SetArgs([]string{"env", "--admin", address, "--user", "alice", "--no-proxy", "10.0.0.1"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "export OCI_CONFIG_FILE=") || !strings.Contains(text, ",10.0.0.1\n") {
		t.Errorf("ocisim env printed:\n%s", text)
	}
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("after an interrupt the binary ended with %v, want exit code 0", err)
	}
}

func TestServeRefusesAWrongSeed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seed.yaml")
	if err := os.WriteFile(file, []byte("instances:\n- shapeOf: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := command()
	root.SetArgs([]string{"serve", "--seed", file, "--dir", ""})
	if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "shapeOf") {
		t.Errorf("got %v, want an error that names the unknown key", err)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"env", "--help"}, {"check", "--help"}, {"--version"}} {
		var out bytes.Buffer
		root := command()
		root.SetOut(&out)
		root.SetArgs(args)
		if err := root.ExecuteContext(t.Context()); err != nil || out.Len() == 0 {
			t.Errorf("%v: %q, %v", args, out.String(), err)
		}
	}
	root := command()
	names := []string{}
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	if !slices.Contains(names, "serve") || !slices.Contains(names, "env") || !slices.Contains(names, "check") {
		t.Errorf("commands: %v", names)
	}
}

func TestShellQuote(t *testing.T) {
	for word, want := range map[string]string{
		"":                       "''",
		"http://node-1@h:3128":   "http://node-1@h:3128",
		"/a b/c":                 "'/a b/c'",
		"it's":                   `'it'\''s'`,
		"localhost,127.0.0.1,$x": "'localhost,127.0.0.1,$x'",
	} {
		if got := shellQuote(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}
