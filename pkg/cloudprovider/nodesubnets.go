// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// nodeSubnets remembers in which subnets nodes are.
type nodeSubnets struct {
	mu    sync.Mutex
	known map[string]nodeSubnet // by name
}

// nodeSubnet is the subnet of a node that has just this instance and these addresses.
type nodeSubnet struct{ identity, subnet string }

func (s *nodeSubnets) get(node, identity string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.known[node]
	return n.subnet, ok && n.identity == identity
}

// put remembers a subnet. When nodes come and go, old ones are forgotten now and then, all at once.
func (s *nodeSubnets) put(node string, n nodeSubnet, nodes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) > 2*nodes+100 {
		s.known = make(map[string]nodeSubnet, nodes)
	}
	s.known[node] = n
}

// maxSubnetReads is how many nodes are looked up at a time: those that single reads are needed for.
const maxSubnetReads = 8

// NodeSubnets returns the subnets of nodes, by their names, and why those of some are not known.
func (s *ServiceSupport) NodeSubnets(ctx context.Context, nodes []*v1.Node) (subnets map[string]string, unknown map[string]error) {
	subnets, unknown = make(map[string]string, len(nodes)), map[string]error{}
	type question struct {
		node *v1.Node
		nodeSubnet
		id string
	}
	var questions []question
	for _, node := range nodes {
		id, err := oci.ParseProviderID(node.Spec.ProviderID)
		if err != nil {
			unknown[node.Name] = err
			continue
		}
		q := question{node: node, id: id, nodeSubnet: nodeSubnet{identity: id + " " + strings.Join(backendAddresses(node), " ")}}
		if subnet, ok := s.subnets.get(node.Name, q.identity); ok {
			subnets[node.Name] = subnet
			continue
		}
		questions = append(questions, q)
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	turns := make(chan struct{}, maxSubnetReads)
	for _, q := range questions {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			need := inventory.Need{Crowd: len(questions), Compartments: hints(q.node)}
			subnet, err := s.provider.options.Inventory.SubnetOf(ctx, q.id, addressesOfNode(q.node), need)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				unknown[q.node.Name] = err
				return
			}
			q.subnet = subnet
			subnets[q.node.Name] = subnet
			s.subnets.put(q.node.Name, q.nodeSubnet, len(nodes))
		})
	}
	group.Wait()
	return subnets, unknown
}

// addressesOfNode are the addresses at which balancers reach a node: of several of a family the last one.
func addressesOfNode(node *v1.Node) []string {
	last := map[bool]string{}
	for _, a := range node.Status.Addresses {
		if address, err := netip.ParseAddr(a.Address); err == nil && a.Type == v1.NodeInternalIP {
			last[address.Is6()] = a.Address
		}
	}
	return slices.Sorted(maps.Values(last))
}
