// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// DefaultMetadataURL is where every OCI instance finds the metadata service, version 2.
	DefaultMetadataURL = "http://169.254.169.254/opc/v2"

	// metadataTimeout bounds one request. The address is link-local: an answer takes milliseconds, or there is none.
	metadataTimeout = 5 * time.Second

	// maxMetadataSize bounds the document, in bytes. User data in it may reach 32 KB; the rest is a few KB.
	maxMetadataSize = 1 << 20
)

// Metadata tells about the instance that the process runs on.
type Metadata interface {
	// Instance asks once.
	Instance(ctx context.Context) (InstanceDocument, error)
}

// InstanceDocument is the part of /opc/v2/instance/ that a configuration can be completed from, and that tells where an instance is.
type InstanceDocument struct {
	// AvailabilityDomain is its full name, "zkJl:PHX-AD-1".
	AvailabilityDomain string `json:"availabilityDomain"`
	// Shape is the instance's, "VM.Standard.E5.Flex".
	Shape string `json:"shape"`

	CompartmentID string `json:"compartmentId"`
	// Region is a short key ("iad") in old regions and the name in newer ones, as in OCIDs.
	Region string `json:"region"`
	// CanonicalRegionName is always the name, "us-ashburn-1".
	CanonicalRegionName string     `json:"canonicalRegionName"`
	RegionInfo          RegionInfo `json:"regionInfo"`
}

// RegionInfo places a region in its realm.
type RegionInfo struct {
	RealmKey             string `json:"realmKey"`
	RealmDomainComponent string `json:"realmDomainComponent"`
	RegionKey            string `json:"regionKey"`
	RegionIdentifier     string `json:"regionIdentifier"`
}

// RegionName returns the region's name, or the best there is.
func (i InstanceDocument) RegionName() string {
	for _, name := range []string{i.CanonicalRegionName, i.RegionInfo.RegionIdentifier, i.Region} {
		if name != "" {
			return name
		}
	}
	return ""
}

// isRegion says whether name is a name or key of the instance's region.
func (i InstanceDocument) isRegion(name string) bool {
	for _, mine := range []string{i.CanonicalRegionName, i.RegionInfo.RegionIdentifier, i.RegionInfo.RegionKey, i.Region} {
		if mine != "" && strings.EqualFold(name, mine) {
			return true
		}
	}
	return false
}

// MetadataStatusError is an answer of the metadata service other than 200.
type MetadataStatusError struct {
	URL    string
	Status int
}

// Error names the address and the status.
func (e *MetadataStatusError) Error() string {
	return fmt.Sprintf("GET %s: HTTP status %d %s", e.URL, e.Status, http.StatusText(e.Status))
}

// MetadataClient asks the instance metadata service. It never uses a proxy: the service answers only to the instance
// itself, and refuses forwarded requests.
type MetadataClient struct {
	url    string
	client *http.Client
}

// NewMetadataClient returns a client for the service at baseURL; empty means DefaultMetadataURL.
func NewMetadataClient(baseURL string) *MetadataClient {
	if baseURL == "" {
		baseURL = DefaultMetadataURL
	}
	return &MetadataClient{
		url: strings.TrimSuffix(baseURL, "/") + "/instance/",
		client: &http.Client{
			Timeout: metadataTimeout,
			Transport: &http.Transport{
				Proxy:             nil,
				DialContext:       (&net.Dialer{Timeout: metadataTimeout}).DialContext,
				DisableKeepAlives: true, // one request in the life of a process
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Instance reads the instance document with one request of at most five seconds. An error is a *MetadataStatusError,
// or that of the connection.
func (m *MetadataClient) Instance(ctx context.Context) (InstanceDocument, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url, http.NoBody)
	if err != nil {
		return InstanceDocument{}, fmt.Errorf("instance metadata: %w", err)
	}
	request.Header.Set("Authorization", "Bearer Oracle") // asked for by version 2, against request forgery
	response, err := m.client.Do(request)
	if err != nil {
		return InstanceDocument{}, fmt.Errorf("instance metadata: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return InstanceDocument{}, fmt.Errorf("instance metadata: %w", &MetadataStatusError{m.url, response.StatusCode})
	}
	var document InstanceDocument
	if err := json.NewDecoder(io.LimitReader(response.Body, maxMetadataSize)).Decode(&document); err != nil {
		return InstanceDocument{}, fmt.Errorf("instance metadata: GET %s: %w", m.url, err)
	}
	return document, nil
}
