// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"fmt"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Source is where the oracle reads what is and what was called. adminclient.Client is one, InProcess makes one.
type Source interface {
	// State returns the whole region in the form of ocisim.Region.Snapshot.
	State(ctx context.Context) ([]byte, error)
	// CallLog returns the calls that the log still has, oldest first.
	CallLog(ctx context.Context) ([]ocisim.Call, error)
	// Counters returns the number of calls by "service.Operation". They never forget, unlike the log.
	Counters(ctx context.Context) (map[string]int, error)
}

// InProcess lets the oracle look at a region of this process.
func InProcess(region *ocisim.Region) Source { return inProcess{region} }

type inProcess struct {
	region *ocisim.Region
}

// State implements Source.
func (p inProcess) State(context.Context) ([]byte, error) { return p.region.Snapshot(), nil }

// CallLog implements Source.
func (p inProcess) CallLog(context.Context) ([]ocisim.Call, error) { return p.region.Calls(), nil }

// Counters implements Source.
func (p inProcess) Counters(context.Context) (map[string]int, error) { return p.region.Counts(), nil }

// Evidence is what the oracle judges.
type Evidence struct {
	State    []byte // as of ocisim.Region.Snapshot
	Calls    []ocisim.Call
	Counters map[string]int
}

// Gather reads the evidence. The state comes first and the counters before the log, so that every change has its call
// in the log, and no call is missed that was counted.
func Gather(ctx context.Context, from Source) (Evidence, error) {
	var e Evidence
	var err error
	if e.State, err = from.State(ctx); err != nil {
		return e, fmt.Errorf("read the state of the region: %w", err)
	}
	if e.Counters, err = from.Counters(ctx); err != nil {
		return e, fmt.Errorf("read the counters of the region: %w", err)
	}
	if e.Calls, err = from.CallLog(ctx); err != nil {
		return e, fmt.Errorf("read the call log of the region: %w", err)
	}
	return e, nil
}

// Check reads the evidence and judges it. The error is about reading; what is wrong stands in the report.
func Check(ctx context.Context, from Source, q Question) (*Report, error) {
	e, err := Gather(ctx, from)
	if err != nil {
		return nil, err
	}
	return Judge(e, q)
}
