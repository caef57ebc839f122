// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/common/auth"
)

const (
	// DefaultMetadataURL is where an instance finds its metadata.
	DefaultMetadataURL = "http://169.254.169.254/opc/v2"

	metadataAuthorization = "Bearer Oracle" // demanded by version 2 of the service, on every request
	metadataTimeout       = 5 * time.Second
	metadataAttempts      = 3
	metadataPause         = time.Second
	federationTimeout     = 30 * time.Second // of one request; the SDK makes up to three
)

// InstancePrincipalOptions say how an instance gets its token.
type InstancePrincipalOptions struct {
	// Region of the calls; empty means the instance's own.
	Region string
	// MetadataURL replaces DefaultMetadataURL. Metadata is never asked through a proxy.
	MetadataURL string
	// AuthEndpoint replaces the endpoint of the federation service, "https://auth.<region>.<realm domain>".
	AuthEndpoint string
	// RealmDomain is the second-level domain of a region that the SDK does not know yet.
	RealmDomain string
	// CABundle and Transport apply to the federation service as the same fields of Options do to the others.
	CABundle  []byte
	Transport http.RoundTripper
}

// InstancePrincipal returns the principal of the compute instance that the process runs on. It asks for nothing yet.
func InstancePrincipal(o InstancePrincipalOptions) (common.ConfigurationProvider, error) {
	dispatcher, err := newInstanceDispatcher(o)
	if err != nil {
		return nil, err
	}
	return &sessionPrincipal{name: "instance principal", region: o.Region, build: dispatcher.provider}, nil
}

func newInstanceDispatcher(o InstancePrincipalOptions) (*instanceDispatcher, error) {
	transport, err := newTransport(Options{CABundle: o.CABundle, Transport: o.Transport})
	if err != nil {
		return nil, err
	}
	if o.MetadataURL == "" {
		o.MetadataURL = DefaultMetadataURL
	}
	d := &instanceDispatcher{
		metadata:    &http.Client{Timeout: metadataTimeout, Transport: networkTransport(nil, nil)},
		realmDomain: o.RealmDomain,
		federation:  &http.Client{Timeout: federationTimeout, Transport: transport},
	}
	if d.metadataURL, err = httpURL(o.MetadataURL); err != nil {
		return nil, fmt.Errorf("oci: instance principal: metadata: %w", err)
	}
	if o.AuthEndpoint != "" {
		if d.authEndpoint, err = httpURL(o.AuthEndpoint); err != nil {
			return nil, fmt.Errorf("oci: instance principal: federation: %w", err)
		}
	}
	return d, nil
}

func httpURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, err
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fmt.Errorf("%q is no http(s) URL", s)
	}
	return u, nil
}

// instanceDispatcher carries the requests of the SDK's instance principal provider, which are of two kinds: to the
// metadata service, directly, and to the federation service, like any other call to OCI. The SDK by itself would send
// both through the proxy of the environment.
type instanceDispatcher struct {
	metadataURL *url.URL
	metadata    *http.Client

	authEndpoint *url.URL // nil: what the SDK makes of the region
	realmDomain  string
	federation   *http.Client
}

// provider makes the SDK's provider. It asks for the region first: the SDK's own question blocks for minutes where there
// is no metadata service.
func (d *instanceDispatcher) provider() (common.ConfigurationProvider, error) {
	region, err := d.readRegion()
	if err != nil {
		return nil, fmt.Errorf("instance metadata at %s: %w (instance principals exist on OCI compute instances only)", d.metadataURL, err)
	}
	attempt := &regionAnswer{instanceDispatcher: d, region: region}
	return auth.InstancePrincipalConfigurationProviderWithCustomClient(
		func(common.HTTPRequestDispatcher) (common.HTTPRequestDispatcher, error) { return attempt, nil })
}

func (d *instanceDispatcher) readRegion() (string, error) {
	var last error
	for attempt := range metadataAttempts {
		if attempt > 0 {
			time.Sleep(metadataPause)
		}
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, d.metadataURL.JoinPath("instance/region").String(), nil)
		if err != nil {
			return "", err
		}
		request.Header.Set("Authorization", metadataAuthorization)
		region, err := readText(d.metadata.Do(request))
		if err == nil {
			return region, nil
		}
		last = err
	}
	return "", last
}

func readText(response *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1024))
	switch {
	case err != nil:
		return "", err
	case response.StatusCode != http.StatusOK:
		return "", errors.New(response.Status)
	}
	return strings.TrimSpace(string(body)), nil
}

// Do implements common.HTTPRequestDispatcher.
func (d *instanceDispatcher) Do(request *http.Request) (*http.Response, error) {
	if isMetadataRequest(request) {
		request.URL, request.Host = d.metadataURL.JoinPath(metadataPath(request)), ""
		return d.metadata.Do(request)
	}
	// The host is no part of what is signed for the federation service (oci-api.md §1.5), hence it can be replaced.
	if d.authEndpoint != nil {
		request.URL.Scheme, request.URL.Host, request.Host = d.authEndpoint.Scheme, d.authEndpoint.Host, ""
	} else if rest, ok := strings.CutPrefix(request.URL.Host, "auth."); ok && d.realmDomain != "" {
		if region, ok := strings.CutSuffix(rest, "."+defaultRealmDomain); ok {
			request.URL.Host = inRealm(request.URL.Host, region, d.realmDomain)
			request.Host = ""
		}
	}
	return d.federation.Do(request)
}

func isMetadataRequest(request *http.Request) bool {
	return request.Header.Get("Authorization") == metadataAuthorization
}

// metadataPath is the part of the path below the version, "identity/cert.pem".
func metadataPath(request *http.Request) string {
	dir, file := path.Split(request.URL.Path)
	return path.Base(dir) + "/" + file
}

// regionAnswer answers the SDK's question for the region with what is known already.
type regionAnswer struct {
	*instanceDispatcher
	region string
}

// Do implements common.HTTPRequestDispatcher.
func (d *regionAnswer) Do(request *http.Request) (*http.Response, error) {
	if isMetadataRequest(request) && metadataPath(request) == "instance/region" {
		return &http.Response{
			Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: io.NopCloser(bytes.NewBufferString(d.region)), Request: request,
		}, nil
	}
	return d.instanceDispatcher.Do(request)
}
