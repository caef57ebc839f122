// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	lb "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	nlb "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	"pgregory.net/rapid"
)

// modelled compares domain values by what they say.
var modelled = cmp.Options{
	cmpopts.IgnoreUnexported(BackendSet{}, Backend{}, Listener{}),
	cmpopts.EquateEmpty(),
}

// An update of something that was read and not changed sends exactly what the cloud has, as far as the body can carry it:
// nothing is lost, whether the domain types model it or not, and nothing is invented.
func TestUnchangedUpdateSendsWhatWasRead(t *testing.T) {
	check := func(t *rapid.T, read, body any) {
		want := restrict(wire(t, read), reflect.TypeOf(body))
		if diff := cmp.Diff(want, wire(t, body)); diff != "" {
			t.Fatalf("the update differs from what was read (-read +sent):\n%s", diff)
		}
	}
	t.Run("backend set of a load balancer", rapid.MakeCheck(func(t *rapid.T) {
		read := drawValue[lb.BackendSet](t)
		check(t, read, lbUpdateBackendSetDetails(lbBackendSetFromSDK("set", read)))
	}))
	t.Run("listener of a load balancer", rapid.MakeCheck(func(t *rapid.T) {
		read := drawValue[lb.Listener](t)
		if c := read.ConnectionConfiguration; c != nil && c.BackendTcpProxyProtocolVersion == nil {
			c.BackendTcpProxyProtocolOptions = nil // options without the protocol: the service does not give that
		}
		check(t, read, lbUpdateListenerDetails(lbListenerFromSDK("listener", read)))
	}))
	t.Run("backend set of a network load balancer", rapid.MakeCheck(func(t *rapid.T) {
		read := drawValue[nlb.BackendSet](t)
		if read.Policy == "" {
			read.Policy = nlb.NetworkLoadBalancingPolicyFiveTuple
		}
		if read.Backends == nil {
			read.Backends = []nlb.Backend{} // an update names the backends always
		}
		check(t, read, nlbUpdateBackendSetDetails(nlbBackendSetFromSDK("set", read)))
	}))
	t.Run("listener of a network load balancer", rapid.MakeCheck(func(t *rapid.T) {
		read := drawValue[nlb.Listener](t)
		check(t, read, nlbUpdateListenerDetails(nlbListenerFromSDK("listener", read)))
	}))
}

// What a caller asks for at creation is what a read of the new object says, for every modelled field and both bodies of a
// sub-resource.
func TestCreateRoundTrip(t *testing.T) {
	t.Run("load balancer", rapid.MakeCheck(func(t *rapid.T) {
		want := drawBalancer(t, KindLB)
		got := lbFromSDK(reread[lb.LoadBalancer](t, lbCreateDetails(want)))
		compareBalancers(t, want, got)
		for name, bs := range want.BackendSets {
			got := lbBackendSetFromSDK(name, reread[lb.BackendSet](t, lbCreateBackendSetDetails(bs)))
			requireSame(t, bs, got)
			got = lbBackendSetFromSDK(name, reread[lb.BackendSet](t, lbUpdateBackendSetDetails(bs)))
			requireSame(t, bs, got)
		}
		for name, l := range want.Listeners {
			got := lbListenerFromSDK(name, reread[lb.Listener](t, lbCreateListenerDetails(l)))
			requireSame(t, l, got)
			got = lbListenerFromSDK(name, reread[lb.Listener](t, lbUpdateListenerDetails(l)))
			requireSame(t, l, got)
		}
	}))
	t.Run("network load balancer", rapid.MakeCheck(func(t *rapid.T) {
		want := drawBalancer(t, KindNLB)
		got := nlbFromSDK(reread[nlb.NetworkLoadBalancer](t, nlbCreateDetails(want)))
		compareBalancers(t, want, got)
		for name, bs := range want.BackendSets {
			got := nlbBackendSetFromSDK(name, reread[nlb.BackendSet](t, nlbCreateBackendSetDetails(bs)))
			requireSame(t, bs, got)
			got = nlbBackendSetFromSDK(name, reread[nlb.BackendSet](t, nlbUpdateBackendSetDetails(bs)))
			requireSame(t, bs, got)
		}
		for name, l := range want.Listeners {
			got := nlbListenerFromSDK(name, reread[nlb.Listener](t, nlb.CreateListenerDetails(nlbListenerDetails(name, l))))
			requireSame(t, l, got)
			got = nlbListenerFromSDK(name, reread[nlb.Listener](t, nlbUpdateListenerDetails(l)))
			requireSame(t, l, got)
		}
	}))
}

