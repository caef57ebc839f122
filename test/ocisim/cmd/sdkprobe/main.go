// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command sdkprobe is an ordinary program on the OCI Go SDK: it has no hook by which a test could bend it. It makes one
// call to each of the services that a cloud controller manager needs and prints what came back, one JSON object a line.
//
// It proves the simulator: where it runs on environment variables alone, so does any SDK program. It is as good for
// checking credentials and policies against the real cloud.
//
// The token exchange has no variables of the SDK's own; it uses those of the cloud controller manager:
// OCI_WORKLOAD_IDENTITY_DOMAIN_URL, _CLIENT_ID, _CLIENT_SECRET, _RESOURCE_TYPE and _TOKEN_PATH.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/common/auth"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/identity"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// result is one line of output.
type result struct {
	Service   string `json:"service"`
	Operation string `json:"operation"`
	Items     int    `json:"items"`
	RequestID string `json:"requestID,omitempty"`
	Error     string `json:"error,omitempty"`
}

// probe is one call: it answers the number of items and the service's request id, which may be nil.
type probe struct {
	service, operation string
	call               func(ctx context.Context, p common.ConfigurationProvider, compartment string) (int, *string, error)
}

func main() {
	principal := flag.String("auth", "user", "who to be: user (OCI config file), instance, workload (OKE workload identity) or exchange (token exchange)")
	compartment := flag.String("compartment", "", "OCID of the compartment to list; the tenancy by default")
	timeout := flag.Duration("timeout", time.Minute, "time for everything")
	flag.Parse()
	if err := run(*timeout, *principal, *compartment); err != nil {
		fmt.Fprintln(os.Stderr, "sdkprobe:", err)
		os.Exit(1)
	}
}

var errProbes = errors.New("not every service answered")

func run(timeout time.Duration, principal, compartment string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	provider, err := provider(principal)
	if err != nil {
		return err
	}
	if compartment == "" {
		if compartment, err = provider.TenancyOCID(); err != nil {
			return fmt.Errorf("find the tenancy: %w", err)
		}
	}
	out := json.NewEncoder(os.Stdout)
	failed := false
	for _, p := range probes() {
		line := result{Service: p.service, Operation: p.operation}
		items, requestID, err := p.call(ctx, provider, compartment)
		line.Items = items
		if requestID != nil {
			line.RequestID = *requestID
		}
		if err != nil {
			line.Error, failed = err.Error(), true
		}
		if err := out.Encode(line); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	if failed {
		return errProbes
	}
	return nil
}

func provider(principal string) (common.ConfigurationProvider, error) {
	switch principal {
	case "user":
		return common.DefaultConfigProvider(), nil
	case "instance":
		return auth.InstancePrincipalConfigurationProvider()
	case "workload":
		return auth.OkeWorkloadIdentityConfigurationProviderWithServiceAccountTokenProvider(
			auth.NewDefaultServiceAccountTokenProvider().WithSaTokenPath(os.Getenv("OCI_WORKLOAD_IDENTITY_TOKEN_PATH")))
	case "exchange":
		return exchangeProvider()
	default:
		return nil, fmt.Errorf("--auth %q: want user, instance, workload or exchange", principal)
	}
}

// exchangeProvider trades a service-account token for a security token at an identity domain.
func exchangeProvider() (common.ConfigurationProvider, error) {
	token, err := os.ReadFile(os.Getenv("OCI_WORKLOAD_IDENTITY_TOKEN_PATH"))
	if err != nil {
		return nil, fmt.Errorf("read the service-account token: %w", err)
	}
	return auth.TokenExchangeConfigurationProviderFromToken(string(token), auth.TokenExchangeBuilder{
		DomainUrl:          os.Getenv("OCI_WORKLOAD_IDENTITY_DOMAIN_URL"),
		ClientId:           os.Getenv("OCI_WORKLOAD_IDENTITY_CLIENT_ID"),
		ClientSecret:       os.Getenv("OCI_WORKLOAD_IDENTITY_CLIENT_SECRET"),
		ResType:            os.Getenv("OCI_WORKLOAD_IDENTITY_RESOURCE_TYPE"),
		Region:             os.Getenv("OCI_RESOURCE_PRINCIPAL_REGION"),
		RequestedTokenType: "urn:oci:token-type:oci-rpst",
		SubjectTokenType:   "jwt",
	})
}

func probes() []probe {
	return []probe{
		{"identity", "ListAvailabilityDomains", listDomains},
		{"compute", "ListInstances", listInstances},
		{"virtualnetwork", "ListSubnets", listSubnets},
		{"loadbalancer", "ListLoadBalancers", listLoadBalancers},
		{"networkloadbalancer", "ListNetworkLoadBalancers", listNetworkLoadBalancers},
	}
}

func listDomains(ctx context.Context, p common.ConfigurationProvider, compartment string) (int, *string, error) {
	client, err := identity.NewIdentityClientWithConfigurationProvider(p)
	if err != nil {
		return 0, nil, err
	}
	response, err := client.ListAvailabilityDomains(ctx, identity.ListAvailabilityDomainsRequest{CompartmentId: &compartment})
	return len(response.Items), response.OpcRequestId, err
}

func listInstances(ctx context.Context, p common.ConfigurationProvider, compartment string) (int, *string, error) {
	client, err := core.NewComputeClientWithConfigurationProvider(p)
	if err != nil {
		return 0, nil, err
	}
	response, err := client.ListInstances(ctx, core.ListInstancesRequest{CompartmentId: &compartment})
	return len(response.Items), response.OpcRequestId, err
}

func listSubnets(ctx context.Context, p common.ConfigurationProvider, compartment string) (int, *string, error) {
	client, err := core.NewVirtualNetworkClientWithConfigurationProvider(p)
	if err != nil {
		return 0, nil, err
	}
	response, err := client.ListSubnets(ctx, core.ListSubnetsRequest{CompartmentId: &compartment})
	return len(response.Items), response.OpcRequestId, err
}

func listLoadBalancers(ctx context.Context, p common.ConfigurationProvider, compartment string) (int, *string, error) {
	client, err := loadbalancer.NewLoadBalancerClientWithConfigurationProvider(p)
	if err != nil {
		return 0, nil, err
	}
	response, err := client.ListLoadBalancers(ctx, loadbalancer.ListLoadBalancersRequest{CompartmentId: &compartment})
	return len(response.Items), response.OpcRequestId, err
}

func listNetworkLoadBalancers(ctx context.Context, p common.ConfigurationProvider, compartment string) (int, *string, error) {
	client, err := networkloadbalancer.NewNetworkLoadBalancerClientWithConfigurationProvider(p)
	if err != nil {
		return 0, nil, err
	}
	response, err := client.ListNetworkLoadBalancers(ctx, networkloadbalancer.ListNetworkLoadBalancersRequest{CompartmentId: &compartment})
	return len(response.Items), response.OpcRequestId, err
}
