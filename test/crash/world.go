// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// nodeGroup is the network security group of the nodes, which somebody else has made.
const nodeGroup = "ocid1.networksecuritygroup.oc1.iad.aaaaaaaacrashnodes"

// What the security rules of scenarios are made of: the subnets of the demo world and the port of kube-proxy.
const (
	frontCIDR  = "10.0.20.0/24"
	nodeCIDR   = "10.0.10.0/24"
	everybody  = "0.0.0.0/0"
	healthPort = 10256
	workers    = 3 // nodes
)

// world is the demo world with a network security group for the nodes. In it, and in all security lists, somebody else has
// rules, of forms that are never ours, too.
func world() ocisim.World {
	w := testbed.DemoWorld()
	echo := 8
	theirs := []ocisim.SecurityRule{
		{Protocol: "tcp", Ports: "22", Peer: "10.0.0.0/16", Description: "admin"},
		{Protocol: "icmp", ICMPType: &echo, Stateless: true},
		{Protocol: "tcp", Ports: "8000-9000", SourcePorts: "1024-65535"},
	}
	for i := range w.SecurityLists {
		w.SecurityLists[i].Ingress = append(w.SecurityLists[i].Ingress, theirs...)
	}
	w.SecurityGroups = []ocisim.SecurityGroup{{ID: nodeGroup, Name: "nodes", Ingress: theirs, Egress: []ocisim.SecurityRule{{}}}}
	for i := range w.Instances {
		w.Instances[i].SecurityGroups = []string{nodeGroup}
	}
	return w
}

// behaviour lets VNICs of deleted balancers go at once: what lingers there is not the subject.
func behaviour() *ocisim.Behaviour {
	b := ocisim.DefaultBehaviour()
	b.VNICLinger = ocisim.Range{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond}
	return b
}

// Descriptions of rules of ours begin so: in lists the identity of the cluster follows, in groups the UID of the Service.
const (
	listMark  = oracle.ListRuleMark + " "
	groupMark = oracle.GroupRuleMark
)

// foreignRules are the rules of others, as they are and in their order, by list and group.
func (m *matrix) foreignRules() (map[string]string, error) {
	found := map[string]string{}
	keep := func(id string, rules ...any) error {
		raw, err := json.Marshal(rules)
		if err != nil {
			return fmt.Errorf("encode the rules of %s: %w", id, err)
		}
		found[id] = string(raw)
		return nil
	}
	for _, l := range m.bed.Region.SecurityLists() {
		var in, out []any
		for _, r := range l.IngressSecurityRules {
			if !marked(r.Description, listMark) {
				in = append(in, r)
			}
		}
		for _, r := range l.EgressSecurityRules {
			if !marked(r.Description, listMark) {
				out = append(out, r)
			}
		}
		if err := keep(*l.Id, in, out); err != nil {
			return nil, err
		}
	}
	for _, g := range m.bed.Region.SecurityGroups() {
		var theirs []core.SecurityRule
		for _, r := range m.bed.Region.GroupRules(*g.Id) {
			if !marked(r.Description, groupMark) {
				theirs = append(theirs, r)
			}
		}
		if len(theirs) == 0 {
			continue // groups of Services come and go
		}
		if err := keep(*g.Id, theirs); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func marked(description *string, mark string) bool {
	return description != nil && strings.HasPrefix(*description, mark)
}

// ruleText describes a rule as those of ours are: "in tcp 80 from 0.0.0.0/0 (k8s …)".
func ruleText(in bool, protocol, peer string, tcp *core.TcpOptions, description string) string {
	ports := "?"
	if tcp != nil && tcp.DestinationPortRange != nil && tcp.SourcePortRange == nil {
		ports = fmt.Sprint(*tcp.DestinationPortRange.Min)
		if top := *tcp.DestinationPortRange.Max; top != *tcp.DestinationPortRange.Min {
			ports += fmt.Sprintf("-%d", top)
		}
	}
	direction := map[bool]string{true: "in", false: "out"}[in]
	return fmt.Sprintf("%s %s %s peer %s (%s)", direction, map[string]string{"6": "tcp"}[protocol], ports, peer, description)
}
