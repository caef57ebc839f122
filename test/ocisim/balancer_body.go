// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"errors"
)

// BalancerBody makes balancers more than records: it listens where they listen, and checks their backends.
type BalancerBody interface {
	// Attach gives the body its region, once, before the region is used.
	Attach(*Region)
	// BackendHealth is what the checks of a backend found, HealthUnknown before they found anything. It is called with the
	// region's lock held: it must return at once, and not call the region.
	BackendHealth(balancerID, backendSet, backend string) HealthStatus
}

var errUnknownHealth = errors.New("want OK, WARNING, CRITICAL or UNKNOWN")
