// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// failer is what testing.T and rapid.T have in common.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// rig is a region with a VCN, two security lists with rules of other people, an NSG, and a Manager with the owners that
// are alive.
type rig struct {
	failer

	ctx              context.Context
	region           *ocisim.Region
	compartment, vcn string
	front, nodes     firewall.Target // security lists
	group            firewall.Target // NSG
	m                *firewall.Manager
	config           firewall.Config

	mu    sync.Mutex
	alive map[string]firewall.Owner
}

func newRig(ctx context.Context, t failer, o ocisim.Options, change ...func(*firewall.Config)) *rig {
	t.Helper()
	r := &rig{failer: t, ctx: ctx, region: ocisim.New(o), alive: map[string]firewall.Owner{}}
	r.compartment = r.region.AddCompartment(ocisim.Compartment{Name: "cluster"})
	r.vcn = r.region.AddVCN(ocisim.VCN{Compartment: r.compartment})
	icmp := 3
	r.front = firewall.Target{Kind: firewall.SecurityList, ID: r.region.AddSecurityList(ocisim.SecurityList{
		VCN: r.vcn, Name: "balancers",
		Ingress: []ocisim.SecurityRule{{Protocol: "tcp", Ports: "22"}, {Protocol: "icmp", ICMPType: &icmp}, {Protocol: "tcp", Ports: "443", Peer: "198.51.100.0/24", Description: "office"}},
		Egress:  []ocisim.SecurityRule{{Peer: "10.0.0.0/16"}},
	})}
	r.nodes = firewall.Target{Kind: firewall.SecurityList, ID: r.region.AddSecurityList(ocisim.SecurityList{
		VCN: r.vcn, Name: "nodes",
		Ingress: []ocisim.SecurityRule{{Peer: "10.0.0.0/16", Stateless: true}, {Protocol: "udp", Ports: "30000-32767", SourcePorts: "53"}},
	})}
	r.group = firewall.Target{Kind: firewall.NSG, ID: r.region.AddSecurityGroup(ocisim.SecurityGroup{
		VCN: r.vcn, Name: "backends", Ingress: []ocisim.SecurityRule{{Protocol: "tcp", Ports: "22", Description: "ssh"}},
	})}
	r.config = firewall.Config{ClusterID: "cluster-1", Owners: r.owners}
	for _, f := range change {
		f(&r.config)
	}
	r.restart()
	return r
}

// simulate runs a test on virtual time.
func simulate(t *testing.T, test func(r *rig), change ...func(*firewall.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newRig(t.Context(), t, ocisim.Options{Seed: 11}, change...)) })
}

// restart replaces the Manager by that of a new process.
func (r *rig) restart() { r.m = r.newManager(r.region.Transport()) }

func (r *rig) newManager(transport http.RoundTripper) *firewall.Manager {
	r.Helper()
	principal, err := oci.UserPrincipal(oci.UserCredentials{
		Tenancy: r.region.Options().Tenancy, User: "ocid1.user.oc1..u", Region: r.region.Options().Region,
		Fingerprint: "20:3b:97:13:55:1c:aa:66:41:41:4b:7c:7c:ef:2e:42", PrivateKey: pki.SigningKeyPEM(),
	})
	if err != nil {
		r.Fatalf("%v", err)
	}
	c, err := oci.New(oci.Options{Provider: principal, Transport: transport, ClusterID: r.config.ClusterID})
	if err != nil {
		r.Fatalf("%v", err)
	}
	return firewall.New(r.config, c.Network(), c.Network())
}

func (r *rig) owners() []firewall.Owner {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.alive))
}

// born lets owners exist; ports that they may need rules to are optional.
func (r *rig) born(owner string, ports ...int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := firewall.Owner{ID: owner}
	if len(ports) > 0 {
		o.MayNeed = func(rule firewall.Rule) bool { return slices.Contains(ports, rule.Port) }
	}
	r.alive[owner] = o
}

func (r *rig) died(owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.alive, owner)
}

// rules are given as "ingress TCP 443 from 0.0.0.0/0", as Rule.String has it.
func rules(texts ...string) []firewall.Rule {
	var out []firewall.Rule
	for _, text := range texts {
		var direction, protocol, word, peer string
		var port int
		if n, err := fmt.Sscan(text, &direction, &protocol, &port, &word, &peer); n != 5 {
			panic(fmt.Sprintf("%q: %v", text, err))
		}
		rule := firewall.Rule{Direction: firewall.Direction(strings.ToUpper(direction)), Protocol: firewall.TCP, Peer: peer, Port: port}
		if protocol == "UDP" {
			rule.Protocol = firewall.UDP
		}
		if strings.HasPrefix(peer, "ocid1.") {
			rule.PeerKind = firewall.PeerNSG
		}
		out = append(out, rule)
	}
	return out
}

// claim is a claim of rules on one target.
func claim(owner string, t firewall.Target, texts ...string) firewall.Claim {
	return firewall.Claim{Owner: owner, Rules: map[firewall.Target][]firewall.Rule{t: rules(texts...)}}
}

