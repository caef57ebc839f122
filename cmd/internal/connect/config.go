// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package connect is the way that all programs take from a config file to the OCI API:
//
//	c, report, err := connect.Read(path, strict, os.LookupEnv) // file and environment
//	report, err = connect.Complete(ctx, c)                     // instance metadata tells what they leave out
//	client, err := connect.New(c, clusterID)                   // principal, endpoints, limits
package connect

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
)

// metadataTimeout bounds the wait for instance metadata, which may come up later than this process.
const metadataTimeout = 5 * time.Minute

// Read reads the cloud config and the environment, without asking anybody. With strict, mistakes that would only be warnings
// are errors. Every error is logged in a line of its own; the error that is returned stands for all of them.
func Read(path string, strict bool, lookup func(name string) (value string, ok bool)) (*config.Config, config.Report, error) {
	c, report := config.ReadFile(path, strict)
	environment, more := config.FromEnviron(lookup)
	c.Environment, report = environment, report.Merge(more)
	return c, report, refuse(path, report)
}

func refuse(path string, report config.Report) error {
	problems := report.Errors()
	if len(problems) == 0 {
		return nil
	}
	for _, problem := range problems {
		klog.ErrorS(nil, "Cloud config is wrong", "problem", problem.Error())
	}
	return fmt.Errorf("cloud config %s cannot be used: it has %d errors", path, len(problems))
}

// Complete asks instance metadata for what the config leaves out, and checks that all is there now. The report is about that
// check.
func Complete(ctx context.Context, c *config.Config) (config.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	if err := config.Complete(ctx, c, config.NewMetadataClient(c.Environment.MetadataBaseURL)); err != nil {
		return config.Report{}, fmt.Errorf("complete the cloud config: %w", err)
	}
	report := config.Validate(c)
	if err := report.Err(); err != nil {
		return report, fmt.Errorf("cloud config: %w", err)
	}
	return report, nil
}
