// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// Marked secrets, which must not appear in any log or event.
const (
	markedPassphrase   = "MARKED-passphrase-open-sesame"
	markedClientSecret = "MARKED-client-secret-c1a0"
)

// The service account as whom the cloud-controller-manager runs.
const account = "system:serviceaccount:kube-system:cloud-controller-manager"

// cloudConfig is a cloud-provider.yaml of the demo world with the given lines about the principal; lines of auth are
// indented.
func cloudConfig(principal string) string {
	return fmt.Sprintf("%s\ncompartment: %s\nvcn: %s\nloadBalancer:\n  subnet1: %s\n",
		principal, testbed.Compartment, testbed.VCN, testbed.PublicSubnet)
}

// userAuth is the auth block of a user with a key, which may be in a file, and more lines.
func userAuth(u *server.User, lines ...string) string {
	return fmt.Sprintf("auth:\n  region: %s\n  tenancy: %s\n  user: %s\n  fingerprint: %s\n  %s",
		u.Region, u.Tenancy, u.OCID, u.Fingerprint, strings.Join(lines, "\n  "))
}

// inlineKey is a key in YAML.
func inlineKey(text string) string {
	return "key: |\n    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

// encryptedKey is the key of a user as openssl encrypts it.
func encryptedKey(t *testing.T, u *server.User) string {
	t.Helper()
	//nolint:staticcheck // this encryption is what users have in their configuration
	block, err := x509.EncryptPEMBlock(rand.Reader, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(u.PrivateKey()), []byte(markedPassphrase), x509.PEMCipherAES256)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

// write puts a file into the cluster's directory, where the cloud config is too.
func (l *lab) write(name, text string) string {
	l.t.Helper()
	path := filepath.Join(l.Cluster.Dir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// workloadEnv is the environment of workload identity in a cluster of the user's own.
func (l *lab) workloadEnv(more ...string) []string {
	l.t.Helper()
	config, err := l.Cluster.ServiceAccountConfig(l.ctx, "kube-system", "cloud-controller-manager")
	if err != nil {
		l.t.Fatal(err)
	}
	return append([]string{
		"OCI_WORKLOAD_IDENTITY_DOMAIN_URL=https://idcs-0123456789abcdef.identity.oraclecloud.com",
		"OCI_WORKLOAD_IDENTITY_RESOURCE_TYPE=k8sworkload",
		"OCI_WORKLOAD_IDENTITY_TOKEN_PATH=" + l.write("sa-token", config.BearerToken),
	}, more...)
}

// TestC154Principals: who the configuration says is calling is who calls, for each kind of principal, and no secret is
// logged on the way, however much is logged (C157).
func TestC154Principals(t *testing.T) {
	l := newLab(t, sparse(20))
	u := l.User
	metadata := "OCI_METADATA_BASE_URL=" + l.Server.MetadataURL()
	clientEnv := l.workloadEnv("OCI_WORKLOAD_IDENTITY_CLIENT_ID=client", "OCI_WORKLOAD_IDENTITY_CLIENT_SECRET="+markedClientSecret)
	instanceEnv := l.workloadEnv(metadata, "OCI_WORKLOAD_IDENTITY_USE_INSTANCE_PRINCIPAL_FOR_TOKEN_EXCHANGE=true")
	locked := encryptedKey(t, u)
	l.write("key.pem", u.PrivateKeyPEM())
	secrets := []string{markedPassphrase, markedClientSecret, u.PrivateKeyPEM(), locked, readFile(t, filepath.Join(l.Cluster.Dir(), "sa-token"))}
	for _, tt := range []struct {
		name, config string
		env          []string
		principal    string
		warning      string // of a ConfigWarning event
	}{
		{name: "user", config: cloudConfig(userAuth(u, inlineKey(u.PrivateKeyPEM()))), principal: u.OCID},
		{name: "passphrase", config: cloudConfig(userAuth(u, inlineKey(locked), "passphrase: "+markedPassphrase)), principal: u.OCID},
		{
			name: "key_passphrase", config: cloudConfig(userAuth(u, inlineKey(locked), "key_passphrase: "+markedPassphrase)),
			principal: u.OCID, warning: "auth.key_passphrase: deprecated",
		},
		{name: "keyFile", config: cloudConfig(userAuth(u, "keyFile: key.pem")), principal: u.OCID},
		{name: "instance", config: testbed.InstanceConfig(nil), env: []string{metadata}, principal: testbed.InstanceID(0)},
		{
			name: "instance, old spelling", config: cloudConfig("auth:\n  useInstancePrincipals: true"), env: []string{metadata},
			principal: testbed.InstanceID(0), warning: "auth.useInstancePrincipals: deprecated",
		},
		{
			name: "instance, leftover user", config: cloudConfig("useInstancePrincipals: true\n" + userAuth(u, inlineKey(u.PrivateKeyPEM()))),
			env: []string{metadata}, principal: testbed.InstanceID(0), warning: "auth.user",
		},
		{name: "workload identity", config: cloudConfig("useWorkloadIdentity: true\nauth:\n  region: us-ashburn-1"), env: clientEnv, principal: account},
		{
			name: "workload identity by instance", config: cloudConfig("useWorkloadIdentity: true\nauth:\n  region: us-ashburn-1"),
			env: instanceEnv, principal: account,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := l.in(t)
			l.configure(tt.config)
			l.Region.ResetCalls()
			l.runWith(tt.env, "-v=10")
			l.newNode()
			l.eventually("nodes initialised", l.NodesInitialized)
			if tt.warning != "" {
				l.event("kube-system", "cloud-controller-manager", "ConfigWarning", tt.warning)
			}
			l.stop()
			calls := l.Region.Calls()
			if len(calls) == 0 {
				t.Error("no call")
			}
			for _, c := range calls {
				if c.Principal != tt.principal || c.Status == 401 {
					t.Fatalf("%s was called by %s (%d), want %s", c.Name(), c.Principal, c.Status, tt.principal)
				}
			}
			l.noSecrets(secrets...)
		})
	}
	t.Run("unknown key", func(t *testing.T) {
		l := l.in(t)
		unknown := *u
		unknown.Fingerprint = "00" + u.Fingerprint[2:]
		l.configure(cloudConfig(userAuth(&unknown, inlineKey(u.PrivateKeyPEM()))))
		l.runWith(nil)
		// 401 says who was refused, so that nobody has to guess which principal was tried.
		l.event("default", l.newNode(), "", "401", "NotAuthenticated", u.OCID, unknown.Fingerprint)
		l.stop()
		l.noSecrets(secrets...)
	})
	for name, config := range map[string]string{
		"wrong passphrase": cloudConfig(userAuth(u, inlineKey(locked), "passphrase: "+markedPassphrase+"-not")),
		"broken key":       cloudConfig(userAuth(u, inlineKey(strings.Replace(u.PrivateKeyPEM(), "MII", "AAA", 1)))),
	} {
		t.Run(name, func(t *testing.T) {
			l := l.in(t)
			l.configure(config)
			l.ccm = l.launch(strings.ReplaceAll(name, " ", "-"), nil, "-v=10")
			if err := l.ccm.Err(); err == nil || !strings.Contains(err.Error(), "exit status 1") {
				t.Errorf("ended with %v, want exit status 1", err)
			}
			if text := l.log(l.ccm); !strings.Contains(text, u.OCID) || !strings.Contains(text, "private key cannot be read") {
				t.Errorf("the log does not say whose key cannot be read:\n%s", l.ccm.LogTail(5))
			}
			l.noSecrets(secrets...)
		})
	}
	l.onlyTheServiceAccount()
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tokens are session tokens in key identifiers, and JWTs.
var tokens = regexp.MustCompile(`ST\$[A-Za-z0-9]|eyJ[A-Za-z0-9_-]{20,}\.|PRIVATE KEY`)

// dumped is a line of a hex dump, as client-go logs binary bodies.
var dumped = regexp.MustCompile(`(?m)^\s*[0-9a-f]{8}((?: +[0-9a-f]{2}){1,16}) +\|`)

// undump returns what stands in hex dumps.
func undump(text string) string {
	var out strings.Builder
	for _, line := range dumped.FindAllStringSubmatch(text, -1) {
		bytes, _ := hex.DecodeString(strings.ReplaceAll(line[1], " ", "")) // the pattern leaves nothing else
		out.Write(bytes)
	}
	return out.String()
}

// noSecrets looks for secrets, line by line where they have several, in the log and in all events.
func (l *lab) noSecrets(secrets ...string) {
	l.t.Helper()
	log := l.log(l.ccm)
	texts := map[string]string{"the log": log, "a dump in the log": undump(log), "an event": l.allEvents()}
	for where, text := range texts {
		if found := tokens.FindStringIndex(text); found != nil {
			l.t.Errorf("%s holds a token or a key: …%q", where, text[max(0, found[0]-200):found[1]])
		}
		for _, secret := range secrets {
			for line := range strings.Lines(secret) {
				if line = strings.TrimSpace(line); len(line) >= 16 && strings.Contains(text, line) {
					l.t.Errorf("%s holds a line of a secret, which begins with %.12s", where, line)
				}
			}
		}
	}
}

// allEvents are the messages of all events of the cluster.
func (l *lab) allEvents() string {
	l.t.Helper()
	text, err := l.Cluster.Kubectl(l.ctx, "get", "events", "--all-namespaces", "-o", "json")
	if err != nil {
		l.t.Fatal(err)
	}
	return text
}

// TestC154WrongPrincipals: what cannot be meant ends the process at once, and the message names the keys.
func TestC154WrongPrincipals(t *testing.T) {
	users := &server.User{
		Region: "us-ashburn-1", Tenancy: "ocid1.tenancy.oc1..aaaaaaaat", OCID: "ocid1.user.oc1..aaaaaaaau",
		Fingerprint: "8c:bf:17:7b:5f:e0:7d:13:75:11:d6:39:0d:e2:84:74",
	}
	const marked = "-----BEGIN RSA PRIVATE KEY-----\nTUFSS0VEIGtleSB0aGF0IG5vYm9keSBtYXkgc2Vl\n-----END RSA PRIVATE KEY-----"
	for _, tt := range []struct {
		name, config string
		want         []string
	}{
		{"two at once", cloudConfig("useInstancePrincipals: true\nuseWorkloadIdentity: true\nauth:\n  region: us-ashburn-1"), []string{"useInstancePrincipals", "useWorkloadIdentity"}},
		{"key twice", cloudConfig(userAuth(users, inlineKey(marked), "keyFile: key.pem")), []string{"auth.key", "auth.keyFile"}},
		{"no key", cloudConfig(userAuth(users)), []string{"auth.key"}},
		{"no file", cloudConfig(userAuth(users, "keyFile: /nonexistent/key.pem")), []string{"auth.keyFile", "/nonexistent/key.pem"}},
		{"not PEM", cloudConfig(userAuth(users, inlineKey("TUFSS0VEIGtleSB0aGF0IG5vYm9keSBtYXkgc2Vl"))), []string{"auth.key"}},
		{"key as user", cloudConfig("auth:\n  region: us-ashburn-1\n  user: |\n    " + strings.ReplaceAll(marked, "\n", "\n    ")), []string{"auth.user"}},
		{"key outdented", cloudConfig("auth:\n  key: |\n" + marked), []string{"cloud-provider.yaml:"}},
		{"empty", "", []string{"cloud-provider.yaml"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "cloud-provider.yaml")
			if err := os.WriteFile(file, []byte(tt.config), 0o600); err != nil {
				t.Fatal(err)
			}
			code, _, errOut := command(t, "--cloud-config="+file, "--kubeconfig=/nonexistent", "-v=10")
			if code != 1 {
				t.Errorf("exit code %d", code)
			}
			for _, want := range tt.want {
				if !strings.Contains(errOut, want) {
					t.Errorf("no %q in\n%s", want, errOut)
				}
			}
			if strings.Contains(errOut, "TUFSS0VE") {
				t.Errorf("the key is printed:\n%s", errOut)
			}
		})
	}
}

// edge counts the calls of a kind that the region's server answered itself, and returns their targets.
func (l *lab) edge(kind string) (targets []string) {
	for _, c := range l.Server.EdgeCalls() {
		if c.Kind == kind {
			targets = append(targets, c.Target)
		}
	}
	return targets
}

// TestC155ProxyAndTrust: OCI is reached through the proxy of the environment, instance metadata never is; endpoints and
// the CA can be configured; a server that nobody vouches for is an error that says so.
func TestC155ProxyAndTrust(t *testing.T) {
	l := newLab(t, sparse(6))
	l.run()
	l.eventually("nodes initialised", l.NodesInitialized)
	if tunnels := l.edge("connect"); len(tunnels) == 0 || tunnels[0] != "iaas.us-ashburn-1.oraclecloud.com:443" {
		t.Errorf("tunnels through the proxy: %v", tunnels)
	}
	if asked := l.edge("metadata"); len(asked) != 0 {
		t.Errorf("metadata was asked for %v although the config says everything", asked)
	}
	l.stop()

	t.Run("metadata", func(t *testing.T) {
		l := l.in(t)
		// Programs never use a proxy for loopback addresses, so metadata has to be elsewhere.
		metadata, err := l.Server.ServeInstance(net.JoinHostPort(ownAddress(t), "0"), testbed.InstanceID(0))
		if err != nil {
			t.Fatal(err)
		}
		tunnels := len(l.edge("connect"))
		l.configure(testbed.InstanceConfig(l.Bed))
		l.runWith([]string{"OCI_METADATA_BASE_URL=" + metadata, "NO_PROXY="})
		l.newNode()
		l.eventually("nodes initialised", l.NodesInitialized)
		l.stop()
		if len(l.edge("metadata")) == 0 || len(l.edge("federation")) == 0 {
			t.Error("neither metadata nor federation was asked")
		}
		if asked := l.edge("forward"); len(asked) != 0 {
			t.Errorf("the proxy was asked for metadata: %v", asked)
		}
		if len(l.edge("connect")) == tunnels {
			t.Error("OCI was not reached through the proxy")
		}
	})
	direct := []string{"HTTPS_PROXY=", "HTTP_PROXY=", "SSL_CERT_FILE=", "OCI_DEFAULT_CERTS_PATH="}
	endpoints := "endpoints:"
	for _, service := range []string{"compute", "virtualnetwork", "identity", "loadbalancer", "networkloadbalancer"} {
		endpoints += fmt.Sprintf("\n  %s: %s", service, l.Server.URL())
	}
	t.Run("endpoints", func(t *testing.T) {
		l := l.in(t)
		tunnels := len(l.edge("connect"))
		l.write("ca.pem", string(l.Server.CAPEM()))
		l.configure(testbed.UserConfig(l.Bed) + endpoints + "\ncaFile: ca.pem\n")
		l.runWith(direct)
		l.newNode()
		l.eventually("nodes initialised", l.NodesInitialized)
		l.service("a", "nlb", nil)
		l.served("a")
		l.stop()
		if n := len(l.edge("connect")) - tunnels; n != 0 {
			t.Errorf("%d calls went through the proxy", n)
		}
	})
	t.Run("unknown CA", func(t *testing.T) {
		l := l.in(t)
		l.configure(testbed.UserConfig(l.Bed) + endpoints + "\n")
		l.runWith(direct)
		name := l.newNode()
		l.event("default", name, "", "GetInstance", "certificate signed by unknown authority")
		l.stop()
		if !hasTaint(l.getNode(name), "node.cloudprovider.kubernetes.io/uninitialized") {
			t.Error("the node was initialised by a server that nobody vouches for")
		}
	})
	l.onlyTheServiceAccount()
}

// ownAddress is an address of this machine that is no loopback one.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has loopback addresses only, for which no program uses a proxy")
	return ""
}

// TestC018NewRealm: a region that the SDK has never heard of, in a realm with a domain of its own, told by a metadata
// service that comes up late.
func TestC018NewRealm(t *testing.T) {
	l := newLab(t, testbed.Options{Config: testbed.InstanceConfig, Region: ocisim.Options{Region: "xx-new-1", RegionKey: "xx-new-1", Realm: "oc77"}})
	l.Server.SetMetadataFault(server.MetadataFault{For: 4 * time.Second})
	l.runWith([]string{"OCI_METADATA_BASE_URL=" + l.Server.MetadataURL()})
	l.eventually("nodes initialised", l.NodesInitialized)
	l.service("a", "lb", nil)
	l.served("a")
	tunnels := l.edge("connect")
	for _, host := range tunnels {
		if !strings.Contains(host, ".xx-new-1.") || !strings.HasSuffix(host, ".oraclecloud77.com:443") {
			t.Errorf("%s was called", host)
		}
	}
	if len(tunnels) == 0 {
		t.Error("nothing was called")
	}
	if region := l.node(0).Labels["topology.kubernetes.io/region"]; region != "xx-new-1" {
		t.Errorf("region label %q", region)
	}
}
