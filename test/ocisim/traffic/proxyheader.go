// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Parts of a header of version 2 of the PROXY protocol.
const (
	proxySignature = "\r\n\r\n\x00\r\nQUIT\n"
	proxyVersion2  = 0x21 // version 2, command PROXY
	proxyTCP4      = 0x11
	proxyTCP6      = 0x21
	proxyAuthority = 0x02 // type of the field with the server name
)

// proxyHeader tells a backend who connected to which address of the balancer. Two addresses of different families are both
// written as IPv6. serverName is sent by version 2, if it is not empty.
func proxyHeader(version int, from, to netip.AddrPort, serverName string) []byte {
	source, target := from.Addr().Unmap(), to.Addr().Unmap()
	if source.Is4() != target.Is4() {
		source, target = netip.AddrFrom16(source.As16()), netip.AddrFrom16(target.As16())
	}
	if version == 1 {
		family := "TCP4"
		if !source.Is4() {
			family = "TCP6"
		}
		return fmt.Appendf(nil, "PROXY %s %s %s %d %d\r\n", family, source, target, from.Port(), to.Port())
	}
	family := byte(proxyTCP6)
	if source.Is4() {
		family = proxyTCP4
	}
	var body []byte
	body = append(body, source.AsSlice()...)
	body = append(body, target.AsSlice()...)
	body = binary.BigEndian.AppendUint16(body, from.Port())
	body = binary.BigEndian.AppendUint16(body, to.Port())
	if serverName != "" {
		body = append(body, proxyAuthority)
		body = binary.BigEndian.AppendUint16(body, uint16(min(len(serverName), 255))) //nolint:gosec // bounded
		body = append(body, serverName[:min(len(serverName), 255)]...)
	}
	header := append([]byte(proxySignature), proxyVersion2, family)
	header = binary.BigEndian.AppendUint16(header, uint16(len(body))) //nolint:gosec // far below 64 KiB
	return append(header, body...)
}
