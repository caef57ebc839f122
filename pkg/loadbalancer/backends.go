// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// maxNamedNodes is how many nodes an event names; it has room for 1,024 characters.
const maxNamedNodes = 8

// target is a node as a backend.
type target struct {
	node       string
	instanceID string
	v4, v6     string
	created    time.Time
}

// targets is what the nodes given to a Service come to.
type targets struct {
	usable  []target
	skipped []string // "node: reason"
	// selected is how many nodes the selector left.
	selected int
	given    int
}

// selectTargets picks the nodes that can be backends of a balancer. Whether a node is ready plays no part: the balancer's
// own health check decides that.
func selectTargets(nodes []*v1.Node, selector labels.Selector, gone func(instanceID string) bool) targets {
	t := targets{given: len(nodes)}
	for _, node := range nodes {
		if selector != nil && !selector.Matches(labels.Set(node.Labels)) {
			continue
		}
		t.selected++
		one, err := newTarget(node, gone)
		if err != nil {
			t.skipped = append(t.skipped, fmt.Sprintf("%s: %v", node.Name, err))
			continue
		}
		t.usable = append(t.usable, one)
	}
	slices.SortFunc(t.usable, func(a, b target) int { return strings.Compare(a.node, b.node) })
	t.dropDoubles()
	slices.Sort(t.skipped)
	return t
}

// dropDoubles leaves out nodes that have the address of another one: a Node may outlive its machine, and the next machine
// get its address. The younger Node is right then.
func (t *targets) dropDoubles() {
	right := make(map[string]target, len(t.usable))
	for _, x := range t.usable {
		for _, ip := range []string{x.v4, x.v6} {
			if y, taken := right[ip]; ip != "" && (!taken || !x.created.Before(y.created)) {
				right[ip] = x
			}
		}
	}
	t.usable = slices.DeleteFunc(t.usable, func(x target) bool {
		for _, ip := range []string{x.v4, x.v6} {
			if y := right[ip]; ip != "" && y.node != x.node {
				t.skipped = append(t.skipped, fmt.Sprintf("%s: node %s has the same address", x.node, y.node))
				return true
			}
		}
		return false
	})
}

func newTarget(node *v1.Node, gone func(string) bool) (target, error) {
	id, err := oci.ParseProviderID(node.Spec.ProviderID)
	switch {
	case errors.Is(err, oci.ErrEmptyProviderID):
		return target{}, errors.New("it has no providerID yet")
	case err != nil:
		return target{}, err
	case gone != nil && gone(id):
		return target{}, errors.New("its instance is terminated")
	}
	t := target{node: node.Name, instanceID: id, created: node.CreationTimestamp.Time}
	t.v4, t.v6 = nodeAddresses(node)
	if t.v4 == "" && t.v6 == "" {
		return target{}, errors.New("it has no InternalIP")
	}
	return t, nil
}

// nodeAddresses returns the IPv4 InternalIP and the IPv6 InternalIP, or else ExternalIP, of a node. Of several the last
// one counts, as with the existing implementation, so that an upgrade moves no backend.
func nodeAddresses(node *v1.Node) (v4, v6 string) {
	external6 := ""
	for _, a := range node.Status.Addresses {
		ip, err := netip.ParseAddr(a.Address)
		if err != nil {
			continue
		}
		switch {
		case a.Type == v1.NodeInternalIP && ip.Is4():
			v4 = ip.String()
		case a.Type == v1.NodeInternalIP && ip.Is6():
			v6 = ip.String()
		case a.Type == v1.NodeExternalIP && ip.Is6():
			external6 = ip.String()
		}
	}
	if v6 == "" {
		v6 = external6
	}
	return v4, v6
}

// backends returns the targets of one address family at a node port. An NLB gets the instance too for IPv4.
func (t targets) backends(kind oci.BalancerKind, v6 bool, port int32) []oci.Backend {
	var out []oci.Backend
	for _, x := range t.usable {
		b := oci.Backend{IP: x.v4, Port: int(port), Weight: 1}
		switch {
		case v6:
			b.IP = x.v6
		case kind == oci.KindNLB:
			b.TargetID = x.instanceID
		}
		if b.IP != "" {
			out = append(out, b)
		}
	}
	return out
}

// has says whether any target has an address of the family.
func (t targets) has(v6 bool) bool {
	return slices.ContainsFunc(t.usable, func(x target) bool { return v6 && x.v6 != "" || !v6 && x.v4 != "" })
}

// lacking names the targets without an address of the family.
func (t targets) lacking(v6 bool) []string {
	var out []string
	family := "IPv4"
	if v6 {
		family = "IPv6"
	}
	for _, x := range t.usable {
		if v6 && x.v6 == "" || !v6 && x.v4 == "" {
			out = append(out, fmt.Sprintf("%s: it has no %s InternalIP", x.node, family))
		}
	}
	return out
}

// named joins a list of nodes for an event, a long one not to its end.
func named(nodes []string) string {
	if more := len(nodes) - maxNamedNodes; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(nodes[:maxNamedNodes], "; "), more)
	}
	return strings.Join(nodes, "; ")
}
