// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/netip"
	"strconv"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// Protocols of security rules are numbers as strings, or "all".
const (
	protocolICMP   = "1"
	protocolTCP    = "6"
	protocolUDP    = "17"
	protocolICMPv6 = "58"
)

// Types of the other end of a rule.
const (
	endCIDR    = "CIDR_BLOCK"
	endService = "SERVICE_CIDR_BLOCK"
	endGroup   = "NETWORK_SECURITY_GROUP"
)

// checkProtocol validates the protocol of a rule and the options that go with it.
func checkProtocol(protocol string, icmp *core.IcmpOptions, tcp *core.TcpOptions, udp *core.UdpOptions) error {
	if protocol != "all" {
		if n, err := strconv.Atoi(protocol); err != nil || n < 0 || n > 255 {
			return errInvalid("protocol %s is neither all nor a protocol number", protocol)
		}
	}
	switch {
	case tcp != nil && protocol != protocolTCP:
		return errInvalid("tcpOptions need protocol %s", protocolTCP)
	case udp != nil && protocol != protocolUDP:
		return errInvalid("udpOptions need protocol %s", protocolUDP)
	case icmp != nil && protocol != protocolICMP && protocol != protocolICMPv6:
		return errInvalid("icmpOptions need protocol %s or %s", protocolICMP, protocolICMPv6)
	}
	if tcp != nil {
		return checkPorts(tcp.SourcePortRange, tcp.DestinationPortRange)
	}
	if udp != nil {
		return checkPorts(udp.SourcePortRange, udp.DestinationPortRange)
	}
	return nil
}

// maxRuleDescription is in characters.
const maxRuleDescription = 255

func checkDescription(text *string) error {
	if text == nil {
		return nil
	}
	return checkSize("description", *text, 1, maxRuleDescription)
}

func checkPorts(ranges ...*core.PortRange) error {
	for _, r := range ranges {
		if r == nil {
			continue
		}
		if least, most := value(r.Min), value(r.Max); least < 1 || most > 65535 || least > most {
			return errInvalid("the port range %d to %d is not valid", least, most)
		}
	}
	return nil
}

// checkEnd validates the source or the destination of a rule. vcn is the VCN that a group on the other end must be
// in.
func (c *call) checkEnd(field, endType, end, vcn string) error {
	switch endType {
	case "", endCIDR:
		if _, err := netip.ParsePrefix(end); err != nil {
			return errInvalid("%s %s is not a CIDR block", field, end)
		}
	case endService:
		return checkSize(field, end, 1, 255)
	case endGroup:
		group, err := securityGroups.related(c, end)
		if err != nil {
			return err
		}
		if value(group.VcnId) != vcn {
			return errInvalid("%s %s is in another VCN", field, end)
		}
	}
	return nil
}
