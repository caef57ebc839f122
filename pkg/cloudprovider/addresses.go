// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"
	cloudnodeutil "k8s.io/cloud-provider/node/helpers"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

const (
	// labelIPv6 asks for the IPv6 addresses of a node; its value does not matter.
	labelIPv6 = "oci.oraclecloud.com/ip-family-ipv6"

	// OpenShift boots some shapes from a network of their own. It marks the instances by a tag namespace with this
	// prefix, and the VNICs of that network by a tag in it.
	openShiftNamespace = "openshift-"
	openShiftBootTag   = "boot-volume-type"
	openShiftBootISCSI = "ISCSI"
)

// addressesOf returns the addresses of a node. A failed read is an error, and the framework then leaves the addresses
// that the Node has.
func (p *Provider) addressesOf(ctx context.Context, node *v1.Node, instance *oci.Instance, need inventory.Need) ([]v1.NodeAddress, error) {
	namespace := openShiftNamespaceOf(instance)
	if namespace == "" {
		primary, err := p.options.Inventory.PrimaryVNIC(ctx, instance, need)
		if err != nil {
			return nil, err
		}
		return nodeAddresses(primary, nil, wantsIPv6(node))
	}
	vnics, err := p.options.Inventory.VNICs(ctx, instance, need)
	if err != nil {
		return nil, err
	}
	var secondary []*oci.VNIC
	for _, v := range vnics[1:] {
		// What comes from lists has no tags. They hardly ever change.
		tagged, err := p.options.Inventory.VNIC(ctx, v.ID, inventory.Need{MaxAge: max(need.MaxAge, shapeAge), Patient: need.Patient})
		if err != nil {
			return nil, err
		}
		if tagged.Defined[namespace][openShiftBootTag] == openShiftBootISCSI {
			secondary = append(secondary, v)
		}
	}
	return nodeAddresses(vnics[0], secondary, wantsIPv6(node))
}

// hasAddresses says whether a Node has just these addresses, after what the framework does with them: it adds kubelet's
// host name, and puts the addresses first that kubelet was told to use.
func hasAddresses(node *v1.Node, addresses []v1.NodeAddress) bool {
	want := slices.Clone(addresses)
	for _, a := range node.Status.Addresses {
		if a.Type == v1.NodeHostName {
			want = append(want, a)
		}
	}
	if provided, ok := node.Annotations[cloudproviderapi.AnnotationAlphaProvidedIPAddr]; ok {
		var err error
		if want, err = cloudnodeutil.GetNodeAddressesFromNodeIP(provided, want); err != nil {
			return false // the framework finds the same, and says so
		}
	}
	return slices.Equal(want, node.Status.Addresses)
}

func openShiftNamespaceOf(instance *oci.Instance) string {
	var found []string
	for namespace := range instance.Defined {
		if strings.HasPrefix(namespace, openShiftNamespace) {
			found = append(found, namespace)
		}
	}
	slices.Sort(found)
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// nodeAddresses puts addresses in their order: the primary VNIC's private and public IPv4, its IPv6 addresses, then the
// private and public IPv4 of the secondary VNICs.
func nodeAddresses(primary *oci.VNIC, secondary []*oci.VNIC, ipv6 bool) ([]v1.NodeAddress, error) {
	var list []v1.NodeAddress
	add := func(kind v1.NodeAddressType, text string) error {
		if text == "" {
			return nil
		}
		address, err := netip.ParseAddr(text)
		if err != nil {
			return fmt.Errorf("address of VNIC: %w", err)
		}
		a := v1.NodeAddress{Type: kind, Address: address.String()}
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
		return nil
	}
	err := firstError(add(v1.NodeInternalIP, primary.PrivateIP), add(v1.NodeExternalIP, primary.PublicIP))
	if err != nil {
		return nil, err
	}
	// A VNIC without IPv4 has only these.
	if ipv6 || len(list) == 0 {
		for _, text := range primary.IPv6Addresses {
			if err := add(ipv6Kind(text), text); err != nil {
				return nil, err
			}
		}
	}
	for _, v := range secondary {
		if err := firstError(add(v1.NodeInternalIP, v.PrivateIP), add(v1.NodeExternalIP, v.PublicIP)); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("VNIC %s has no address", primary.ID)
	}
	return list, nil
}

// ipv6Kind tells unique local addresses (fc00::/7) from global ones.
func ipv6Kind(text string) v1.NodeAddressType {
	if address, err := netip.ParseAddr(text); err == nil && address.IsPrivate() {
		return v1.NodeInternalIP
	}
	return v1.NodeExternalIP
}

// wantsIPv6 says whether IPv6 addresses are asked for: by the label, or by a kubelet that was given one as node IP, which
// the framework has to find among ours.
func wantsIPv6(node *v1.Node) bool {
	if _, ok := node.Labels[labelIPv6]; ok {
		return true
	}
	return slices.ContainsFunc(providedNodeIPs(node), netip.Addr.Is6)
}

// providedNodeIPs are the addresses that kubelet was told to use.
func providedNodeIPs(node *v1.Node) []netip.Addr {
	var list []netip.Addr
	for text := range strings.SplitSeq(node.Annotations[cloudproviderapi.AnnotationAlphaProvidedIPAddr], ",") {
		if address, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil && !address.IsUnspecified() {
			list = append(list, address.Unmap())
		}
	}
	return list
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