// An update over something quite different makes it what the caller says, in every modelled field.
func TestUpdateOverrulesModelledFields(t *testing.T) {
	t.Run("backend set of a load balancer", rapid.MakeCheck(func(t *rapid.T) {
		want := drawBackendSet(t, KindLB, "set")
		want.origin = lbBackendSetFromSDK("set", drawValue[lb.BackendSet](t)).origin
		requireSame(t, want, lbBackendSetFromSDK("set", reread[lb.BackendSet](t, lbUpdateBackendSetDetails(want))))
	}))
	t.Run("listener of a load balancer", rapid.MakeCheck(func(t *rapid.T) {
		want := drawListener(t, KindLB, "listener")
		want.origin = lbListenerFromSDK("listener", drawValue[lb.Listener](t)).origin
		requireSame(t, want, lbListenerFromSDK("listener", reread[lb.Listener](t, lbUpdateListenerDetails(want))))
	}))
	t.Run("backend set of a network load balancer", rapid.MakeCheck(func(t *rapid.T) {
		want := drawBackendSet(t, KindNLB, "set")
		cloud := drawValue[nlb.BackendSet](t)
		want.origin = &cloud
		expected := want
		if want.PreserveSource == nil && cloud.IsPreserveSource != nil {
			yes := true
			expected.PreserveSource = &yes // taken away: the API's default
		}
		requireSame(t, expected, nlbBackendSetFromSDK("set", reread[nlb.BackendSet](t, nlbUpdateBackendSetDetails(want))))
	}))
	t.Run("listener of a network load balancer", rapid.MakeCheck(func(t *rapid.T) {
		want := drawListener(t, KindNLB, "listener")
		cloud := drawValue[nlb.Listener](t)
		want.origin = &cloud
		expected := want
		if want.PPv2 == nil && cloud.IsPpv2Enabled != nil {
			no := false
			expected.PPv2 = &no
		}
		requireSame(t, expected, nlbListenerFromSDK("listener", reread[nlb.Listener](t, nlbUpdateListenerDetails(want))))
	}))
}

func requireSame[T any](t *rapid.T, want, got T) {
	if diff := cmp.Diff(want, got, modelled); diff != "" {
		t.Fatalf("a modelled field did not survive (-want +got):\n%s", diff)
	}
}

func compareBalancers(t *rapid.T, want, got *Balancer) {
	expected := *want
	// These are asked for, not read.
	expected.ReservedIPIDs, expected.AssignedPrivateIPv4, expected.AssignedIPv6 = nil, "", ""
	if want.Kind == KindLB && want.IPMode == IPModeDual {
		expected.IPMode = IPModeV6 // the API's name for it; the addresses, missing here, tell the two apart
	}
	requireSame(t, &expected, got)
}

func drawBalancer(t *rapid.T, kind BalancerKind) *Balancer {
	b := &Balancer{
		Kind:          kind,
		CompartmentID: "ocid1.compartment.oc1..a",
		DisplayName:   drawName(t, "name"),
		SubnetIDs:     []string{"ocid1.subnet.oc1.iad.a"},
		Private:       rapid.Bool().Draw(t, "private"),
		NSGIDs:        rapid.SliceOfN(drawNames, 0, 2).Draw(t, "NSGs"),
		IPMode:        rapid.SampledFrom([]string{"", IPModeV4, IPModeV6, IPModeDual}).Draw(t, "IP mode"),
		ReservedIPIDs: rapid.SliceOfN(drawNames, 0, 2).Draw(t, "reserved"),
		BackendSets:   map[string]BackendSet{},
		Listeners:     map[string]Listener{},
		Tags:          Tags{Freeform: map[string]string{"k": drawName(t, "tag")}, Defined: map[string]map[string]any{"ns": {"k": "v"}}},
	}
	if kind == KindLB {
		b.SubnetIDs = append(b.SubnetIDs, "ocid1.subnet.oc1.iad.b")
		b.DeleteProtection = rapid.Bool().Draw(t, "delete protection")
		b.Shape = &Shape{Name: "100Mbps"}
		if rapid.Bool().Draw(t, "flexible") {
			b.Shape = &Shape{Name: ShapeFlexible, MinMbps: rapid.IntRange(10, 8000).Draw(t, "min"), MaxMbps: rapid.IntRange(10, 8000).Draw(t, "max")}
		}
	} else {
		b.AssignedPrivateIPv4, b.AssignedIPv6 = "10.0.0.9", "fd00::9"
	}
	for _, name := range rapid.SliceOfNDistinct(drawNames, 0, 2, rapid.ID[string]).Draw(t, "sets") {
		b.BackendSets[name] = drawBackendSet(t, kind, name)
	}
	for _, name := range rapid.SliceOfNDistinct(drawNames, 0, 2, rapid.ID[string]).Draw(t, "listeners") {
		b.Listeners[name] = drawListener(t, kind, name)
	}
	return b
}

