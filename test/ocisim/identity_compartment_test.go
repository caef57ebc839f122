// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/identity"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// iam is a fixture with an SDK client of the identity service.
type iam struct {
	*fixture
	identity.IdentityClient
}

// onIdentity runs a test of the identity service on virtual time.
func onIdentity(t *testing.T, test func(*testing.T, *iam)) {
	t.Helper()
	pki.SigningKey()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, ocisim.Options{})
		c, err := identity.NewIdentityClientWithConfigurationProvider(sdkProvider(f.region))
		if err != nil {
			t.Fatal(err)
		}
		c.HTTPClient, c.Configuration.CircuitBreaker = &http.Client{Transport: f.region.Transport()}, nil
		test(t, &iam{f, c})
	})
}

func (f *iam) createCompartment(parent, name string) (identity.CreateCompartmentResponse, error) {
	return f.CreateCompartment(f.t.Context(), identity.CreateCompartmentRequest{
		CreateCompartmentDetails: identity.CreateCompartmentDetails{
			CompartmentId: &parent, Name: &name, Description: common.String("made by a test"), FreeformTags: map[string]string{"a": "b"},
		},
	})
}

// activeCompartment creates a compartment and waits for it.
func (f *iam) activeCompartment(parent, name string) string {
	f.t.Helper()
	r, err := f.createCompartment(parent, name)
	noError(f.t, err)
	time.Sleep(2 * time.Second)
	f.wantCompartment(*r.Id, identity.CompartmentLifecycleStateActive)
	return *r.Id
}

func (f *iam) wantCompartment(id string, state identity.CompartmentLifecycleStateEnum) identity.GetCompartmentResponse {
	f.t.Helper()
	r, err := f.GetCompartment(f.t.Context(), identity.GetCompartmentRequest{CompartmentId: &id})
	if err != nil || r.LifecycleState != state {
		f.t.Fatalf("compartment is %s (%v), want %s", r.LifecycleState, err, state)
	}
	return r
}

// rename changes a name. The SDK does not repeat the call: by default it would, after a 409 IncorrectState.
func (f *iam) rename(id, name string) error {
	once := common.NoRetryPolicy()
	_, err := f.UpdateCompartment(f.t.Context(), identity.UpdateCompartmentRequest{
		CompartmentId: &id, UpdateCompartmentDetails: identity.UpdateCompartmentDetails{Name: &name},
		RequestMetadata: common.RequestMetadata{RetryPolicy: &once},
	})
	return err
}

// deleteCompartment accepts a deletion and returns its work request at the end.
func (f *iam) deleteCompartment(id string) identity.WorkRequest {
	f.t.Helper()
	r, err := f.DeleteCompartment(f.t.Context(), identity.DeleteCompartmentRequest{CompartmentId: &id})
	noError(f.t, err)
	f.wantCompartment(id, identity.CompartmentLifecycleStateDeleting)
	time.Sleep(time.Minute + time.Second)
	work, err := f.GetWorkRequest(f.t.Context(), identity.GetWorkRequestRequest{WorkRequestId: r.OpcWorkRequestId})
	noError(f.t, err)
	return work.WorkRequest
}

func TestCompartmentLifecycle(t *testing.T) {
	onIdentity(t, func(t *testing.T, f *iam) {
		created, err := f.createCompartment(f.compartment, "child")
		noError(t, err)
		if created.LifecycleState != identity.CompartmentLifecycleStateCreating || *created.CompartmentId != f.compartment ||
			created.FreeformTags["a"] != "b" || *created.Etag == "" || !strings.HasPrefix(*created.Id, "ocid1.compartment.oc1..") {
			t.Errorf("created %v", created.Compartment)
		}
		id := *created.Id
		refused(t, f.rename(id, "early"), http.StatusConflict, "IncorrectState")
		time.Sleep(2 * time.Second)
		before := f.wantCompartment(id, identity.CompartmentLifecycleStateActive)
		noError(t, f.rename(id, "renamed"))
		after := f.wantCompartment(id, identity.CompartmentLifecycleStateActive)
		if *after.Name != "renamed" || *after.Description != "made by a test" || *after.Etag == *before.Etag {
			t.Errorf("updated %v", after.Compartment)
		}
		work := f.deleteCompartment(id)
		if work.Status != identity.WorkRequestStatusSucceeded || work.OperationType != identity.WorkRequestOperationTypeCompartment ||
			len(work.Resources) != 1 || *work.Resources[0].Identifier != id || len(work.Errors) != 0 {
			t.Errorf("work request %v", work)
		}
		if gone := f.wantCompartment(id, identity.CompartmentLifecycleStateDeleted); !strings.HasPrefix(*gone.Name, "renamed.") {
			t.Errorf("a deleted compartment is called %q: its name is still taken", *gone.Name)
		}
		refused(t, f.rename(id, "late"), http.StatusConflict, "IncorrectState")
		_, err = f.createCompartment(id, "grandchild")
		refused(t, err, http.StatusNotFound, "NotAuthorizedOrNotFound")
		f.activeCompartment(f.compartment, "renamed")
		time.Sleep(90 * 24 * time.Hour)
		_, err = f.GetCompartment(t.Context(), identity.GetCompartmentRequest{CompartmentId: &id})
		refused(t, err, http.StatusNotFound, "NotAuthorizedOrNotFound")
	})
}

