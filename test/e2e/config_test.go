// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// TestValidateConfig: the examples are right; every mistake of a wrong file is named with its line.
func TestValidateConfig(t *testing.T) {
	examples, err := filepath.Glob("../../manifests/cloud-controller-manager/provider-config-*.yaml")
	if err != nil || len(examples) != 3 {
		t.Fatalf("examples are %q, %v", examples, err)
	}
	for _, file := range examples {
		code, out, errOut := command(t, "validate-config", "--cloud-config", file)
		if code != 0 || errOut != "" {
			t.Errorf("%s: exit code %d\n%s", file, code, errOut)
		}
		if !strings.Contains(out, "compartment: ocid1.compartment.oc1..aaaaaaaaexamplecompartment") || strings.Contains(out, "PRIVATE KEY") {
			t.Errorf("%s: the effective configuration is\n%s", file, out)
		}
	}
	file := filepath.Join(t.TempDir(), "cloud-provider.yaml")
	const five = `auth:
  region: us-phoenix-1
  tenancy: ocid1.tenancy.oc1..aaaatenancy
  user: ocid1.user.oc1..aaaauser
  keyfile: /etc/oci/key.pem
  fingerprint: 8c:bf:17:7b:5f:e0:7d:13:75:11:d6:39:0d:e2:84:74
compartment: ocid1.vcn.oc1.phx.aaaavcn
loadBalancer:
  subnet1: "ocid1.subnet.oc1.phx.aaaa subnet"
  disabled: perhaps
useInstancePrincipal: true
`
	if err := os.WriteFile(file, []byte(five), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := command(t, "validate-config", "--cloud-config", file)
	lines := strings.Split(strings.TrimSpace(errOut), "\n")
	if code != 1 || out != "" || len(lines) != 5 {
		t.Fatalf("exit code %d, %d lines, want 1 and 5:\n%s%s", code, len(lines), out, errOut)
	}
	for i, want := range []string{
		":5:", "auth.keyfile", "keyFile",
		":7:", "compartment", "vcn",
		":9:", "loadBalancer.subnet1", "blank",
		":10:", "loadBalancer.disabled", "perhaps",
		":11:", "useInstancePrincipal", "did you mean useInstancePrincipals?",
	} {
		if line := lines[i/3]; !strings.HasPrefix(line, file+":") || !strings.Contains(line, want) {
			t.Errorf("line %d lacks %q: %s", i/3+1, want, line)
		}
	}
}

// mistyped is a config with three stray keys.
func mistyped(b *testbed.Bed) string {
	return strings.Replace(testbed.UserConfig(b), "loadBalancer:", "loadbalancer:\n  securityListManagmentMode: None", 1) + "clusterid: x\n"
}

// TestC160UnknownKeys: a stray key is told loudly, and stops the start only under --strict-config.
func TestC160UnknownKeys(t *testing.T) {
	l := newLab(t, testbed.Options{Config: mistyped}).ready()
	keys := map[string]string{
		"loadbalancer":                           "loadBalancer",
		"loadBalancer.securityListManagmentMode": "securityListManagementMode",
		"clusterid":                              "clusterId",
	}
	lines := strings.Split(mistyped(l.Bed), "\n")
	for key, suggestion := range keys {
		word := key[strings.LastIndex(key, ".")+1:]
		place := ""
		for i, line := range lines {
			if strings.HasPrefix(strings.TrimSpace(line), word+":") {
				place = "cloud-provider.yaml:" + itoa(i+1) + ":"
			}
		}
		l.event("kube-system", "cloud-controller-manager", "ConfigWarning", place, "warning: ", key, suggestion)
		if log := l.log(l.ccm); strings.Count(log, "Cloud config needs attention") != len(keys) || !strings.Contains(log, place) {
			t.Errorf("the log does not tell each of %d problems once, %s among them", len(keys), place)
		}
	}
	// What the misspelt block says has no effect, and the Service that misses it is told.
	l.service("a", "lb", nil)
	l.event("default", "a", "NoSubnet", "loadBalancer.subnet1")
	l.stop()

	strict := l.launch("strict", nil, "--strict-config")
	if err := strict.Err(); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("--strict-config: %v, want exit status 1", err)
	}
	text := l.log(strict)
	for key := range keys {
		if !strings.Contains(text, "error: "+key+": ") {
			t.Errorf("--strict-config does not name %s:\n%s", key, text)
		}
	}
	l.onlyTheServiceAccount()
}

