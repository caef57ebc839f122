// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// reserveAddress makes a reserved address of a name, unless there is one, and tags it: a scenario of a list, a create
// and an update. Without the retry token, a lost answer would be repeated; without the list, every new process would
// make one more.
func reserveAddress(ctx context.Context, region *ocisim.Region, network http.RoundTripper, list bool) error {
	client, err := core.NewVirtualNetworkClientWithConfigurationProvider(sdkProvider(region))
	if err != nil {
		return err
	}
	once := common.NoRetryPolicy()
	client.SetCustomClientConfiguration(common.CustomClientConfiguration{RetryPolicy: &once})
	client.HTTPClient = &http.Client{Transport: network}
	// The SDK's loop of retries has a data race where its context ends. The process notices its end by the error.
	ctx = context.WithoutCancel(ctx)
	compartment := *region.Compartments()[1].Id
	var id *string
	found, err := client.ListPublicIps(ctx, core.ListPublicIpsRequest{Scope: core.ListPublicIpsScopeRegion, CompartmentId: &compartment})
	if err != nil {
		return err
	}
	for _, ip := range found.Items {
		if list && *ip.DisplayName == "ingress" {
			id = ip.Id
		}
	}
	if id == nil {
		made, err := client.CreatePublicIp(ctx, core.CreatePublicIpRequest{CreatePublicIpDetails: core.CreatePublicIpDetails{
			CompartmentId: &compartment, DisplayName: common.String("ingress"), Lifetime: core.CreatePublicIpDetailsLifetimeReserved,
		}})
		if err != nil {
			return err
		}
		id = made.Id
	}
	_, err = client.UpdatePublicIp(ctx, core.UpdatePublicIpRequest{PublicIpId: id, UpdatePublicIpDetails: core.UpdatePublicIpDetails{
		FreeformTags: map[string]string{"owner": "test"},
	}})
	return err
}

// killedEverywhere runs the scenario with a process for each kill point and another one after it, and returns the points
// after which there was more than one address.
func killedEverywhere(t *testing.T, list bool) (points, duplicates []string) {
	t.Helper()
	for point := range ocisim.KillPoints() {
		region := ocisim.New(ocisim.Options{Seed: 1, Signatures: true})
		region.AddCompartment(ocisim.Compartment{Name: "cluster"})
		ctx, network := point.Process(t.Context(), region.Transport())
		err := reserveAddress(ctx, region, network, list)
		if point.Reached() {
			points = append(points, point.String())
			if err == nil || ctx.Err() == nil {
				t.Errorf("%s: the process lives: %v, %v", point, err, ctx.Err())
			}
		} else if err != nil {
			t.Errorf("not killed: %v", err)
		}
		if err := reserveAddress(t.Context(), region, region.Transport(), list); err != nil {
			t.Errorf("%s: the next process: %v", point, err)
		}
		if len(region.PublicIPs()) != 1 {
			duplicates = append(duplicates, point.String())
		}
	}
	return points, duplicates
}

func TestKillPoints(t *testing.T) {
	pki.SigningKey()
	synctest.Test(t, func(t *testing.T) {
		points, duplicates := killedEverywhere(t, true)
		want := []string{
			"call 1 (GET /20160918/publicIps), call lost",
			"call 1 (GET /20160918/publicIps), answer lost",
			"call 2 (POST /20160918/publicIps), call lost",
			"call 2 (POST /20160918/publicIps), answer lost",
		}
		if len(points) != 6 || cmp.Diff(want, points[:4]) != "" {
			t.Errorf("kill points %q", points)
		}
		if len(duplicates) > 0 {
			t.Errorf("duplicates after %q", duplicates)
		}
		// A client that does not look for what it made is found out, at exactly the points where it must be.
		_, duplicates = killedEverywhere(t, false)
		if len(duplicates) == 0 || slices.Contains(duplicates, want[2]) || !slices.Contains(duplicates, want[3]) {
			t.Errorf("duplicates of a careless client after %q", duplicates)
		}
	})
}
