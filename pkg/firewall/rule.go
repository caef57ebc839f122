// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// ErrInvalidRule means that a claim has a rule that cannot exist.
var ErrInvalidRule = errors.New("invalid rule")

// Direction is the direction of the connections that a rule allows, as seen from the target's VNICs.
type Direction string

// The two directions.
const (
	Ingress Direction = oci.DirectionIngress
	Egress  Direction = oci.DirectionEgress
)

// Protocol is the protocol of a rule, by IANA's number.
type Protocol string

// The protocols that Services have.
const (
	TCP Protocol = oci.ProtocolTCP
	UDP Protocol = oci.ProtocolUDP
)

// PeerKind says what the peer of a rule is.
type PeerKind string

// The kinds of peers. Only rules of NSGs can name an NSG.
const (
	PeerCIDR PeerKind = oci.PeerCIDR
	PeerNSG  PeerKind = oci.PeerGroup
)

// Rule allows connections to one destination port, statefully, from any source port. Canonical rules that are equal are
// equal with ==.
type Rule struct {
	Direction Direction
	Protocol  Protocol
	Peer      string   // source of an ingress rule, destination of an egress rule: a CIDR block or the OCID of an NSG
	PeerKind  PeerKind // empty: PeerCIDR
	Port      int
}

// String is the rule in words: "ingress TCP 443 from 0.0.0.0/0".
func (r Rule) String() string { return describe(r.cloud("")) }

// Canonical returns the rule in the form in which it can be compared: a CIDR block without host bits and in the usual
// spelling. The error is ErrInvalidRule.
func (r Rule) Canonical() (Rule, error) {
	switch {
	case r.Direction != Ingress && r.Direction != Egress:
		return r, fmt.Errorf("%w: direction %q", ErrInvalidRule, r.Direction)
	case r.Protocol != TCP && r.Protocol != UDP:
		return r, fmt.Errorf("%w: protocol %q", ErrInvalidRule, r.Protocol)
	case r.Port < 1 || r.Port > 65535:
		return r, fmt.Errorf("%w: port %d", ErrInvalidRule, r.Port)
	}
	switch r.PeerKind {
	case PeerCIDR, "":
		r.PeerKind = PeerCIDR
		block, err := netip.ParsePrefix(r.Peer)
		if err != nil {
			return r, fmt.Errorf("%w: CIDR block %q", ErrInvalidRule, r.Peer)
		}
		r.Peer = block.Masked().String()
	case PeerNSG:
		if r.Peer == "" {
			return r, fmt.Errorf("%w: network security group without OCID", ErrInvalidRule)
		}
	default:
		return r, fmt.Errorf("%w: kind of peer %q", ErrInvalidRule, r.PeerKind)
	}
	return r, nil
}

// cloud is the rule as the cloud has it, with a description.
func (r Rule) cloud(description string) oci.SecurityRule {
	return oci.SecurityRule{
		Direction: string(r.Direction), Protocol: string(r.Protocol), Peer: r.Peer, PeerType: string(r.PeerKind),
		Ports: oci.PortRange{Min: r.Port, Max: r.Port}, Description: description,
	}
}

// ruleOf reads a rule of the cloud. It is false for rules that are not of the form of our rules.
func ruleOf(r oci.SecurityRule) (Rule, bool) {
	if r.Stateless || r.Invalid || r.SourcePorts != (oci.PortRange{}) || r.Ports.Min != r.Ports.Max {
		return Rule{}, false
	}
	rule, err := Rule{
		Direction: Direction(r.Direction), Protocol: Protocol(r.Protocol), Peer: r.Peer, PeerKind: PeerKind(r.PeerType), Port: r.Ports.Min,
	}.Canonical()
	return rule, err == nil
}

// describe says in words what a rule of the cloud allows.
func describe(r oci.SecurityRule) string {
	words := []string{strings.ToLower(r.Direction), map[string]string{oci.ProtocolTCP: "TCP", oci.ProtocolUDP: "UDP"}[r.Protocol]}
	if words[1] == "" {
		words[1] = "protocol " + r.Protocol
	}
	switch {
	case r.Ports == (oci.PortRange{}):
	case r.Ports.Min == r.Ports.Max:
		words = append(words, fmt.Sprint(r.Ports.Min))
	default:
		words = append(words, fmt.Sprintf("%d-%d", r.Ports.Min, r.Ports.Max))
	}
	preposition := "from"
	if r.Direction == oci.DirectionEgress {
		preposition = "to"
	}
	words = append(words, preposition, r.Peer)
	if r.SourcePorts != (oci.PortRange{}) {
		words = append(words, fmt.Sprintf("source ports %d-%d", r.SourcePorts.Min, r.SourcePorts.Max))
	}
	if r.Stateless {
		words = append(words, "stateless")
	}
	return strings.Join(words, " ")
}

// ruleSet is a set of canonical rules.
type ruleSet map[Rule]struct{}

func (s ruleSet) has(r Rule) bool {
	_, ok := s[r]
	return ok
}

// sorted returns the rules in a fixed order.
func (s ruleSet) sorted() []Rule {
	out := make([]Rule, 0, len(s))
	for r := range s {
		out = append(out, r)
	}
	sortRules(out)
	return out
}

func sortRules(rules []Rule) {
	slices.SortFunc(rules, func(a, b Rule) int {
		return cmp.Or(
			-cmp.Compare(a.Direction, b.Direction), // ingress first
			cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol),
			cmp.Compare(a.PeerKind, b.PeerKind), cmp.Compare(a.Peer, b.Peer),
		)
	})
}
