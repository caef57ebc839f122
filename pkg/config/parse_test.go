// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/taglabel"
)

func readTestdata(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestEveryKeyIsRead(t *testing.T) {
	c, report := Parse("full.yaml", readTestdata(t, "full.yaml"))
	if diff := cmp.Diff([]string{}, messages(report.Strict())); diff != "" {
		t.Errorf("problems (-want +got)\n%s", diff)
	}
	want := &Config{
		Compartment: "ocid1.compartment.oc1..aaaacompartment",
		VCN:         "ocid1.vcn.oc1.phx.aaaavcn",
		RegionKey:   "phx",
		ClusterID:   "prod-1",
		Auth: Auth{
			Region:      "us-phoenix-1",
			Tenancy:     "ocid1.tenancy.oc1..aaaatenancy",
			User:        "ocid1.user.oc1..aaaauser",
			Key:         "-----BEGIN RSA PRIVATE KEY-----\nbWFya2VkLXByaXZhdGUta2V5\n-----END RSA PRIVATE KEY-----\n",
			Fingerprint: "8c:bf:17:7b:5f:e0:7d:13:75:11:d6:39:0d:e2:84:74",
			Passphrase:  "marked-passphrase",
		},
		LoadBalancer: LoadBalancer{
			Subnet1:                    "ocid1.subnet.oc1.phx.aaaasubnet1",
			Subnet2:                    "ocid1.subnet.oc1.phx.aaaasubnet2",
			SecurityListManagementMode: ModeFrontend,
			SecurityLists:              map[string]string{"ocid1.subnet.oc1.phx.aaaasubnet1": "ocid1.securitylist.oc1.phx.aaaalist"},
		},
		NetworkLoadBalancer: NetworkLoadBalancer{SecurityListManagementMode: ModeFrontend},
		RateLimiter:         RateLimiter{QPSRead: 12.5, BucketRead: 3, QPSWrite: 4, BucketWrite: 2},
		Metrics:             Metrics{Enabled: true, CompartmentID: "ocid1.compartment.oc1..aaaametrics", Namespace: "oke", ResourceGroup: "ccm", Prefix: "PROD_"},
		Tags: Tags{
			LoadBalancer: TagSet{
				Freeform: map[string]string{"team": "platform", "cost": "42"},
				Defined:  map[string]map[string]any{"Operations": {"CostCenter": "42", "Billable": true}},
			},
			Common:      TagSet{Freeform: map[string]string{"stage": "prod"}, Defined: map[string]map[string]any{"Common": {"stage": "prod"}}},
			BlockVolume: TagSet{Freeform: map[string]string{"kind": "volume"}, Defined: map[string]map[string]any{"Storage": {"tier": "gold"}}},
			FSS:         TagSet{Freeform: map[string]string{"kind": "fss"}, Defined: map[string]map[string]any{"Storage": {"tier": "silver"}}},
			Lustre:      TagSet{Freeform: map[string]string{"kind": "lustre"}, Defined: map[string]map[string]any{"Storage": {"tier": 3}}},
		},
		NodeLabels: NodeLabels{
			DefinedTags:  []taglabel.Tag{{Namespace: "Operations", Key: "CostCenter"}},
			FreeformTags: []taglabel.Tag{{Key: "pool"}, {Key: "team"}},
		},
		Endpoints: map[string]string{
			"compute":             "https://compute.example.com",
			"blockstorage":        "https://blocks.example.com",
			"virtualnetwork":      "https://network.example.com",
			"identity":            "https://identity.example.com",
			"loadbalancer":        "https://127.0.0.1:18443",
			"networkloadbalancer": "http://127.0.0.1:18080",
		},
		CAFile: "ca.pem",
	}
	if diff := cmp.Diff(want, c, cmpopts.IgnoreUnexported(Config{}, Environment{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// The file of this test names each key of the table that has no successor, except those that exclude others.
	for _, k := range Keys() {
		if excluded := k.Path == "auth.keyFile" || k.Path == "caBundle"; k.Replacement == "" && !excluded && c.Origin(k.Path).source != fromFile {
			t.Errorf("%s is not in testdata/full.yaml", k.Path)
		}
	}
}

func TestDefaults(t *testing.T) {
	c, report := Parse("f", []byte(user))
	if diff := cmp.Diff([]string{}, messages(report.Strict())); diff != "" {
		t.Fatalf("problems (-want +got)\n%s", diff)
	}
	if got, want := c.RateLimiter.Read(), (Limit{QPS: 20, Burst: 5}); got != want {
		t.Errorf("read limit %v, want %v", got, want)
	}
	if got, want := c.RateLimiter.Write(), (Limit{QPS: 20, Burst: 5}); got != want {
		t.Errorf("write limit %v, want %v", got, want)
	}
	if c.LoadBalancer.Disabled || c.LoadBalancer.SecurityListManagementMode != "" || len(c.LoadBalancer.Subnets()) != 0 || c.Metrics.Enabled || !c.Tags.LoadBalancer.IsEmpty() {
		t.Errorf("defaults: %+v %+v %+v", c.LoadBalancer, c.Metrics, c.Tags)
	}
	// Nothing stands in for the region.
	c, _ = Parse("f", []byte("useInstancePrincipals: true\n"))
	if c.Auth.Region != "" || c.Origin("auth.region").IsSet() {
		t.Errorf("region is %q from %v, want none", c.Auth.Region, c.Origin("auth.region"))
	}
}

func TestZeroMeansDefaultInTheLimiter(t *testing.T) {
	c, report := Parse("f", []byte(user+"rateLimiter: {rateLimitQPSRead: 0, rateLimitBucketWrite: 0, rateLimitQPSWrite: 1e1, disableRateLimiter: yes}\n"))
	if len(report.Problems) > 0 {
		t.Fatal(messages(report))
	}
	if want := (RateLimiter{QPSRead: 20, BucketRead: 5, QPSWrite: 10, BucketWrite: 5, Disabled: true}); c.RateLimiter != want {
		t.Errorf("got %+v, want %+v", c.RateLimiter, want)
	}
}

// TestProblems puts each file after a complete user principal; the lines count from the end of it.
func TestProblems(t *testing.T) {
	for _, test := range []struct {
		name, file string
		want       []string // with line 1 for the first line of file
	}{
		{"nothing", "", nil},
		{"null blocks are no blocks", "loadBalancer:\nmetrics:\nrateLimiter: ~\n", nil},
		{"unknown", "nodeSelector: x\n", []string{"f:1:1: warning: nodeSelector: unknown key; known here: useInstancePrincipals, useWorkloadIdentity, auth, compartment, vcn, regionKey, clusterId, loadBalancer, networkLoadBalancer, rateLimiter, metrics, tags, nodeLabels, caBundle, caFile, endpoints"}},
		{"typo", "compartmnet: ocid1.compartment.oc1..aaaa\n", []string{"f:1:1: warning: compartmnet: unknown key; did you mean compartment?"}},
		{"wrong case", "regionkey: phx\n", []string{"f:1:1: warning: regionkey: unknown key: write regionKey, exactly so"}},
		{"hyphens", "cluster-id: a\n", []string{"f:1:1: warning: cluster-id: unknown key: write clusterId, exactly so"}},
		{"wrong place", "subnet1: ocid1.subnet.oc1.phx.aaaa\n", []string{"f:1:1: warning: subnet1: unknown key here; its place is loadBalancer.subnet1"}},
		{"ambiguous place", "freeform: {a: b}\n", []string{"f:1:1: warning: freeform: unknown key; known here: useInstancePrincipals, useWorkloadIdentity, auth, compartment, vcn, regionKey, clusterId, loadBalancer, networkLoadBalancer, rateLimiter, metrics, tags, nodeLabels, caBundle, caFile, endpoints"}},
		{"unknown service", "endpoints: {compue: https://x}\n", []string{"f:1:13: warning: endpoints.compue: unknown key; did you mean compute?"}},
		{"bad endpoint", "endpoints: {compute: iaas.example.com}\n", []string{`f:1:22: error: endpoints.compute: want a URL that begins with https:// (or http:// for a local test), got "iaas.example.com"`}},
		{"endpoint with path", "endpoints: {compute: https://u:p@x/20160918}\n", []string{`f:1:22: error: endpoints.compute: want scheme and host only, such as https://iaas.example.com, got "https://u:xxxxx@x/20160918"`}},
		{"C160", "loadbalancer:\n  securityListManagmentMode: None\n  subnet1: ocid1.subnet.oc1.phx.aaaa bbbb\n", []string{
			"f:1:1: warning: loadbalancer: unknown key: write loadBalancer, exactly so",
			"f:2:3: warning: loadBalancer.securityListManagmentMode: unknown key; did you mean securityListManagementMode?",
			`f:3:12: warning: loadBalancer.subnet1: an OCID has no blanks, but there is one at position 26, got "ocid1.subnet.oc1.phx.aaaa bbbb"`,
		}},
		{"OCID with a blank", "loadBalancer:\n  subnet1: \" ocid1.subnet.oc1.phx.aaaa\"\n", []string{`f:2:12: error: loadBalancer.subnet1: an OCID has no blanks, but there is one at position 1, got " ocid1.subnet.oc1.phx.aaaa"`}},
		{"no OCID", "vcn: my-network\n", []string{`f:1:6: error: vcn: not an OCID, which has the form ocid1.<type>.<realm>.[region].<unique>, got "my-network"`}},
		{"half an OCID", "vcn: ocid1.vcn.oc1.phx.\n", []string{`f:1:6: error: vcn: not a complete OCID, which has the form ocid1.<type>.<realm>.[region].<unique>, got "ocid1.vcn.oc1.phx."`}},
		{"placeholder", "vcn: ocid1.vcn.oc1.phx.<unique>\n", []string{`f:1:6: error: vcn: not an OCID: the character at position 19 cannot be in one, got "ocid1.vcn.oc1.phx.<unique>"`}},
		{"OCID of something else", "vcn: ocid1.subnet.oc1.phx.aaaa\n", []string{"f:1:6: warning: vcn: want the OCID of a vcn, got that of a subnet"}},
		{"early tenancy", "compartment: ocidv1:tenancy:oc1:phx:1460406592660:aaaa\n", nil},
		{"wrong type: list", "loadBalancer: {subnet1: [a]}\n", []string{"f:1:25: error: loadBalancer.subnet1: want an OCID of a subnet, got a list"}},
		{"wrong type: block", "loadBalancer: true\n", []string{"f:1:15: error: loadBalancer: want a mapping with the keys disabled, subnet1, subnet2, securityListManagementMode, disableSecurityListManagement, securityLists; got a scalar"}},
		{"wrong type: bool", "loadBalancer: {disabled: 1}\n", []string{`f:1:26: error: loadBalancer.disabled: want a bool (true or false), got "1"`}},
		{"quoted bool", "loadBalancer: {disabled: \"true\"}\n", []string{"f:1:26: error: loadBalancer.disabled: want a bool (true or false), got text: remove the quotes"}},
		{"wrong type: number", "rateLimiter: {rateLimitQPSRead: fast, rateLimitBucketRead: 1.5}\n", []string{
			`f:1:33: error: rateLimiter.rateLimitQPSRead: want a number, got "fast"`,
			`f:1:60: error: rateLimiter.rateLimitBucketRead: want an integer, got "1.5"`,
		}},
		{"negative number", "rateLimiter: {rateLimitQPSRead: -1, rateLimitBucketRead: .inf, rateLimitQPSWrite: .nan}\n", []string{
			`f:1:33: error: rateLimiter.rateLimitQPSRead: must not be negative, got "-1"`,
			`f:1:58: error: rateLimiter.rateLimitBucketRead: want an integer, got ".inf"`,
			`f:1:83: error: rateLimiter.rateLimitQPSWrite: want a number, got ".nan"`,
		}},
		{"mode", "loadBalancer: {securityListManagementMode: frontend}\n", []string{`f:1:44: error: loadBalancer.securityListManagementMode: want All, Frontend or None (did you mean Frontend?), got "frontend"`}},
		{"disabled balancers need no care", "loadBalancer: {disabled: true, securityListManagementMode: frontend}\n", []string{
			`f:1:60: warning: loadBalancer.securityListManagementMode: want All, Frontend or None (did you mean Frontend?), got "frontend" (ignored because loadBalancer.disabled is true)`,
		}},
		{"metrics", "metrics: {namespace: a, resourcegroup: b}\n", []string{
			"f:1:1: error: metrics.compartmentID: required in a metrics block",
			"f:1:25: error: metrics.resourcegroup: unknown key: write resourceGroup, exactly so (metrics.resourceGroup: required in a metrics block)",
		}},
		{"twice", "vcn: ocid1.vcn.oc1.phx.aaaa\nvcn: ocid1.vcn.oc1.phx.bbbb\n", []string{"f:2:1: warning: vcn: set twice: where they differ, this one counts and not that of line 7"}},
		{"tags", "tags: {fss: {freeform: {a: [b]}, defined: {a: b, c: {d: {e: f}}}}}\n", []string{
			"f:1:28: error: tags.fss.freeform.a: want text, got a list",
			"f:1:47: error: tags.fss.defined.a: want a map from key to value, got a scalar",
			"f:1:57: error: tags.fss.defined.c.d: want text, a number or a bool, got a mapping",
		}},
		{"long tags", "tags: {fss: {freeform: {a: " + strings.Repeat("ü", 257) + "}}}\n", []string{"f:1:28: warning: tags.fss.freeform.a: a tag's value has at most 256 characters, this one has 257"}},
		{"node labels", "nodeLabels:\n  definedTags: [Operations.CostCenter, CostCenter]\n  freeformTags:\n  - pool\n  - a.b\n  - fault-domain\n  - [x]\n", []string{
			`f:2:40: error: nodeLabels.definedTags: want the key of a defined tag in the form namespace.key, got "CostCenter"`,
			`f:5:5: error: nodeLabels.freeformTags: the key of a freeform tag has no period; that of a defined tag has, got "a.b"`,
			`f:6:5: error: nodeLabels.freeformTags: the label oci.oraclecloud.com/fault-domain has a meaning of its own, got "fault-domain"`,
			"f:7:5: error: nodeLabels.freeformTags: want a tag's key, got a list",
		}},
		{"node labels that collide", "nodeLabels:\n  freeformTags:\n  - a/b\n  - a:b\n  - a/b\n", []string{
			`f:4:5: warning: nodeLabels.freeformTags: "a/b" in line 9 becomes the same label, oci.oraclecloud.com/a_b: this one is left out, got "a:b"`,
			`f:5:5: warning: nodeLabels.freeformTags: "a/b" in line 9 becomes the same label, oci.oraclecloud.com/a_b: this one is left out, got "a/b"`,
		}},
		{"node labels of a wrong type", "nodeLabels: {freeformTags: pool}\n", []string{"f:1:28: error: nodeLabels.freeformTags: want a list of keys, got a scalar"}},
		{"security lists", "loadBalancer: {securityLists: {ocid1.vcn.oc1.phx.aaaa: x}}\n", []string{
			"f:1:32: warning: loadBalancer.securityLists: want the OCID of a subnet, got that of a vcn",
			`f:1:56: error: loadBalancer.securityLists.ocid1.vcn.oc1.phx.aaaa: not an OCID, which has the form ocid1.<type>.<realm>.[region].<unique>, got "x"`,
		}},
		{"key that is no word", "[a, b]: c\n", []string{"f:1:1: error: want a word as key, got a list"}},
		{"cluster id", "clusterId: \" a\"\n", []string{`f:1:12: error: clusterId: must not begin or end with blanks, got " a"`}},
		{"blank in a key", "regionKey: p hx\n", []string{`f:1:12: error: regionKey: must not contain blanks, got "p hx"`}},
		{"long cluster id", "clusterId: " + strings.Repeat("a", 257) + "\n", []string{"f:1:12: error: clusterId: want at most 256 characters, which is what fits into a tag; got 257"}},
		{"CA of a wrong type", "caBundle: [a]\n", []string{"f:1:11: error: caBundle: want PEM certificates, got a list"}},
		{"text that is no URL", "endpoints: {compute: \"http://a b\", identity: [a]}\n", []string{"f:1:22: error: endpoints.compute: not a URL", "f:1:46: error: endpoints.identity: want a URL, got a list"}},
		{"long tag key", "tags: {fss: {freeform: {" + strings.Repeat("k", 101) + ": a}}}\n", []string{"f:1:25: warning: tags.fss.freeform: a tag's key has at most 100 characters, this one has 101"}},
		{"list of lists", "loadBalancer: {securityLists: {ocid1.subnet.oc1.phx.aaaa: [x]}}\n", []string{"f:1:59: error: loadBalancer.securityLists.ocid1.subnet.oc1.phx.aaaa: want an OCID, got a list"}},
		{"CA twice", "caFile: a\ncaBundle: b\n", []string{"f:1:1: error: caFile: excludes caBundle (line 8): set one of the two", "f:2:11: error: caBundle: want certificates in PEM form, found none"}},
		{"key as path", "caFile: |\n  -----BEGIN CERTIFICATE-----\n", []string{"f:1:9: error: caFile: want the path of a file, not its content"}},
		{"secret in a wrong place", "vcn: |\n  -----BEGIN MARKED\n", []string{"f:1:6: error: vcn: an OCID has no blanks, but there is one at position 11, got a text of 18 characters"}},
		{"secret as key", "\"-----BEGIN MARKED\": a\n", []string{"f:1:1: warning: (a text of 17 characters): unknown key; known here: useInstancePrincipals, useWorkloadIdentity, auth, compartment, vcn, regionKey, clusterId, loadBalancer, networkLoadBalancer, rateLimiter, metrics, tags, nodeLabels, caBundle, caFile, endpoints"}},
		{"second document", "---\nvcn: x\n", []string{"f:2:1: warning: a second YAML document begins here; it is ignored"}},
		{"broken second document", "---\nvcn: [\n", []string{"f:2: warning: not YAML: did not find expected node content"}},
		{"empty second document", "---\n", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, report := Parse("f", []byte(user+test.file))
			for i := range report.Problems {
				report.Problems[i].Line -= userLines
			}
			if diff := cmp.Diff(append([]string{}, test.want...), messages(report)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for _, p := range report.Strict().Problems {
				if p.Severity == Warning {
					t.Errorf("no error under strict: %v", p)
				}
			}
		})
	}
}

func TestNotAConfig(t *testing.T) {
	for _, test := range []struct {
		name, file, want string
	}{
		{"empty", "", "f:1: error: the file is empty: it has no keys"},
		{"comments", "# nothing\n", "f:1: error: the file is empty: it has no keys"},
		{"null", "\n---\n...\n", "f:3:1: error: the file is empty: it has no keys"},
		{"list", "- a\n", "f:1:1: error: want a mapping with the keys useInstancePrincipals, useWorkloadIdentity, auth, compartment, vcn, regionKey, clusterId, loadBalancer, networkLoadBalancer, rateLimiter, metrics, tags, nodeLabels, caBundle, caFile, endpoints; got a list"},
		{"text", "hello\n", "f:1:1: error: want a mapping with the keys useInstancePrincipals, useWorkloadIdentity, auth, compartment, vcn, regionKey, clusterId, loadBalancer, networkLoadBalancer, rateLimiter, metrics, tags, nodeLabels, caBundle, caFile, endpoints; got a scalar"},
		{"tab", "auth:\n  region: a\n\ttenancy: b\n", "f:3:1: error: not YAML: the line is indented with a tab; use blanks"},
		{"indentation", "auth:\n  region: a\n  user: b\n tenancy: c\nvcn: d\n", "f:4: error: not YAML: did not find expected key"},
		{"open quote", "vcn: a\nregionKey: \"b\ncompartment: c\n", "f:2: error: not YAML: found unexpected end of stream"},
		{"unquoted star", "auth:\n  passphrase: *marked\n", "f:2: error: not YAML: a value that begins with * must be quoted"},
		{"binary", "vcn: \x01\n", "f:1: error: not YAML: control characters are not allowed"},
		{"no credentials", "compartment: ocid1.compartment.oc1..aaaa\n", "f:1:1: error: auth: no credentials: set useInstancePrincipals, or useWorkloadIdentity, or tenancy, user, key and fingerprint of a user"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, report := Parse("f", []byte(test.file))
			if diff := cmp.Diff([]string{test.want}, messages(report)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if c == nil || report.Err() == nil {
				t.Errorf("config %v, error %v", c, report.Err())
			}
		})
	}
}

func TestOtherSpellingsOfTheSameYAML(t *testing.T) {
	want, _ := Parse("f", []byte(user+"vcn: ocid1.vcn.oc1.phx.aaaa\n"))
	for name, file := range map[string]string{
		"byte order mark": "\ufeff" + user + "vcn: ocid1.vcn.oc1.phx.aaaa\n",
		"DOS":             strings.ReplaceAll(user+"vcn: ocid1.vcn.oc1.phx.aaaa\n", "\n", "\r\n"),
		"anchors":         strings.Replace(user, "region: us-phoenix-1", "region: &r us-phoenix-1", 1) + "vcn: &v ocid1.vcn.oc1.phx.aaaa\n",
		"merge":           "auth: {<<: &a {region: us-phoenix-1, user: overridden}," + strings.ReplaceAll(strings.TrimPrefix(user, "auth:\n  region: us-phoenix-1\n"), "\n", ",\n") + "}\nvcn: ocid1.vcn.oc1.phx.aaaa\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, report := Parse("f", []byte(file))
			if len(report.Problems) > 0 {
				t.Fatalf("%v\n%s", messages(report), file)
			}
			if diff := cmp.Diff(want, c, cmpopts.IgnoreUnexported(Config{}, Environment{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestMergeLoopEnds(t *testing.T) {
	_, report := Parse("f", []byte(user+"tags: &t\n  <<: *t\n"))
	if report.Err() == nil {
		t.Error("a mapping that includes itself went unnoticed")
	}
}

func TestTwiceTheSameBlock(t *testing.T) {
	c, report := Parse("f", []byte(user+"loadBalancer: {disabled: true, subnet1: ocid1.subnet.oc1.phx.aaaa}\nloadBalancer: {subnet1: ocid1.subnet.oc1.phx.bbbb}\n"))
	if report.Err() != nil || len(report.Problems) != 1 {
		t.Fatal(messages(report))
	}
	if l := c.LoadBalancer; !l.Disabled || l.Subnet1 != "ocid1.subnet.oc1.phx.bbbb" {
		t.Errorf("the blocks were not laid over each other: %+v", l)
	}
}

func TestFiveMistakes(t *testing.T) {
	_, report := ReadFile("testdata/five-mistakes.yaml", true)
	if len(report.Errors()) != 5 {
		t.Errorf("%d errors, want 5", len(report.Errors()))
	}
	golden(t, "five-mistakes.golden", lines(messages(report)...))
}

func TestReportErr(t *testing.T) {
	_, report := Parse("f", []byte(user+"vcn: x\nvnc: y\n"))
	err := report.Err()
	if err == nil || !strings.Contains(err.Error(), "f:7:6: error: vcn") || strings.Contains(err.Error(), "vnc") {
		t.Errorf("got %v, want the error and not the warning", err)
	}
	if got := len(report.Warnings()); got != 1 {
		t.Errorf("%d warnings, want 1", got)
	}
	if got := len(report.Strict().Errors()); got != 2 {
		t.Errorf("%d errors under strict, want 2", got)
	}
}

func TestReportLog(t *testing.T) {
	_, report := Parse("f", []byte(user+"vcn: x\nvnc: y\n"))
	var out strings.Builder
	logger := funcr.New(func(_, args string) { out.WriteString(args + "\n") }, funcr.Options{})
	report.Log(klog.NewContext(t.Context(), logger))
	for _, want := range []string{"Cloud config is wrong", "f:7:6: error: vcn", "Cloud config needs attention", "f:8:1: warning: vnc"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines, want 2", n)
	}
}
