// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

var update = flag.Bool("update", false, "write the golden files")

func subnetNamed(name string) *oci.Subnet {
	s := &oci.Subnet{ID: "ocid1.subnet.oc1.iad." + name, CIDRs: []string{"10.0.0.0/24"}}
	switch name {
	case "private":
		s.ProhibitPublicIP = true
	case "dual":
		s.IPv6CIDRs = []string{"fd00::/64"}
	case "ad1", "ad2":
		s.AvailabilityDomain = "Uocm:" + name
	}
	return s
}

func goldenNodes() []*v1.Node {
	node := func(name, pool string, addresses ...string) *v1.Node {
		n := &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": pool}},
			Spec:       v1.NodeSpec{ProviderID: "oci://ocid1.instance.oc1.iad." + name},
		}
		for _, a := range addresses {
			n.Status.Addresses = append(n.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: a})
		}
		return n
	}
	foreign := node("foreign", "front", "10.9.0.1")
	foreign.Spec.ProviderID = "aws:///zone/i-1"
	return []*v1.Node{
		node("b", "back", "10.0.8.2"),
		node("a", "front", "10.0.8.1", "fd00::1"),
		foreign,
	}
}

// TestModels compares the model and the problems of each Service in testdata/models with a golden file.
func TestModels(t *testing.T) {
	files, err := filepath.Glob("testdata/models/*.yaml")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d models: %v", len(files), err)
	}
	cfg := loadbalancer.Config{
		ClusterID: "c", CompartmentID: "ocid1.compartment.oc1..cluster", Subnet1: "ocid1.subnet.oc1.iad.public",
		Tags: oci.Tags{Freeform: map[string]string{"from": "config"}}, DisplayNamePrefix: "team1",
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			svc := &v1.Service{}
			if err := yaml.UnmarshalStrict(text, svc); err != nil {
				t.Fatal(err)
			}
			got := render(svc, cfg)
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the model differs from %s:\n%s", golden, diff)
			}
			for range 3 {
				if again := render(svc, cfg); again != got {
					t.Fatal("the same Service has two models")
				}
			}
		})
	}
}

// goldenSecrets are the Secrets of a Service. One that is called missing is, one that is called old has expired.
func goldenSecrets(svc *v1.Service) map[types.NamespacedName]loadbalancer.SecretFact {
	facts := map[types.NamespacedName]loadbalancer.SecretFact{}
	for _, name := range loadbalancer.SecretsOf(svc) {
		fact := loadbalancer.SecretFact{Certificate: oci.Certificate{Public: "certificate " + name.String(), Key: "key"}}
		switch name.Name {
		case "missing":
			fact = loadbalancer.SecretFact{Problem: "it does not exist"}
		case "old":
			fact.Warning = "the certificate has expired: it was valid until 1999-01-01T00:00:00Z"
		}
		facts[name] = fact
	}
	return facts
}

// render prints what a Service comes to when it has no balancer yet. A model with fatal problems is never applied and not
// shown.
func render(svc *v1.Service, cfg loadbalancer.Config) string {
	settings, problems := loadbalancer.ParseAnnotations(svc.Annotations, loadbalancer.WantedKind(svc.Annotations))
	var facts loadbalancer.Facts
	for _, id := range loadbalancer.SubnetCandidates(settings, cfg) {
		facts.Subnets = append(facts.Subnets, subnetNamed(id[strings.LastIndex(id, ".")+1:]))
	}
	facts.Certificates = goldenSecrets(svc)
	model, more := loadbalancer.Desired(svc, goldenNodes(), settings, cfg, facts)
	problems = append(problems, more...)
	var out strings.Builder
	for _, p := range problems {
		severity := "warning"
		if p.Fatal {
			severity = "FATAL"
		}
		fmt.Fprintf(&out, "%s %s: %s\n", severity, p.Reason, p.Message)
	}
	if len(problems.Fatal()) == 0 {
		out.WriteString(model.String())
	}
	return out.String()
}
