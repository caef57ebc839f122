// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// ruleTestNetwork is the network of the golden files: balancers are in public or dual, nodes in workers and far.
func ruleTestNetwork() map[string]ruleSubnet {
	id := func(name string) string { return "ocid1.subnet.oc1.iad." + name }
	return map[string]ruleSubnet{
		id("public"):  {List: "list-public", V4: []string{"10.0.0.0/24"}},
		id("second"):  {List: "list-second", V4: []string{"10.0.1.0/24"}},
		id("dual"):    {List: "list-dual", V4: []string{"10.0.2.0/24"}, V6: []string{"fd00:0:0:2::/64"}},
		id("workers"): {List: "list-workers", V4: []string{"10.0.8.0/24"}, V6: []string{"FD00:0:0:8::/64"}},
		id("far"):     {List: "list-far", V4: []string{"10.0.9.0/24", "10.0.10.0/24"}, V6: []string{"fd00:0:0:9::/64"}},
	}
}

// TestRuleModels compares the security rules of each Service in testdata/rules with a golden file. Written from contract
// ccm.md §4.9 and §4.10.
func TestRuleModels(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no Services: %v", err)
	}
	update := flag.Lookup("update").Value.String() == "true"
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
			got := renderRules(svc)
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the rules differ from %s:\n%s", golden, diff)
			}
			if again := renderRules(svc); again != got {
				t.Fatal("the same Service has other rules the next time")
			}
		})
	}
}

func renderRules(svc *v1.Service) string {
	network := ruleTestNetwork()
	cfg := Config{CompartmentID: "c", Subnet1: "ocid1.subnet.oc1.iad.public"}
	s, problems := ParseAnnotations(svc.Annotations, WantedKind(svc.Annotations))
	var facts Facts
	for _, id := range SubnetCandidates(s, cfg) {
		subnet := &oci.Subnet{ID: id, CIDRs: network[id].V4, IPv6CIDRs: network[id].V6}
		if strings.HasSuffix(id, "second") || len(s.Subnet2) > 0 {
			subnet.AvailabilityDomain = "ad"
		}
		facts.Subnets = append(facts.Subnets, subnet)
	}
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1.NodeSpec{ProviderID: "oci://ocid1.instance.oc1.iad.a"},
		Status: v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.0.8.1"}, {Type: v1.NodeInternalIP, Address: "fd00:0:0:8::1"}}},
	}
	model, more := Desired(svc, []*v1.Node{node}, s, cfg, facts)
	var out strings.Builder
	for _, p := range append(problems, more...) {
		fmt.Fprintf(&out, "%s (fatal: %t): %s\n", p.Reason, p.Fatal, p.Message)
	}
	if len(append(problems, more...).Fatal()) > 0 {
		return out.String()
	}
	choice := chooseRules(s, cfg)
	need := needOf(svc, s, choice, model)
	if need.Nodes {
		need.NodeSubnets = []string{"ocid1.subnet.oc1.iad.far", "ocid1.subnet.oc1.iad.workers"}
	}
	if need.Groups {
		need.Group = "managed"
	}
	fmt.Fprintf(&out, "mode %s\n", choice.describe(s.Kind))
	rules := rulesOf(need, network)
	targets := make([]firewall.Target, 0, len(rules))
	for target := range rules {
		targets = append(targets, target)
	}
	slices.SortFunc(targets, func(a, b firewall.Target) int { return strings.Compare(a.String(), b.String()) })
	for _, target := range targets {
		fmt.Fprintf(&out, "%s\n", target)
		for _, r := range rules[target] {
			fmt.Fprintf(&out, "  %s\n", r)
			if canonical, err := r.Canonical(); err != nil || canonical != r {
				fmt.Fprintf(&out, "  NOT CANONICAL: %v\n", err)
			}
		}
	}
	return out.String()
}