// sync does what a sync of a Service does, and returns what was changed at its end.
func (r *rig) sync(c firewall.Claim) firewall.Report {
	r.Helper()
	changes, err := r.m.Check(r.ctx, c)
	if err != nil {
		r.Fatalf("check: %v", err)
	}
	if err := r.m.Open(r.ctx, c); err != nil {
		r.Fatalf("open: %v", err)
	}
	report, err := r.m.Settle(r.ctx, c)
	if err != nil {
		r.Fatalf("settle: %v", err)
	}
	_ = changes
	return report
}

func (r *rig) release(c firewall.Claim) firewall.Report {
	r.Helper()
	report, err := r.m.Release(r.ctx, c.Owner, c)
	if err != nil {
		r.Fatalf("release: %v", err)
	}
	r.died(c.Owner)
	return report
}

func (r *rig) sweep(k firewall.TargetKind) firewall.Report {
	r.Helper()
	report, err := r.m.Sweep(r.ctx, k, firewall.Place{CompartmentID: r.compartment, VCNID: r.vcn})
	if err != nil {
		r.Fatalf("sweep: %v", err)
	}
	return report
}

// list is a security list as the cloud has it.
func (r *rig) list(t firewall.Target) core.SecurityList {
	r.Helper()
	l, ok := r.region.SecurityList(t.ID)
	if !ok {
		r.Fatalf("no %s", t)
	}
	return l
}

// contents are both sets of rules of a list, or the rules of an NSG without what is new in each, byte for byte.
func (r *rig) contents(t firewall.Target) string {
	r.Helper()
	var v any
	if t.Kind == firewall.NSG {
		v = r.region.GroupRules(t.ID)
	} else {
		l := r.list(t)
		v = []any{l.IngressSecurityRules, l.EgressSecurityRules}
	}
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		r.Fatalf("%v", err)
	}
	return string(text)
}

func (r *rig) same(what string, t firewall.Target, want string) {
	r.Helper()
	if diff := cmp.Diff(want, r.contents(t)); diff != "" {
		r.Errorf("%s: %s (-want +got):\n%s", what, t, diff)
	}
}

// ours are the rules of a target that have a description of ours, in words.
func (r *rig) ours(t firewall.Target) []string {
	r.Helper()
	out := []string{}
	show := func(direction string, protocol, peer, description *string, tcp *core.TcpOptions, udp *core.UdpOptions) {
		if description == nil || !strings.HasPrefix(*description, "k8s ") && !strings.HasPrefix(*description, "service-uid-") {
			return
		}
		ports := &core.PortRange{Min: new(int), Max: new(int)}
		name := *protocol
		switch {
		case tcp != nil:
			name, ports = "TCP", tcp.DestinationPortRange
		case udp != nil:
			name, ports = "UDP", udp.DestinationPortRange
		}
		word := map[string]string{"ingress": "from", "egress": "to"}[direction]
		text := fmt.Sprintf("%s %s %d %s %s", direction, name, *ports.Min, word, *peer)
		if *ports.Max != *ports.Min {
			text += fmt.Sprintf(" up to %d", *ports.Max)
		}
		if uid, own := strings.CutPrefix(*description, "service-uid-"); own {
			text += " of " + uid
		}
		out = append(out, text)
	}
	if t.Kind == firewall.NSG {
		for _, x := range r.region.GroupRules(t.ID) {
			if x.Direction == core.SecurityRuleDirectionEgress {
				show("egress", x.Protocol, x.Destination, x.Description, x.TcpOptions, x.UdpOptions)
			} else {
				show("ingress", x.Protocol, x.Source, x.Description, x.TcpOptions, x.UdpOptions)
			}
		}
		slices.Sort(out)
		return out
	}
	l := r.list(t)
	for _, x := range l.IngressSecurityRules {
		show("ingress", x.Protocol, x.Source, x.Description, x.TcpOptions, x.UdpOptions)
	}
	for _, x := range l.EgressSecurityRules {
		show("egress", x.Protocol, x.Destination, x.Description, x.TcpOptions, x.UdpOptions)
	}
	slices.Sort(out)
	return out
}

// hasOurs compares the rules of ours on a target.
func (r *rig) hasOurs(what string, t firewall.Target, want ...string) {
	r.Helper()
	slices.Sort(want)
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, r.ours(t)); diff != "" {
		r.Errorf("%s: rules of ours on %s (-want +got):\n%s", what, t, diff)
	}
}

// calls counts the calls since the last reset, of operations whose name begins so.
func (r *rig) calls(prefix string) int {
	n := 0
	for name, count := range r.region.Counts() {
		if _, operation, _ := strings.Cut(name, "."); strings.HasPrefix(operation, prefix) {
			n += count
		}
	}
	return n
}

// somebody changes a security list past us.
func (r *rig) somebody(t firewall.Target, change func(*core.SecurityList)) {
	r.Helper()
	if err := r.region.Foreign().SecurityList(t.ID, change); err != nil {
		r.Fatalf("%v", err)
	}
}

func pointer[T any](v T) *T { return &v }

// foreignRule is a rule of somebody else.
func foreignRule(port int, peer string) core.IngressSecurityRule {
	return core.IngressSecurityRule{
		Protocol: pointer("6"), Source: pointer(peer), SourceType: core.IngressSecurityRuleSourceTypeCidrBlock, IsStateless: pointer(false),
		TcpOptions: &core.TcpOptions{DestinationPortRange: &core.PortRange{Min: &port, Max: &port}},
	}
}
