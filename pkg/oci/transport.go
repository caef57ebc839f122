// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
)

// certificateRefresh is how often the files that OCI_DEFAULT_CERTS_PATH and its kin name are looked at for a change. It is
// the SDK's interval.
const certificateRefresh = 30 * time.Minute

// newTransport returns what carries the requests to OCI: through the proxy of the environment, if it has one for that host.
//
// Without a CA bundle of ours the trust is the SDK's: the system's roots, or what the environment variables
// OCI_DEFAULT_CERTS_PATH and OCI_DEFAULT_CLIENT_CERTS_PATH (oci-api.md §1.4) name.
func newTransport(o Options) (http.RoundTripper, error) {
	if o.Transport != nil {
		return o.Transport, nil
	}
	if len(o.CABundle) > 0 {
		roots, err := certPool(o.CABundle)
		if err != nil {
			return nil, err
		}
		return networkTransport(&tls.Config{RootCAs: roots}, http.ProxyFromEnvironment), nil
	}
	return &common.OciHTTPTransportWrapper{
		RefreshRate:       certificateRefresh,
		TLSConfigProvider: common.GetTLSConfigTemplateForTransport(),
		TransportTemplate: func(config *tls.Config) (http.RoundTripper, error) {
			return networkTransport(config, http.ProxyFromEnvironment), nil
		},
	}, nil
}

func certPool(bundle []byte) (*x509.CertPool, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return nil, errors.New("oci: the CA bundle holds no PEM certificate")
	}
	return roots, nil
}

func networkTransport(config *tls.Config, proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	return &http.Transport{
		Proxy:                 proxy,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   32, // calls of one service run in parallel
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		TLSClientConfig:       config,
	}
}

// newBaseClient returns the part that all of the SDK's clients share.
//
// The SDK's own retries are off: they know neither our budget nor which call may be repeated, hide requests from the
// metrics, and would multiply with ours. So are its circuit breakers: they answer a spell of 429s with half a minute of
// certain failure for every caller. A policy must be set to turn retries off: without one, the operations of some services
// (network load balancer, identity) fall back to the SDK's default of eight attempts.
func newBaseClient(provider common.ConfigurationProvider, transport http.RoundTripper) common.BaseClient {
	base := common.DefaultBaseClientWithSigner(requestSigner{provider})
	base.HTTPClient = dispatcher{&http.Client{Transport: transport}}
	never := common.NoRetryPolicy()
	base.Configuration.RetryPolicy = &never
	base.Configuration.CircuitBreaker = nil
	return base
}
