// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/common/auth"
)

// DefaultServiceAccountTokenPath is where kubelet puts the token of a pod's service account.
const DefaultServiceAccountTokenPath = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// TokenSource returns a service-account token. It is asked for each exchange, since such tokens rotate.
type TokenSource func() (string, error)

// TokenFile reads the token from a file; an empty path means DefaultServiceAccountTokenPath.
func TokenFile(path string) TokenSource {
	if path == "" {
		path = DefaultServiceAccountTokenPath
	}
	return func() (string, error) {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("service-account token: %w", err)
		}
		return strings.TrimSpace(string(content)), nil
	}
}

// GetToken implements auth.TokenIssuer.
func (s TokenSource) GetToken() (string, error) { return s() }

// ServiceAccountToken implements auth.ServiceAccountTokenProvider.
func (s TokenSource) ServiceAccountToken() (string, error) { return s() }

// OKEWorkloadIdentity returns the principal of a workload in an enhanced OKE cluster: the cluster's proxymux endpoint gives
// a session token for the service-account token. Host, CA and region of that endpoint come from the environment variables
// that OKE sets, which the SDK reads (oci-api.md §1.6): OCI_RESOURCE_PRINCIPAL_VERSION, OCI_RESOURCE_PRINCIPAL_REGION,
// KUBERNETES_SERVICE_HOST and OCI_KUBERNETES_SERVICE_ACCOUNT_CERT_PATH. The endpoint is never asked through a proxy.
//
// owner names the service account in messages, "namespace/name"; an empty region is that of the environment.
func OKEWorkloadIdentity(owner, region string, token TokenSource) (common.ConfigurationProvider, error) {
	if token == nil {
		token = TokenFile("")
	}
	name := "OKE workload identity"
	if owner != "" {
		name += " of service account " + owner
	}
	return &sessionPrincipal{name: name, region: region, build: func() (common.ConfigurationProvider, error) {
		return auth.OkeWorkloadIdentityConfigurationProviderWithServiceAccountTokenProvider(token)
	}}, nil
}

// Defaults of the token exchange, those of the existing implementation.
const (
	DefaultRequestedTokenType = "urn:oci:token-type:oci-rpst"
	DefaultSubjectTokenType   = "jwt"
)

// TokenExchangeSettings are what a self-managed cluster configures (environment variables OCI_WORKLOAD_IDENTITY_…) for
// exchanging service-account tokens at an identity domain.
type TokenExchangeSettings struct {
	DomainURL    string // required; https://…
	ResourceType string // required
	// ClientID and ClientSecret authenticate the exchange, unless Instance does.
	ClientID     string
	ClientSecret string
	// Instance, an InstancePrincipal, signs the exchange instead.
	Instance common.ConfigurationProvider

	RequestedTokenType string // empty: DefaultRequestedTokenType
	SubjectTokenType   string // empty: DefaultSubjectTokenType
	RPSTExp            string // optional, passed through
	PublicKey          string // optional, passed through

	Region string      // required
	Token  TokenSource // nil: the file at DefaultServiceAccountTokenPath
}

// Format keeps the client secret out of whatever the settings are printed into.
func (s TokenExchangeSettings) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{%s %s client %s [redacted] %s}", s.DomainURL, s.ResourceType, s.ClientID, s.Region)
}

// TokenExchange returns the principal of a workload in a self-managed cluster. It asks for nothing yet.
func TokenExchange(s TokenExchangeSettings) (common.ConfigurationProvider, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	if s.RequestedTokenType == "" {
		s.RequestedTokenType = DefaultRequestedTokenType
	}
	if s.SubjectTokenType == "" {
		s.SubjectTokenType = DefaultSubjectTokenType
	}
	if s.Token == nil {
		s.Token = TokenFile("")
	}
	builder := auth.TokenExchangeBuilder{
		DomainUrl:                 strings.TrimSuffix(s.DomainURL, "/"),
		ClientId:                  s.ClientID,
		ClientSecret:              s.ClientSecret,
		Region:                    s.Region,
		RequestedTokenType:        s.RequestedTokenType,
		ResType:                   s.ResourceType,
		RpstExp:                   s.RPSTExp,
		SubjectTokenType:          s.SubjectTokenType,
		PublicKey:                 s.PublicKey,
		InstancePrincipalProvider: s.Instance,
	}
	name := fmt.Sprintf("workload identity of resource type %s at %s", s.ResourceType, builder.DomainUrl)
	return &sessionPrincipal{name: name, region: s.Region, build: func() (common.ConfigurationProvider, error) {
		return auth.TokenExchangeConfigurationProviderFromIssuer(s.Token, builder)
	}}, nil
}

func (s TokenExchangeSettings) validate() error {
	var problems []error
	if u, err := url.Parse(s.DomainURL); s.DomainURL == "" || err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		problems = append(problems, fmt.Errorf("domain URL %q is no http(s) URL", s.DomainURL))
	}
	if s.ResourceType == "" {
		problems = append(problems, errors.New("no resource type given"))
	}
	if s.Region == "" {
		problems = append(problems, errors.New("no region given"))
	}
	if s.Instance == nil && (s.ClientID == "" || s.ClientSecret == "") {
		problems = append(problems, errors.New("neither client id and secret nor an instance principal given"))
	}
	if len(problems) > 0 {
		return fmt.Errorf("oci: workload identity: %w", errors.Join(problems...))
	}
	return nil
}
