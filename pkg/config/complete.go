// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/klog/v2"
)

// Pauses between questions to the metadata service. It may answer 404 or nothing for a while after an instance starts.
const (
	firstMetadataPause = 500 * time.Millisecond
	lastMetadataPause  = 10 * time.Second
)

// MetadataError says that a configuration could not be completed.
type MetadataError struct {
	Keys []string // what is missing
	Err  error    // why metadata did not give it
}

// Error names the keys to set instead.
func (e *MetadataError) Error() string {
	return fmt.Sprintf("no answer from instance metadata, which is needed for %s: %v", strings.Join(e.Keys, " and "), e.Err)
}

// Unwrap returns the cause.
func (e *MetadataError) Unwrap() error { return e.Err }

// Complete fills in what the file left out and the instance knows: auth.region, compartment, and on the way regionKey
// and the realm. It asks metadata only if one of the first two is missing, so that an explicit configuration works
// outside OCI. With instance principals auth.region always is the region of the instance, as it has been.
//
// Complete asks again, with growing pauses, until there is an answer or ctx ends; then the error is a *MetadataError.
// A value that the answer lacks stays empty: Validate tells.
func Complete(ctx context.Context, c *Config, metadata Metadata) error {
	keys := c.missing()
	if len(keys) == 0 {
		return nil
	}
	document, err := ask(ctx, metadata)
	if err != nil {
		return &MetadataError{Keys: keys, Err: err}
	}
	c.complete(ctx, document)
	return nil
}

// missing lists the keys that only metadata can tell.
func (c *Config) missing() []string {
	var keys []string
	if c.Auth.Region == "" || c.UseInstancePrincipals && c.Origin("auth.region").source != fromMetadata {
		keys = append(keys, "auth.region")
	}
	if c.Compartment == "" {
		keys = append(keys, "compartment")
	}
	return keys
}

func (c *Config) complete(ctx context.Context, document InstanceDocument) {
	fill := func(at *string, value, key string) {
		if *at == "" && value != "" {
			*at = value
			c.setOrigin(key, Origin{source: fromMetadata})
		}
	}
	if name := document.RegionName(); c.UseInstancePrincipals && name != "" {
		if c.Auth.Region != "" && !document.isRegion(c.Auth.Region) {
			klog.FromContext(ctx).Info("Using the region of the instance instead of auth.region", "configured", c.Auth.Region, "region", name)
		}
		c.Auth.Region = ""
	}
	fill(&c.Auth.Region, document.RegionName(), "auth.region")
	fill(&c.Compartment, document.CompartmentID, "compartment")
	if document.isRegion(c.Auth.Region) {
		fill(&c.RegionKey, document.Region, "regionKey")
		c.Realm = Realm{Key: document.RegionInfo.RealmKey, Domain: document.RegionInfo.RealmDomainComponent}
	}
}

// ask puts the question until there is an answer.
func ask(ctx context.Context, metadata Metadata) (InstanceDocument, error) {
	logger := klog.FromContext(ctx)
	for pause := firstMetadataPause; ; pause = min(2*pause, lastMetadataPause) {
		document, err := metadata.Instance(ctx)
		if err == nil {
			return document, nil
		}
		// Spread the calls of many processes that start at the same moment: 75 to 125 % of the pause.
		wait := pause*3/4 + rand.N(pause/2) //nolint:gosec // no secret
		logger.Info("Instance metadata gives no answer yet", "err", err, "retryIn", wait)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return InstanceDocument{}, fmt.Errorf("%w; last try: %w", context.Cause(ctx), err)
		case <-timer.C:
		}
	}
}