func TestCompartmentRefusals(t *testing.T) {
	onIdentity(t, func(t *testing.T, f *iam) {
		root := f.region.Options().Tenancy
		first := f.activeCompartment(f.compartment, "first")
		_, err := f.createCompartment(f.compartment, "first")
		refused(t, err, http.StatusConflict, "CompartmentAlreadyExists")
		_, err = f.createCompartment(f.compartment, "no spaces")
		refused(t, err, http.StatusBadRequest, "InvalidParameter")
		_, err = f.createCompartment("ocid1.compartment.oc1..none", "orphan")
		refused(t, err, http.StatusNotFound, "NotAuthorizedOrNotFound")
		second := f.activeCompartment(f.compartment, "second")
		refused(t, f.rename(second, "first"), http.StatusConflict, "CompartmentAlreadyExists")
		noError(t, f.rename(second, "second"))
		refused(t, f.rename(root, "mine"), http.StatusBadRequest, "InvalidParameter")
		_, err = f.DeleteCompartment(t.Context(), identity.DeleteCompartmentRequest{CompartmentId: &root})
		refused(t, err, http.StatusBadRequest, "InvalidParameter")
		_, err = f.DeleteCompartment(t.Context(), identity.DeleteCompartmentRequest{CompartmentId: &first, IfMatch: common.String("x")})
		refused(t, err, http.StatusPreconditionFailed, "NoEtagMatch")

		deep := first // the second level: the fixture's compartment is the first
		for _, name := range []string{"three", "four", "five", "six"} {
			deep = f.activeCompartment(deep, name)
		}
		_, err = f.createCompartment(deep, "seven")
		refused(t, err, http.StatusBadRequest, "InvalidParameter")
	})
}

// TestCompartmentMustBeEmpty deletes a compartment with something in it: that is found out late, and undone.
func TestCompartmentMustBeEmpty(t *testing.T) {
	onIdentity(t, func(t *testing.T, f *iam) {
		parent := f.activeCompartment(f.compartment, "parent")
		child := f.activeCompartment(parent, "child")
		network, err := core.NewVirtualNetworkClientWithConfigurationProvider(sdkProvider(f.region))
		noError(t, err)
		network.HTTPClient = f.HTTPClient.(*http.Client)
		address, err := network.CreatePublicIp(t.Context(), core.CreatePublicIpRequest{CreatePublicIpDetails: core.CreatePublicIpDetails{
			CompartmentId: &child, Lifetime: core.CreatePublicIpDetailsLifetimeReserved,
		}})
		noError(t, err)
		for _, full := range []struct{ id, holds string }{{parent, child}, {child, *address.Id}} {
			work := f.deleteCompartment(full.id)
			if work.Status != identity.WorkRequestStatusFailed || len(work.Errors) != 1 || !strings.Contains(*work.Errors[0].Message, full.holds) {
				t.Errorf("work request %v, want it failed for %s", work, full.holds)
			}
			f.wantCompartment(full.id, identity.CompartmentLifecycleStateActive)
		}
		_, err = network.DeletePublicIp(t.Context(), core.DeletePublicIpRequest{PublicIpId: address.Id})
		noError(t, err)
		time.Sleep(2 * time.Second)
		for _, id := range []string{child, parent} {
			if work := f.deleteCompartment(id); work.Status != identity.WorkRequestStatusSucceeded {
				t.Errorf("work request %v", work)
			}
		}
	})
}
