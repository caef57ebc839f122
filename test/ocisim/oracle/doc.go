// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package oracle says whether a program has left a simulated region as it should be: nothing of its own without a
// living owner, nothing twice, nothing changed that is not its own, no writes where none were due, no more calls than
// allowed, no secret in a log. It judges what the region itself shows (a snapshot and the call log), so it works on a
// region in the process and, through the admin API, on one in another.
//
//	before := region.Snapshot()
//	// … the program under test works …
//	report, err := oracle.Check(ctx, oracle.InProcess(region), oracle.Question{
//		Before: before,
//		Us:     oracle.Us{Principals: []string{user}, Cluster: "c1", Owners: []string{"uid-of-a-living-Service"}},
//	})
//	// report.Err() is nil when there is nothing to say; report.String() is for people.
//
// What it cannot judge for want of evidence is a finding too: an oracle must not be blind without saying so.
package oracle
