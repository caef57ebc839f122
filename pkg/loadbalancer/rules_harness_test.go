// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

const (
	ruleMode     = prefixCommon + "security-rule-management-mode"
	listModeLB   = prefixLB + "security-list-management-mode"
	backendNSG   = prefixCommon + "oci-backend-network-security-group"
	sourceRanges = "service.beta.kubernetes.io/load-balancer-source-ranges"

	mark = "k8s " + clusterID
)

// ruled is the part of a rig that security rules are about: balancers in one subnet, nodes in two others, each with a list of
// its own in which somebody has a rule already.
type ruled struct {
	r *rig

	vcn                      string
	front, workers, far      string // subnets
	frontList, workList, old string // lists; old is a second, younger one of the workers' subnet
	farList                  string
	backends                 string // network security group of the nodes
	keepAnonymous            bool
	identity                 string            // of the cluster
	start                    map[string]string // the lists and groups at the start
}

const (
	frontCIDR   = "10.0.20.0/24"
	workersCIDR = "10.0.21.0/24"
	farCIDR     = "10.0.22.0/24"
	// Blocks of IPv6, of which balancers with IPv4 alone take no notice.
	frontCIDR6   = "fd00:10:0:20::/64"
	workersCIDR6 = "fd00:10:0:21::/64"
	farCIDR6     = "fd00:10:0:22::/64"
)

// withRules runs a test on virtual time in a region where security rules are managed.
func withRules(t *testing.T, o ocisim.Options, test func(r *rig)) {
	t.Helper()
	simulate(t, o, func(r *rig) {
		r.addRules()
		test(r)
	})
}

// withRulesOnBoth is withRules for both kinds of balancers.
func withRulesOnBoth(t *testing.T, o ocisim.Options, test func(r *rig, kind oci.BalancerKind)) {
	t.Helper()
	onBothKinds(t, o, func(r *rig, kind oci.BalancerKind) {
		r.addRules()
		test(r, kind)
	})
}

func (r *rig) addRules() {
	r.Helper()
	x := &ruled{r: r, keepAnonymous: true, identity: clusterID}
	r.ruled = x
	subnet, _ := r.region.Subnet(r.public)
	x.vcn = *subnet.VcnId
	list := func(name string) string {
		time.Sleep(time.Second) // they are told apart by their age
		return r.region.AddSecurityList(ocisim.SecurityList{
			VCN: x.vcn, Name: name,
			Ingress: []ocisim.SecurityRule{{Protocol: "tcp", Ports: "22", Description: "admin"}, {Protocol: "tcp", Ports: "8000-9000"}},
			Egress:  []ocisim.SecurityRule{{Protocol: "udp", Ports: "123"}},
		})
	}
	x.frontList, x.workList, x.old, x.farList = list("front"), list("workers"), list("younger"), list("far")
	x.front = r.region.AddSubnet(ocisim.Subnet{VCN: x.vcn, Name: "front", CIDR: frontCIDR, IPv6CIDR: frontCIDR6, SecurityLists: []string{x.frontList}})
	x.workers = r.region.AddSubnet(ocisim.Subnet{VCN: x.vcn, Name: "workers", CIDR: workersCIDR, IPv6CIDR: workersCIDR6, SecurityLists: []string{x.old, x.workList}})
	x.far = r.region.AddSubnet(ocisim.Subnet{VCN: x.vcn, Name: "far", CIDR: farCIDR, IPv6CIDR: farCIDR6, SecurityLists: []string{x.farList}})
	x.backends = r.region.AddSecurityGroup(ocisim.SecurityGroup{VCN: x.vcn, Name: "backends", Ingress: []ocisim.SecurityRule{{Protocol: "tcp", Ports: "22"}}})
	r.cfg.Subnet1 = x.front
	x.start = x.now()
	r.restart()
}

// firewall is what a manager of a process of its own works with.
func (x *ruled) firewall(client *oci.Client) loadbalancer.Firewall {
	network := client.Network()
	instances := inventory.New(inventory.Config{CompartmentID: x.r.compartment}, client.Compute(), network)
	return loadbalancer.Firewall{
		Rules: firewall.New(firewall.Config{ClusterID: x.identity, KeepAnonymous: x.keepAnonymous, Owners: x.owners}, network, network),
		Lists: network,
		NodeSubnets: func(ctx context.Context, nodes []*v1.Node) (map[string]string, map[string]error) {
			subnets, unknown := map[string]string{}, map[string]error{}
			for _, n := range nodes {
				id, err := oci.ParseProviderID(n.Spec.ProviderID)
				if err == nil {
					subnets[n.Name], err = instances.SubnetOf(ctx, id, []string{n.Status.Addresses[0].Address}, inventory.Need{Crowd: len(nodes)})
				}
				if err != nil {
					delete(subnets, n.Name)
					unknown[n.Name] = err
				}
			}
			return subnets, unknown
		},
	}
}

func (x *ruled) owners() []firewall.Owner {
	c := x.r.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	return loadbalancer.RuleOwners(slices.Collect(maps.Values(c.services)), true, x.r.cfg)
}

