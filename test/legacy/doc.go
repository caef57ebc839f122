// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package legacy is a model of release v1.35 of this program, the implementation before this one: what it makes of a
// Service in a region, and what it finds there and removes. Upgrade and roll-back are tested with it. It is written from what
// is known about that release, not from its code, and shares no code with pkg/.
//
// It has that release's names, tags, rules and look-ups. It leaves out what plays no part for them: waiting, retrying, events,
// workload identity, and updates of what is there.
package legacy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	nlbsdk "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Release is release v1.35 in a cluster.
type Release struct {
	Region      *ocisim.Region
	Credentials common.ConfigurationProvider
	Compartment string
	VCN         string
	Subnets     []string          // loadBalancer.subnet1 and subnet2
	Lists       map[string]string // loadBalancer.securityLists: subnet to list
	Prefix      string            // LOAD_BALANCER_PREFIX
	// Services are those of the cluster; Nodes are those that may be backends.
	Services func() []*v1.Service
	Nodes    []*v1.Node
	// Secrets have the certificates, by "namespace/name".
	Secrets map[string]Secret
}

// Secret is a Secret with a certificate.
type Secret struct{ Certificate, Key, CA string }

// ErrNotFound means that a look-up has found nothing.
var ErrNotFound = errors.New("not found")

// pause is the time between two looks at something that changes.
const pause = 500 * time.Millisecond

// limit is the number of looks after which something will never come.
const limit = 3000

func (r *Release) network() (core.VirtualNetworkClient, error) {
	client, err := core.NewVirtualNetworkClientWithConfigurationProvider(r.Credentials)
	r.call(&client.BaseClient)
	return client, err
}

func (r *Release) loadBalancers() (lbsdk.LoadBalancerClient, error) {
	client, err := lbsdk.NewLoadBalancerClientWithConfigurationProvider(r.Credentials)
	r.call(&client.BaseClient)
	return client, err
}

func (r *Release) networkLoadBalancers() (nlbsdk.NetworkLoadBalancerClient, error) {
	client, err := nlbsdk.NewNetworkLoadBalancerClientWithConfigurationProvider(r.Credentials)
	r.call(&client.BaseClient)
	return client, err
}

// call makes a client call the region.
func (r *Release) call(client *common.BaseClient) {
	client.HTTPClient = &http.Client{Transport: r.Region.Transport()}
}

// until waits for something.
func until(ctx context.Context, what string, done func() bool) error {
	for range limit {
		if done() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-time.After(pause):
		}
	}
	return fmt.Errorf("%s does not come", what)
}
