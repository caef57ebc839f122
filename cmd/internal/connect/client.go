// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// New connects to the OCI API as the principal of the config. It makes no call. clusterID is the cluster's identity, which goes
// into retry tokens.
func New(c *config.Config, clusterID string) (*oci.Client, error) {
	principal, err := newPrincipal(c)
	if err != nil {
		return nil, err
	}
	return client(c, clusterID, principal)
}

// As connects to the OCI API with the workload identity of a ServiceAccount of an enhanced cluster. It makes no call.
func As(c *config.Config, clusterID, account string, token oci.TokenSource) (*oci.Client, error) {
	principal, err := oci.OKEWorkloadIdentity(account, c.Auth.Region, token)
	if err != nil {
		return nil, err
	}
	return client(c, clusterID, principal)
}

func client(c *config.Config, clusterID string, principal oci.Principal) (*oci.Client, error) {
	limit := func(l config.Limit) oci.RateLimit { return oci.RateLimit{QPS: l.QPS, Burst: l.Burst} }
	endpoints := map[oci.Service]string{}
	for service, endpoint := range c.Endpoints {
		endpoints[oci.Service(service)] = endpoint
	}
	return oci.New(oci.Options{
		Provider:    principal,
		Region:      c.Auth.Region,
		RealmDomain: c.Realm.Domain,
		Endpoints:   endpoints,
		CABundle:    []byte(c.CABundle),
		Limits: oci.RateLimits{
			Read:     limit(c.RateLimiter.Read()),
			Write:    limit(c.RateLimiter.Write()),
			Disabled: c.RateLimiter.Disabled,
		},
		ClusterID: clusterID,
	})
}

// newPrincipal makes the principal that the config asks for.
func newPrincipal(c *config.Config) (oci.Principal, error) {
	switch c.Principal() {
	case config.InstancePrincipal:
		return instancePrincipal(c)
	case config.WorkloadIdentity:
		return workloadIdentity(c)
	default:
		return oci.UserPrincipal(oci.UserCredentials{
			Tenancy:     c.Auth.Tenancy,
			User:        c.Auth.User,
			Region:      c.Auth.Region,
			Fingerprint: c.Auth.Fingerprint,
			PrivateKey:  string(c.Auth.Key),
			Passphrase:  string(c.Auth.Passphrase),
		})
	}
}

func instancePrincipal(c *config.Config) (oci.Principal, error) {
	return oci.InstancePrincipal(oci.InstancePrincipalOptions{
		Region:      c.Auth.Region,
		MetadataURL: c.Environment.MetadataBaseURL,
		RealmDomain: c.Realm.Domain,
		CABundle:    []byte(c.CABundle),
	})
}

func workloadIdentity(c *config.Config) (oci.Principal, error) {
	e := c.Environment.WorkloadIdentity
	settings := oci.TokenExchangeSettings{
		DomainURL:          e.DomainURL,
		ResourceType:       e.ResourceType,
		ClientID:           e.ClientID,
		ClientSecret:       string(e.ClientSecret),
		RequestedTokenType: e.RequestedTokenType,
		SubjectTokenType:   e.SubjectTokenType,
		RPSTExp:            e.RPSTExpiration,
		PublicKey:          e.PublicKey,
		Region:             c.Auth.Region,
		Token:              oci.TokenFile(e.TokenPath),
	}
	if e.UseInstancePrincipal {
		instance, err := instancePrincipal(c)
		if err != nil {
			return nil, err
		}
		settings.Instance = instance
	}
	return oci.TokenExchange(settings)
}
