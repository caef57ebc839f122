// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/identity"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// Service names an OCI service. The values are used as metric labels and as keys of Options.Endpoints.
type Service string

// The services that the components need.
const (
	ServiceCompute             Service = "compute"
	ServiceVirtualNetwork      Service = "virtualnetwork"
	ServiceIdentity            Service = "identity"
	ServiceLoadBalancer        Service = "loadbalancer"
	ServiceNetworkLoadBalancer Service = "networkloadbalancer"
	ServiceBlockStorage        Service = "blockstorage"
)

// Services are all services a Client talks to.
func Services() []Service {
	return []Service{
		ServiceCompute, ServiceVirtualNetwork, ServiceIdentity, ServiceLoadBalancer, ServiceNetworkLoadBalancer, ServiceBlockStorage,
	}
}

const (
	// defaultPageSize is the limit sent with every list. The services cap it themselves; a shorter page is no error.
	defaultPageSize = 1000

	// defaultRecentWindow covers the time in which a new resource may still be missing from reads.
	defaultRecentWindow = 60 * time.Second
)

// Options configure a Client.
type Options struct {
	// Provider says who calls: see UserPrincipal, InstancePrincipal, OKEWorkloadIdentity and TokenExchange.
	Provider common.ConfigurationProvider

	// Region is a region name ("eu-frankfurt-1"), a region key ("fra"), or a dotted domain. Empty takes the provider's.
	Region string

	// RealmDomain is the second-level domain ("oraclecloud.com") of a region that the SDK does not know yet, as instance
	// metadata gives it. It is ignored for regions that the SDK knows.
	RealmDomain string

	// Endpoints override the endpoint of single services, "https://127.0.0.1:18443": scheme and host only.
	Endpoints map[Service]string

	// CABundle holds PEM certificates that replace the system's roots for calls to OCI.
	CABundle []byte

	// Transport, if set, carries every request; CABundle and the proxy settings do not apply then.
	Transport http.RoundTripper

	// Limits bound the rate of calls.
	Limits RateLimits

	// ClusterID is the cluster's identity. It goes into retry tokens.
	ClusterID string

	// PageSize is the limit parameter of lists; 0 means 1000.
	PageSize int

	// RecentWindow is how long a 404 on a read of an OCID that this process created is taken for the eventual
	// consistency of the service, and the read repeated; 0 means 60 s.
	RecentWindow time.Duration

	// Rand returns a number in [0,1) for the jitter of back-offs; nil means math/rand.
	Rand func() float64
}

// Client calls the OCI services as one principal. It is safe for concurrent use.
//
// Each service has an accessor (Compute, Network, …) in the file of that service.
type Client struct {
	compute             core.ComputeClient
	network             core.VirtualNetworkClient
	identity            identity.IdentityClient
	loadBalancer        loadbalancer.LoadBalancerClient
	networkLoadBalancer networkloadbalancer.NetworkLoadBalancerClient
	blockStorage        core.BlockstorageClient

	// These two hold the waiters, which their callers share.
	loadBalancers        *LoadBalancers
	networkLoadBalancers *NetworkLoadBalancers

	clusterID string
	pageSize  int

	principalName string
	refresher     principalRefresher // nil when there is nothing to refresh
	limiters      map[limiterKey]*limiter
	recent        *recentCreates
	rand          func() float64
}