// C058: an annotation comes before the key of the configuration, if that is written in the file, and that before what is
// built in; the key for load balancers is not for network load balancers.
func TestWhichMode(t *testing.T) {
	type chosen = RuleChoice
	configs := map[string]RuleMode{"absent": "", "None": RulesNone, "Frontend": RulesFrontend, "All": RulesAll}
	for _, kind := range []oci.BalancerKind{oci.KindLB, oci.KindNLB} {
		for name, configured := range configs {
			cfg, other := Config{RulesLB: configured}, Config{RulesNLB: configured}
			if kind == oci.KindNLB {
				cfg, other = other, cfg
			}
			byConfig := chosen{configured, RulesByConfig}
			builtIn := chosen{RulesAll, RulesByDefault}
			if kind == oci.KindNLB {
				builtIn.Mode = RulesNone
			}
			if configured == "" {
				byConfig = builtIn
			}
			for _, test := range []struct {
				annotations map[string]string
				want        chosen
			}{
				{nil, byConfig},
				{map[string]string{listModeKey(kind): "all"}, chosen{RulesAll, RulesByAnnotation}},
				{map[string]string{listModeKey(kind): "Frontend"}, chosen{RulesFrontend, RulesByAnnotation}},
				{map[string]string{listModeKey(kind): "NONE"}, chosen{RulesNone, RulesByAnnotation}},
				{map[string]string{annotationRuleMode: "nsg"}, chosen{RulesNSG, RulesByAnnotation}},
				{map[string]string{annotationRuleMode: "sl-all"}, chosen{RulesAll, RulesByAnnotation}},
				{map[string]string{annotationRuleMode: "SL-FRONTEND"}, chosen{RulesFrontend, RulesByAnnotation}},
				{map[string]string{annotationRuleMode: "none", listModeKey(kind): "All"}, chosen{RulesNone, RulesByAnnotation}},
			} {
				s, problems := ParseAnnotations(test.annotations, kind)
				if len(problems) > 0 {
					t.Errorf("%s, %v: %v", kind, test.annotations, problems)
				}
				if got := chooseRules(s, cfg); got != test.want {
					t.Errorf("%s, config %s, %v: got %v, want %v", kind, name, test.annotations, got, test.want)
				}
				if got := chooseRules(s, other); test.want == byConfig && got != builtIn {
					t.Errorf("%s, %s in the config of the other type: got %v, want %v", kind, name, got, builtIn)
				}
			}
			for _, key := range []string{listModeKey(kind), annotationRuleMode} {
				if _, problems := ParseAnnotations(map[string]string{key: "Sometimes"}, kind); len(problems.Fatal()) != 1 || problems[0].Reason != ReasonInvalidAnnotation {
					t.Errorf("%s: Sometimes: %v", key, problems)
				}
			}
		}
	}
}

// What the existing implementation did: it knew no configuration, and one spelling (ccm.md §2.1–2.3, §4.9).
func TestFormerMode(t *testing.T) {
	for _, test := range []struct {
		kind       oci.BalancerKind
		key, value string
		want       RuleMode
	}{
		{oci.KindLB, "", "", RulesAll},
		{oci.KindNLB, "", "", RulesNone},
		{oci.KindLB, annotationListMode, "Frontend", RulesFrontend},
		{oci.KindLB, annotationListMode, "None", RulesNone},
		{oci.KindLB, annotationListMode, "none", RulesAll},
		{oci.KindLB, annotationListModeNLB, "None", RulesAll},
		{oci.KindNLB, annotationListModeNLB, "All", RulesAll},
		{oci.KindNLB, annotationListModeNLB, "all", RulesNone},
		{oci.KindNLB, annotationListMode, "All", RulesNone},
		{oci.KindNLB, annotationRuleMode, "nsg", RulesNSG},
		{oci.KindLB, annotationRuleMode, "sl-frontend", RulesFrontend},
		{oci.KindLB, annotationRuleMode, "None", RulesNone},
		{oci.KindLB, annotationRuleMode, "none", RulesNone}, // an error there
	} {
		if got := formerRules(map[string]string{test.key: test.value}, test.kind); got.Mode != test.want || got.From != RulesByFormer {
			t.Errorf("%s, %s: %s: got %v, want %s", test.kind, test.key, test.value, got, test.want)
		}
	}
}

// Who changes a mode decides about what becomes of the rules of the former one.
func TestModeChanges(t *testing.T) {
	needIn := func(m RuleMode) Need { return Need{ruleParts: m.parts(), HealthPort: 1} }
	before := func(m RuleMode, from RuleOrigin, kept ...RuleMode) *RulesApplied {
		r := &RulesApplied{RuleChoice: RuleChoice{m, from}, Need: needIn(m)}
		for _, k := range kept {
			r.Kept = append(r.Kept, needIn(k))
		}
		return r
	}
	for _, test := range []struct {
		name   string
		before *RulesApplied
		now    RuleChoice
		kept   string
		left   bool
	}{
		{"nothing known", nil, RuleChoice{RulesNone, RulesByConfig}, "", false},
		{"no change", before(RulesAll, RulesByDefault), RuleChoice{RulesAll, RulesByDefault}, "", false},
		{"the config says what was the default", before(RulesAll, RulesByDefault), RuleChoice{RulesAll, RulesByConfig}, "", false},
		{"config: all to none", before(RulesAll, RulesByConfig), RuleChoice{RulesNone, RulesByConfig}, "frontend nodes", true},
		{"config: default to none", before(RulesAll, RulesByDefault), RuleChoice{RulesNone, RulesByConfig}, "frontend nodes", true},
		{"config: all to frontend", before(RulesAll, RulesByDefault), RuleChoice{RulesFrontend, RulesByConfig}, "nodes", true},
		{"config: frontend to all", before(RulesFrontend, RulesByConfig), RuleChoice{RulesAll, RulesByConfig}, "", false},
		{"config: none to all", before(RulesNone, RulesByConfig), RuleChoice{RulesAll, RulesByDefault}, "", false},
		{"upgrade, config none", before(RulesAll, RulesByFormer), RuleChoice{RulesNone, RulesByConfig}, "frontend nodes", true},
		{"upgrade, annotation in another spelling", before(RulesAll, RulesByFormer), RuleChoice{RulesNone, RulesByAnnotation}, "frontend nodes", true},
		{"what was left stays left", before(RulesNone, RulesByConfig, RulesAll), RuleChoice{RulesNone, RulesByConfig}, "frontend nodes", false},
		{"what was left is managed again in part", before(RulesNone, RulesByConfig, RulesAll), RuleChoice{RulesFrontend, RulesByConfig}, "nodes", false},
		{"and left again", before(RulesFrontend, RulesByConfig, RulesNone, RulesAll), RuleChoice{RulesNone, RulesByConfig}, "frontend nodes, frontend", true},
		{"annotation: all to none", before(RulesAll, RulesByDefault), RuleChoice{RulesNone, RulesByAnnotation}, "", false},
		{"annotation gone", before(RulesAll, RulesByAnnotation), RuleChoice{RulesNone, RulesByConfig}, "", false},
		{"annotation to another", before(RulesAll, RulesByAnnotation), RuleChoice{RulesNSG, RulesByAnnotation}, "", false},
		{"an annotation closes what was left", before(RulesNone, RulesByConfig, RulesAll), RuleChoice{RulesNone, RulesByAnnotation}, "", false},
	} {
		kept, left := nextRules(test.before, test.now)
		var got []string
		for _, n := range kept {
			var parts []string
			for name, has := range map[string]bool{"frontend": n.Frontend, "nodes": n.Nodes, "groups": n.Groups} {
				if has {
					parts = append(parts, name)
				}
			}
			slices.Sort(parts)
			got = append(got, strings.Join(parts, " "))
		}
		if strings.Join(got, ", ") != test.kept || (left != nil) != test.left {
			t.Errorf("%s: kept %q, left %v; want %q, %t", test.name, got, left, test.kept, test.left)
		}
	}
}