// worker adds an instance in a subnet and returns its Node.
func (r *rig) worker(name, subnet string) *v1.Node {
	r.Helper()
	id := r.region.AddInstance(ocisim.Instance{Compartment: r.compartment, Name: name, VNIC: ocisim.VNIC{Subnet: subnet}})
	vnic := r.region.InstanceVNICs(id)[0]
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.NodeSpec{ProviderID: "oci://" + id},
		Status:     v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: *vnic.PrivateIp}}},
	}
}

// listRules describes the rules of a list, in any order: "in tcp 80 from 0.0.0.0/0 (k8s cluster-1)".
func (r *rig) listRules(id string) []string {
	r.Helper()
	list, ok := r.region.SecurityList(id)
	if !ok {
		r.Fatalf("no list %s", id)
	}
	var out []string
	for _, x := range list.IngressSecurityRules {
		out = append(out, ruleText("in", x.Protocol, x.TcpOptions, x.UdpOptions, x.Source, x.Description))
	}
	for _, x := range list.EgressSecurityRules {
		out = append(out, ruleText("out", x.Protocol, x.TcpOptions, x.UdpOptions, x.Destination, x.Description))
	}
	slices.Sort(out)
	return out
}

// groupRules describes the rules of a network security group.
func (r *rig) groupRules(id string) []string {
	r.Helper()
	var out []string
	for _, x := range r.region.GroupRules(id) {
		peer, direction := x.Source, "in"
		if x.Direction == core.SecurityRuleDirectionEgress {
			peer, direction = x.Destination, "out"
		}
		out = append(out, ruleText(direction, x.Protocol, x.TcpOptions, x.UdpOptions, peer, x.Description))
	}
	slices.Sort(out)
	return out
}

func ruleText(direction string, protocol *string, tcp *core.TcpOptions, udp *core.UdpOptions, peer, description *string) string {
	var ports *core.PortRange
	if tcp != nil {
		ports = tcp.DestinationPortRange
	}
	if udp != nil {
		ports = udp.DestinationPortRange
	}
	text := direction + " " + map[string]string{"6": "tcp", "17": "udp"}[*protocol]
	if ports != nil {
		text += fmt.Sprintf(" %d", *ports.Min)
		if *ports.Max != *ports.Min {
			text += fmt.Sprintf("-%d", *ports.Max)
		}
	}
	text += map[string]string{"in": " from ", "out": " to "}[direction] + *peer
	if description != nil {
		text += " (" + *description + ")"
	}
	return text
}

// added are the rules of a list that were not there at the start.
func (r *rig) added(list string) []string {
	r.Helper()
	var had []string
	if err := json.Unmarshal([]byte(r.ruled.start[list+" rules"]), &had); err != nil {
		r.Fatal(err)
	}
	out := r.listRules(list)
	for _, rule := range had {
		i := slices.Index(out, rule)
		if i < 0 {
			r.Errorf("%s has lost %q", list, rule)
			continue
		}
		out = slices.Delete(out, i, i+1)
	}
	return out
}

// now is how all lists and groups are at this moment.
func (x *ruled) now() map[string]string {
	out := map[string]string{}
	for _, l := range x.r.region.SecurityLists() {
		raw, err := json.Marshal([]any{l.IngressSecurityRules, l.EgressSecurityRules, l.FreeformTags})
		if err != nil {
			x.r.Fatal(err)
		}
		out[*l.Id] = string(raw)
		rules, err := json.Marshal(x.r.listRules(*l.Id))
		if err != nil {
			x.r.Fatal(err)
		}
		out[*l.Id+" rules"] = string(rules)
	}
	for _, g := range x.r.region.SecurityGroups() {
		out[*g.Id] = strings.Join(x.r.groupRules(*g.Id), ", ")
	}
	return out
}

// asAtStart expects the lists and groups to be what they were, byte for byte.
func (r *rig) asAtStart() {
	r.Helper()
	now := r.ruled.now()
	for id, want := range r.ruled.start {
		if now[id] != want {
			r.Errorf("%s is not as at the start:\n%s\nwas\n%s", id, now[id], want)
		}
		delete(now, id)
	}
	for id := range now {
		r.Errorf("%s is left over", id)
	}
}

// hasRules expects just these rules besides those of the start.
func (r *rig) hasRules(list string, want ...string) {
	r.Helper()
	slices.Sort(want)
	if got := r.added(list); !slices.Equal(got, want) {
		r.Errorf("rules of %s:\n  %s\nwant\n  %s", list, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// ours puts the mark behind rules.
func ours(rules ...string) []string {
	out := make([]string, len(rules))
	for i, r := range rules {
		out[i] = r + " (" + mark + ")"
	}
	return out
}

// remove deletes a Service as the framework does.
func (r *rig) remove(svc *v1.Service) {
	r.Helper()
	r.condemn(svc)
	_, exists, err := r.m.Exists(r.Context(), r.cluster.get(svc.UID))
	if err == nil && exists {
		err = r.m.Delete(r.Context(), r.cluster.get(svc.UID))
	}
	if err != nil {
		r.Fatalf("delete %s: %v", svc.Name, err)
	}
	r.cluster.remove(svc.UID)
}

// unmark takes all tags off a load balancer, as if the existing implementation had made it.
func (r *rig) unmark(id string) {
	r.Helper()
	if err := r.region.Foreign().LoadBalancer(id, func(v *lbsdk.LoadBalancer) { v.FreeformTags = map[string]string{} }); err != nil {
		r.Fatal(err)
	}
}