// TestC159PartsOff: what is switched off makes no call, so that it needs no policy; the rest works.
func TestC159PartsOff(t *testing.T) {
	l := newLab(t, sparse(5))
	for _, resource := range []string{"load-balancers", "network-load-balancers"} {
		l.Region.Deny(ocisim.Policy{ResourceType: resource})
	}
	l.service("a", "lb", nil)
	l.service("b", "nlb", nil)
	balancing := func(c ocisim.Call) bool {
		return c.Service == ocisim.ServiceLoadBalancer || c.Service == ocisim.ServiceNetworkLoadBalancer
	}
	for _, tt := range []struct{ name, config, flag string }{
		{"controller", "", "--controllers=*,-service-lb-controller"},
		{"controller by its old name", "", "--controllers=*,-service"},
		{"config", "disabled", "--controllers=*"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := l.in(t)
			text := testbed.UserConfig(l.Bed)
			if tt.config != "" {
				text = strings.Replace(text, "loadBalancer:", "loadBalancer:\n  disabled: true", 1)
			}
			l.configure(text)
			l.runWith(nil, tt.flag, "--oci-service-resync-period=1s")
			l.newNode()
			l.eventually("nodes initialised", l.NodesInitialized)
			l.never("a call about balancers", func() (bool, string) { return l.calls(balancing) > 0, l.CallLog(5) })
			l.stop()
			for _, name := range []string{"a", "b"} {
				svc := l.get(name)
				if len(svc.Finalizers) > 0 || len(svc.Status.Conditions) > 0 || l.Events(l.ctx, "default", name) != "" {
					t.Errorf("Service %s was touched: %v %v %s", name, svc.Finalizers, svc.Status.Conditions, l.Events(l.ctx, "default", name))
				}
			}
		})
	}
	t.Run("on", func(t *testing.T) { // the contrast: with the part on, the Services are told about the policies
		l := l.in(t)
		l.configure(testbed.UserConfig(l.Bed))
		l.runWith(nil)
		l.event("default", "a", "", "load-balancers")
		l.event("default", "b", "", "network-load-balancers")
		l.stop()
	})
	l.onlyTheServiceAccount()
}

// TestMeaninglessFlags: flags of the framework that change nothing here are accepted, each with one warning.
func TestMeaninglessFlags(t *testing.T) {
	flags := meaninglessFlags()
	l := newLab(t, sparse(2)).ready(flags...)
	text := l.log(l.ccm)
	for _, flag := range flags {
		name, _, _ := strings.Cut(flag, "=")
		var told []string
		for line := range strings.Lines(text) {
			if strings.Contains(line, name) && !strings.Contains(line, "FLAG: ") { // the framework lists all flags
				told = append(told, line)
			}
		}
		if len(told) != 1 || !strings.Contains(told[0], name+" is ignored: ") {
			t.Errorf("%s is mentioned in %d lines, want one warning:\n%s", name, len(told), strings.Join(told, ""))
		}
	}
	l.stop()
}

// TestC157NoSecretInTheLog: with everything logged and many errors, no key, passphrase, token or content of a Secret
// appears in the log or in an event. TestC154Principals looks at each kind of principal.
func TestC157NoSecretInTheLog(t *testing.T) {
	l := newLab(t, sparse(4))
	locked := encryptedKey(t, l.User)
	const markedTLS = "MARKED-tls-key-of-the-service"
	_, err := l.Cluster.Client().CoreV1().Secrets(v1.NamespaceDefault).Create(l.ctx, &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "tls"}, Type: v1.SecretTypeTLS,
		StringData: map[string]string{v1.TLSCertKey: markedTLS, v1.TLSPrivateKeyKey: markedTLS},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l.configure(cloudConfig(userAuth(l.User, inlineKey(locked), "passphrase: "+markedPassphrase)))
	l.Region.Fault(ocisim.Fault{Operation: "GetInstance", Status: 404, Times: 2})
	l.Region.Fault(ocisim.Fault{Operation: "GetVnic", Status: 401, Times: 2})
	l.Region.Fault(ocisim.Fault{Operation: "ListLoadBalancers", Drop: ocisim.BeforeApply, Times: 1})
	l.Region.Fault(ocisim.Fault{Operation: "CreateLoadBalancer", FailWork: true, Times: 2})
	l.Region.Fault(ocisim.Fault{Operation: "CreateNetworkLoadBalancer", Status: 400, Times: 1})
	l.service("a", "lb", nil)
	l.service("b", "nlb", nil)
	l.service("tls", "lb", func(svc *v1.Service) {
		svc.Annotations["service.beta.kubernetes.io/oci-load-balancer-ssl-ports"] = "80"
		svc.Annotations["service.beta.kubernetes.io/oci-load-balancer-tls-secret"] = "tls"
	})
	l.run("-v=10", "--use-service-account-credentials")
	l.eventually("nodes initialised", l.NodesInitialized)
	l.served("b")
	l.event("default", "a", "", "INTERNAL_ERROR")
	l.until("the framework's requests are logged", func() (bool, string) {
		return strings.Contains(l.log(l.ccm), "curl -v -XPATCH"), l.ccm.LogTail(3)
	})
	l.stop()
	if token := l.calls(func(c ocisim.Call) bool { return c.Status == 401 }); token == 0 {
		t.Error("no call was refused, so that no error has printed its principal")
	}
	l.noSecrets(markedPassphrase, locked, l.User.PrivateKeyPEM(), markedTLS, "TUFSS0VELXRscy1rZXktb2YtdGhlLXNlcnZpY2U=")
}