func TestSourceRanges(t *testing.T) {
	const key = annotationSourceRanges
	for _, test := range []struct {
		name       string
		spec       []string
		annotation string
		mode       string
		want       string
		reasons    string
	}{
		{name: "everybody", mode: oci.IPModeV4, want: "0.0.0.0/0"},
		{name: "everybody, IPv6", mode: oci.IPModeV6, want: "::/0"},
		{name: "everybody, both", mode: oci.IPModeDual, want: "0.0.0.0/0 ::/0"},
		{name: "spec", spec: []string{"203.0.113.7/24", " 198.51.100.0/24", "203.0.113.0/24", "FD00::1/8"}, want: "198.51.100.0/24 203.0.113.0/24 fd00::/8"},
		{name: "annotation", annotation: "203.0.113.0/24, 198.51.100.0/24,", want: "198.51.100.0/24 203.0.113.0/24"},
		{name: "spec before annotation", spec: []string{"10.0.0.0/8"}, annotation: "203.0.113.0/24", want: "10.0.0.0/8", reasons: ReasonAnnotationIgnored},
		{name: "bad spec", spec: []string{"10.0.0.0/8", "10.0.0.1"}, want: "10.0.0.0/8", reasons: ReasonInvalidSourceRange},
		{name: "bad annotation", annotation: "everybody", want: "0.0.0.0/0", reasons: ReasonInvalidAnnotation},
		{name: "IPv4 in IPv6", spec: []string{"::ffff:10.0.0.0/104"}, want: "0.0.0.0/0", reasons: ReasonInvalidSourceRange},
	} {
		svc := &v1.Service{Spec: v1.ServiceSpec{LoadBalancerSourceRanges: test.spec}}
		if test.annotation != "" {
			svc.Annotations = map[string]string{key: test.annotation}
		}
		s, problems := ParseAnnotations(svc.Annotations, oci.KindLB)
		problems = append(problems, checkRules(svc, s, Config{})...)
		var reasons []string
		for _, p := range problems {
			reasons = append(reasons, p.Reason)
		}
		if strings.Join(reasons, " ") != test.reasons {
			t.Errorf("%s: problems %v, want %q", test.name, problems, test.reasons)
		}
		if got := sources(svc, s, test.mode); strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %v, want %s", test.name, got, test.want)
		}
	}
	svc := &v1.Service{Spec: v1.ServiceSpec{LoadBalancerSourceRanges: []string{"10.0.0.0/8"}}}
	for _, test := range []struct {
		kind oci.BalancerKind
		cfg  Config
		want bool
	}{{oci.KindLB, Config{}, false}, {oci.KindNLB, Config{}, true}, {oci.KindLB, Config{RulesLB: RulesNone}, true}, {oci.KindNLB, Config{RulesNLB: RulesFrontend}, false}} {
		problems := checkRules(svc, Settings{Kind: test.kind}, test.cfg)
		if got := len(problems) == 1 && problems[0].Reason == ReasonSourceRangesIgnored && !problems[0].Fatal; got != test.want {
			t.Errorf("%s, %v: %v", test.kind, test.cfg, problems)
		}
	}
}
