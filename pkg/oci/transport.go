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

// newTransport returns what carries the requests to OCI.
func newTransport(o Options) (http.RoundTripper, error) {
	if o.Transport != nil {
		return o.Transport, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(o.CABundle) > 0 {
		roots, err := certPool(o.CABundle)
		if err != nil {
			return nil, err
		}
		config.RootCAs = roots
	}
	return networkTransport(config, http.ProxyFromEnvironment), nil
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
	base.HTTPClient = &http.Client{Transport: transport}
	never := common.NoRetryPolicy()
	base.Configuration.RetryPolicy = &never
	base.Configuration.CircuitBreaker = nil
	return base
}
