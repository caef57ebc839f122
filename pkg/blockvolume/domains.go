// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"strings"
	"sync"

	"github.com/oracle/oci-cloud-controller-manager/internal/keylock"
)

// domainNames are the names of the availability domains of the region. They never change; one that is not known is looked
// for once more.
type domainNames struct {
	list func(ctx context.Context) ([]string, error)
	turn *keylock.Locks[string] // of who asks the cloud

	mu    sync.Mutex
	names []string
}

func newDomainNames(list func(context.Context) ([]string, error)) *domainNames {
	return &domainNames{list: list, turn: keylock.New[string]()}
}

// ShortDomain is the name of an availability domain as the zone label of nodes has it: without the prefix of the tenancy,
// which is different in each of them.
func ShortDomain(name string) string {
	if i := strings.LastIndex(name, ":"); i >= 0 {
		return name[i+1:]
	}
	return name
}

// resolve returns the full names of availability domains, in the same order. A name with a prefix is full already; one
// without has to be the whole rest of a full name, in whatever case. No names at all stand for the only domain of a region
// that has just one. Errors: ErrInvalid for a domain that the region does not have.
func (d *domainNames) resolve(ctx context.Context, wanted []string) ([]string, error) {
	if len(wanted) == 0 {
		names, err := d.known(ctx, "")
		switch {
		case err != nil:
			return nil, err
		case len(names) == 1:
			return names, nil
		}
		return nil, problem(ErrInvalid, "the request names no availability domain, and the region has %d", len(names))
	}
	out := make([]string, 0, len(wanted))
	for _, one := range wanted {
		full, err := d.full(ctx, one)
		if err != nil {
			return nil, err
		}
		out = append(out, full)
	}
	return out, nil
}

func (d *domainNames) full(ctx context.Context, wanted string) (string, error) {
	if strings.Contains(wanted, ":") {
		return wanted, nil
	}
	names, err := d.known(ctx, wanted)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if strings.EqualFold(ShortDomain(name), wanted) {
			return name, nil
		}
	}
	return "", problem(ErrInvalid, "there is no availability domain %s; the region has %s", wanted, strings.Join(names, ", "))
}

// known returns the names, read again if the given one is not among those that were read before.
func (d *domainNames) known(ctx context.Context, wanted string) ([]string, error) {
	if names := d.holding(wanted); names != nil {
		return names, nil
	}
	release, err := lock(ctx, d.turn, "", "the availability domains")
	if err != nil {
		return nil, err
	}
	defer release()
	if names := d.holding(wanted); names != nil { // somebody else has just asked
		return names, nil
	}
	names, err := d.list(ctx)
	if err != nil {
		return nil, failed(err, "list the availability domains")
	}
	d.mu.Lock()
	d.names = names
	d.mu.Unlock()
	return names, nil
}

// holding returns the names that were read, if the given one is among them.
func (d *domainNames) holding(wanted string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range d.names {
		if wanted == "" || strings.EqualFold(ShortDomain(name), wanted) {
			return d.names
		}
	}
	return nil
}