// New returns a Client. It makes no call, unless the region is the provider's and that has to ask for it.
func New(o Options) (*Client, error) {
	if o.Provider == nil {
		return nil, errors.New("oci: no principal given")
	}
	region := o.Region
	if region == "" {
		var err error
		if region, err = o.Provider.Region(); err != nil {
			return nil, fmt.Errorf("oci: region of the principal: %w", err)
		}
	}
	if region == "" {
		return nil, errors.New("oci: no region given")
	}
	transport, err := newTransport(o)
	if err != nil {
		return nil, err
	}
	registerMetrics()

	c := &Client{
		clusterID: o.ClusterID,
		pageSize:  o.PageSize,
		limiters:  newLimiters(o.Limits),
		rand:      o.Rand,
	}
	if c.pageSize <= 0 {
		c.pageSize = defaultPageSize
	}
	window := o.RecentWindow
	if window <= 0 {
		window = defaultRecentWindow
	}
	c.recent = newRecentCreates(window)
	if c.rand == nil {
		c.rand = rand.Float64
	}
	c.principalName = DescribePrincipal(o.Provider)
	c.refresher, _ = o.Provider.(principalRefresher)
	if err := c.buildServices(o, region, transport); err != nil {
		return nil, err
	}
	c.loadBalancers = newLoadBalancers(c)
	c.networkLoadBalancers = newNetworkLoadBalancers(c)
	return c, nil
}

// Principal says who calls, without secrets.
func (c *Client) Principal() string { return c.principalName }

// ClusterID is the cluster's identity as given in Options.
func (c *Client) ClusterID() string { return c.clusterID }

// buildServices makes the SDK's clients. They are built with their base only: the SDK's constructors would ask the
// principal for a token, read process-wide settings and install retries and circuit breakers of their own.
func (c *Client) buildServices(o Options, region string, transport http.RoundTripper) error {
	base := newBaseClient(o.Provider, transport)
	c.compute.BaseClient, c.compute.BasePath = base, "20160918"
	c.network.BaseClient, c.network.BasePath = base, "20160918"
	c.identity.BaseClient, c.identity.BasePath = base, "20160918"
	c.loadBalancer.BaseClient, c.loadBalancer.BasePath = base, "20170115"
	c.networkLoadBalancer.BaseClient, c.networkLoadBalancer.BasePath = base, "20200501"
	c.blockStorage.BaseClient, c.blockStorage.BasePath = base, "20160918"

	c.compute.SetRegion(region)
	c.network.SetRegion(region)
	c.identity.SetRegion(region)
	c.loadBalancer.SetRegion(region)
	c.networkLoadBalancer.SetRegion(region)
	c.blockStorage.SetRegion(region)

	known := map[Service]*common.BaseClient{
		ServiceCompute:             &c.compute.BaseClient,
		ServiceVirtualNetwork:      &c.network.BaseClient,
		ServiceIdentity:            &c.identity.BaseClient,
		ServiceLoadBalancer:        &c.loadBalancer.BaseClient,
		ServiceNetworkLoadBalancer: &c.networkLoadBalancer.BaseClient,
		ServiceBlockStorage:        &c.blockStorage.BaseClient,
	}
	for service := range o.Endpoints {
		if known[service] == nil {
			return fmt.Errorf("oci: endpoint given for unknown service %q", service)
		}
	}
	for service, client := range known {
		common.UpdateEndpointTemplateForOptions(client)
		client.Host = inRealm(client.Host, region, o.RealmDomain)
		if endpoint := o.Endpoints[service]; endpoint != "" {
			if err := validEndpoint(endpoint); err != nil {
				return fmt.Errorf("oci: endpoint of %s: %w", service, err)
			}
			client.Host = strings.TrimSuffix(endpoint, "/")
		}
		if client.Host == "" {
			return fmt.Errorf("oci: no endpoint of %s for region %q", service, region)
		}
	}
	return nil
}

// inRealm puts a region that the SDK does not know into its realm.
func inRealm(host, region, realmDomain string) string {
	if realmDomain == "" {
		return host
	}
	if _, err := common.StringToRegion(region).RealmID(); err == nil {
		return host
	}
	const fallback = "." + defaultRealmDomain
	if trimmed, ok := strings.CutSuffix(host, fallback); ok {
		return trimmed + "." + realmDomain
	}
	return host
}

// defaultRealmDomain is what the SDK takes for a region that it does not know.
const defaultRealmDomain = "oraclecloud.com"

func validEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return err
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q: the scheme must be http or https", endpoint)
	case u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q must be a scheme and a host, nothing else", endpoint)
	}
	return nil
}
