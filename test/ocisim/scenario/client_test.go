// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// clients are the SDK clients of one principal, without retries of their own.
type clients struct {
	principal string
	lb        loadbalancer.LoadBalancerClient
	nlb       networkloadbalancer.NetworkLoadBalancerClient
	compute   core.ComputeClient
	block     core.BlockstorageClient
	network   core.VirtualNetworkClient
}

// unsigned names the caller instead of signing: the region of the scenario believes it. RSA would take longer than all
// the rest.
type unsigned string

func (u unsigned) Sign(r *http.Request) error {
	r.Header.Set("Authorization", `Signature version="1",headers="date",keyId="`+string(u)+`",algorithm="rsa-sha256",signature="AAAA"`)
	return nil
}

// newClients connects a principal to the region.
func newClients(region *ocisim.Region, name string) (*clients, error) {
	id := "ocid1.user.oc1.." + name
	region.RegisterKey(id, &pki.SigningKey().PublicKey, ocisim.Principal{ID: id})
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(pki.SigningKey())})
	provider := common.NewRawConfigurationProvider(region.Options().Tenancy, id, region.Options().Region, "aa:bb", string(text), nil)
	c := &clients{principal: id}
	var errs [5]error
	c.lb, errs[0] = loadbalancer.NewLoadBalancerClientWithConfigurationProvider(provider)
	c.nlb, errs[1] = networkloadbalancer.NewNetworkLoadBalancerClientWithConfigurationProvider(provider)
	c.compute, errs[2] = core.NewComputeClientWithConfigurationProvider(provider)
	c.block, errs[3] = core.NewBlockstorageClientWithConfigurationProvider(provider)
	c.network, errs[4] = core.NewVirtualNetworkClientWithConfigurationProvider(provider)
	for _, base := range []*common.BaseClient{
		&c.lb.BaseClient, &c.nlb.BaseClient, &c.compute.BaseClient, &c.block.BaseClient, &c.network.BaseClient,
	} {
		base.HTTPClient = &http.Client{Transport: region.Transport()}
		base.Signer = unsigned(id)
		base.Configuration.CircuitBreaker = nil // it would keep calls back that the faults are meant for
	}
	return c, errors.Join(errs[:]...)
}

// pauses bound the waiting between attempts at one call.
const (
	firstPause = time.Second
	lastPause  = 20 * time.Second
)

// attempt makes a call until it is answered: throttling, errors of the service and lost connections are tried again
// for about a minute.
func attempt[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	for pause := firstPause; ; pause *= 2 {
		answer, err := call(ctx)
		if err == nil || !transient(err) || pause > lastPause {
			return answer, err
		}
		if err := sleep(ctx, pause/2+mathrand.N(pause)); err != nil {
			return answer, err
		}
	}
}

// transient says whether the same call may succeed a little later.
func transient(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	failure, ok := common.IsServiceError(err)
	return !ok || failure.GetHTTPStatusCode() == http.StatusTooManyRequests || failure.GetHTTPStatusCode() >= http.StatusInternalServerError
}

// absent says whether the answer was 404. It may also mean that a policy is missing.
func absent(err error) bool {
	failure, ok := common.IsServiceError(err)
	return ok && failure.GetHTTPStatusCode() == http.StatusNotFound
}

// tokenSpent says whether a retry token stands for another request, or for something that is gone.
func tokenSpent(err error) bool {
	failure, ok := common.IsServiceError(err)
	return ok && failure.GetCode() == "InvalidatedRetryToken"
}

// sleep waits for a while of virtual time.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pages collects a list. Pages may be short or empty; only a missing token ends the list.
func pages[T any](ctx context.Context, page func(context.Context, *string) ([]T, *string, error)) ([]T, error) {
	type answer struct {
		items []T
		next  *string
	}
	var all []T
	for token := (*string)(nil); ; {
		a, err := attempt(ctx, func(ctx context.Context) (answer, error) {
			items, next, err := page(ctx, token)
			return answer{items, next}, err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, a.items...)
		if a.next == nil {
			return all, nil
		}
		token = a.next
	}
}

// thing is something in the cloud with a wanted state.
type thing interface {
	fmt.Stringer
	// step brings the thing closer to the wanted state by at most one change, and says whether it is there.
	step(ctx context.Context) (settled bool, err error)
	// forget drops what is only remembered, as the end of a process would.
	forget()
}

// patience bounds the way to a wanted state, in virtual time: outages and denials take minutes.
const patience = 30 * time.Minute

// converge steps until the wanted state is there, with growing pauses while something is in the way.
func converge(ctx context.Context, x thing) error {
	began := time.Now()
	for pause := firstPause; ; {
		settled, err := x.step(ctx)
		switch {
		case settled:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Since(began) > patience:
			return fmt.Errorf("%s is not as wanted after %s: %w", x, time.Since(began), err)
		case err == nil:
			pause = firstPause
			continue
		}
		if err := sleep(ctx, pause/2+mathrand.N(pause)); err != nil {
			return err
		}
		pause = min(2*pause, lastPause)
	}
}