var drawNames = rapid.StringMatching(`[A-Z]{3}-[0-9]{1,5}`)

func drawName(t *rapid.T, label string) string { return drawNames.Draw(t, label) }

func drawFlag(t *rapid.T, label string) *bool {
	return rapid.Ptr(rapid.Bool(), true).Draw(t, label)
}

func drawBackendSet(t *rapid.T, kind BalancerKind, name string) BackendSet {
	bs := BackendSet{
		Name:   name,
		Policy: drawName(t, "policy"),
		Checker: HealthChecker{
			Protocol:          drawName(t, "protocol"),
			Port:              rapid.IntRange(0, 65535).Draw(t, "port"),
			URLPath:           rapid.SampledFrom([]string{"", "/healthz"}).Draw(t, "path"),
			ReturnCode:        rapid.SampledFrom([]int{0, 200}).Draw(t, "code"),
			Retries:           rapid.IntRange(0, 10).Draw(t, "retries"),
			TimeoutMillis:     rapid.IntRange(0, 9000).Draw(t, "timeout"),
			IntervalMillis:    rapid.IntRange(0, 9000).Draw(t, "interval"),
			ResponseBodyRegex: rapid.SampledFrom([]string{"", ".*"}).Draw(t, "regex"),
		},
	}
	if kind == KindLB {
		bs.SSL = drawSSL(t)
		bs.Checker.ForcePlainText = drawFlag(t, "plain")
	} else {
		bs.PreserveSource = drawFlag(t, "preserve")
		bs.IPVersion = rapid.SampledFrom([]string{"", IPModeV4, IPModeV6}).Draw(t, "version")
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "backends") {
		b := Backend{
			IP:      "10.0.0." + string(rune('1'+i)),
			Port:    rapid.IntRange(1, 65535).Draw(t, "backend port"),
			Weight:  rapid.IntRange(0, 100).Draw(t, "weight"),
			Backup:  rapid.Bool().Draw(t, "backup"),
			Drain:   rapid.Bool().Draw(t, "drain"),
			Offline: rapid.Bool().Draw(t, "offline"),
		}
		if kind == KindNLB && rapid.Bool().Draw(t, "by target") {
			b.TargetID = "ocid1.instance.oc1.iad." + string(rune('a'+i))
		}
		bs.Backends = append(bs.Backends, b)
	}
	return bs
}

func drawListener(t *rapid.T, kind BalancerKind, name string) Listener {
	l := Listener{
		Name:           name,
		BackendSetName: drawName(t, "set"),
		Port:           rapid.IntRange(1, 65535).Draw(t, "port"),
		Protocol:       rapid.SampledFrom([]string{"TCP", "UDP", "HTTP"}).Draw(t, "protocol"),
	}
	if kind == KindLB {
		l.SSL = drawSSL(t)
		l.RuleSetNames = rapid.SliceOfN(drawNames, 0, 2).Draw(t, "rule sets")
		l.IdleTimeoutSeconds = rapid.Ptr(rapid.Int64Range(1, 7200), true).Draw(t, "idle")
		if l.IdleTimeoutSeconds != nil {
			l.ProxyProtocolVersion = rapid.Ptr(rapid.IntRange(1, 2), true).Draw(t, "proxy")
		}
	} else {
		l.IPVersion = rapid.SampledFrom([]string{"", IPModeV4, IPModeV6}).Draw(t, "version")
		l.PPv2 = drawFlag(t, "ppv2")
	}
	return l
}

func drawSSL(t *rapid.T) *SSL {
	if !rapid.Bool().Draw(t, "ssl") {
		return nil
	}
	return &SSL{
		CertificateName:       rapid.SampledFrom([]string{"", "cert"}).Draw(t, "certificate"),
		CipherSuiteName:       rapid.SampledFrom([]string{"", "suite"}).Draw(t, "suite"),
		Protocols:             rapid.SliceOfN(drawNames, 0, 2).Draw(t, "protocols"),
		VerifyDepth:           rapid.IntRange(0, 5).Draw(t, "depth"),
		VerifyPeerCertificate: rapid.Bool().Draw(t, "verify"),
	}
}
