// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/limits"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// limitsClient is an SDK client of Limits, which does not retry.
func limitsClient(t *testing.T, region *ocisim.Region) limits.LimitsClient {
	t.Helper()
	c := try(limits.NewLimitsClientWithConfigurationProvider(sdkProvider(region))).must(t)
	never := common.NoRetryPolicy()
	c.HTTPClient, c.Configuration.CircuitBreaker, c.Configuration.RetryPolicy = &http.Client{Transport: region.Transport()}, nil, &never
	return c
}

func TestLimits(t *testing.T) {
	behaviour := ocisim.DefaultBehaviour()
	behaviour.ServiceLimits = map[string]int{
		ocisim.FileSystemLimit: 3, "lb-flexible-count": 5, "made-up-count": 7, ocisim.MountTargetLimit: 2,
	}
	f := newFixture(t, ocisim.Options{Behaviour: behaviour, PageSize: 2})
	c, ctx, tenancy := limitsClient(t, f.region), t.Context(), f.region.Options().Tenancy

	services := try(c.ListServices(ctx, limits.ListServicesRequest{CompartmentId: &tenancy})).must(t)
	if len(services.Items) != 2 || *services.Items[0].Name != "filesystem" || services.OpcNextPage == nil {
		t.Errorf("services %v", services.Items)
	}
	services = try(c.ListServices(ctx, limits.ListServicesRequest{CompartmentId: &tenancy, Page: services.OpcNextPage})).must(t)
	if len(services.Items) != 1 || *services.Items[0].Name != "other" || services.OpcNextPage != nil {
		t.Errorf("services %v", services.Items)
	}
	down := try(c.ListServices(ctx, limits.ListServicesRequest{
		CompartmentId: &tenancy, SortBy: limits.ListServicesSortByName, SortOrder: limits.ListServicesSortOrderDesc,
	})).must(t)
	if *down.Items[0].Name != "other" {
		t.Errorf("services downwards: %v", down.Items)
	}
	described := try(c.ListServices(ctx, limits.ListServicesRequest{
		CompartmentId: &tenancy, SortBy: limits.ListServicesSortByDescription,
	})).must(t)
	if *described.Items[0].Description != "File Storage" {
		t.Errorf("services by description: %v", described.Items)
	}
	definitions := try(c.ListLimitDefinitions(ctx, limits.ListLimitDefinitionsRequest{
		CompartmentId: &tenancy, ServiceName: common.String("filesystem"),
	})).must(t)
	if len(definitions.Items) != 2 || definitions.Items[0].ScopeType != limits.LimitDefinitionSummaryScopeTypeAd {
		t.Errorf("definitions %v", definitions.Items)
	}
	values := try(c.ListLimitValues(ctx, limits.ListLimitValuesRequest{
		CompartmentId: &tenancy, ServiceName: common.String("filesystem"), AvailabilityDomain: common.String(secondDomain),
	})).must(t)
	if len(values.Items) != 2 || *values.Items[0].Name != ocisim.FileSystemLimit || *values.Items[0].Value != 3 ||
		*values.Items[1].AvailabilityDomain != secondDomain {
		t.Errorf("values %v", values.Items)
	}
	values = try(c.ListLimitValues(ctx, limits.ListLimitValuesRequest{CompartmentId: &tenancy, ServiceName: common.String("other")})).must(t)
	if len(values.Items) != 1 || *values.Items[0].Value != 7 || values.Items[0].ScopeType != limits.LimitValueSummaryScopeTypeRegion {
		t.Errorf("values %v", values.Items)
	}
	_, err := c.ListLimitValues(ctx, limits.ListLimitValuesRequest{CompartmentId: &tenancy, ServiceName: common.String("none")})
	refused(t, err, 404, "NotAuthorizedOrNotFound")
}

func TestResourceAvailability(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	f.region.SetBehaviour(func(b *ocisim.Behaviour) {
		b.ServiceLimits["lb-flexible-count"], b.ServiceLimits["lb-100mbps-count"], b.ServiceLimits["made-up-count"] = 1, 4, 1
		b.ServiceLimits["total-storage-gb"], b.ServiceLimits["volume-count"] = 1000, 9
	})
	// It shares its domain with the boot volume of the instance, of 47 GB.
	f.region.AddVolume(ocisim.Volume{Name: "data", SizeInGBs: 200, AvailabilityDomain: firstDomain})
	other := f.region.AddCompartment(ocisim.Compartment{Name: "other"})
	f.region.AddFileSystem(ocisim.FileSystem{Name: "here"})
	f.region.AddFileSystem(ocisim.FileSystem{Name: "elsewhere", AvailabilityDomain: secondDomain})
	f.region.AddFileSystem(ocisim.FileSystem{Name: "theirs", Compartment: "other"})
	f.region.AddLoadBalancer(ocisim.LoadBalancer{Name: "lb"})
	c, tenancy := limitsClient(t, f.region), f.region.Options().Tenancy
	ask := func(compartment, service, limit, domain string) (limits.GetResourceAvailabilityResponse, error) {
		request := limits.GetResourceAvailabilityRequest{CompartmentId: &compartment, ServiceName: &service, LimitName: &limit}
		if domain != "" {
			request.AvailabilityDomain = &domain
		}
		return c.GetResourceAvailability(t.Context(), request)
	}
	for _, want := range []struct {
		compartment, service, limit, domain string
		used, available                     int64
	}{
		{f.compartment, "filesystem", ocisim.FileSystemLimit, firstDomain, 1, 98},
		{other, "filesystem", ocisim.FileSystemLimit, firstDomain, 1, 98},
		{tenancy, "filesystem", ocisim.FileSystemLimit, firstDomain, 2, 98},
		{f.compartment, "filesystem", ocisim.FileSystemLimit, secondDomain, 1, 99},
		{f.compartment, "load-balancer", "lb-flexible-count", "", 1, 0},
		{f.compartment, "block-storage", "total-storage-gb", firstDomain, 247, 753},
		{f.compartment, "block-storage", "volume-count", firstDomain, 2, 7},
		{f.compartment, "block-storage", "volume-count", secondDomain, 0, 9},
		{f.compartment, "load-balancer", "lb-100mbps-count", "", 0, 4},
	} {
		r := try(ask(want.compartment, want.service, want.limit, want.domain)).must(t)
		if *r.Used != want.used || *r.Available != want.available {
			t.Errorf("%+v: %v", want, r.ResourceAvailability)
		}
	}
	_, err := ask(tenancy, "filesystem", ocisim.FileSystemLimit, "")
	refused(t, err, 400, "InvalidParameter")
	_, err = ask(tenancy, "load-balancer", "lb-flexible-count", firstDomain)
	refused(t, err, 400, "InvalidParameter")
	for _, limit := range []string{"made-up-count", "lb-flexible-count"} {
		_, err = ask(tenancy, "other", limit, "")
		refused(t, err, 404, "NotAuthorizedOrNotFound")
	}
}
