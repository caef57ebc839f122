// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package loadbalancer makes Oracle's load balancers (LB) and network load balancers (NLB) what Services of type
// LoadBalancer ask for.
//
// The way of a Service through it:
//
//	annotations ─► Settings ─┐
//	Service, nodes, Facts ───┴─► Desired ─► Model ─┐
//	cloud ─► lookup ─► oci.Balancer ───────────────┼─► Diff ─► Plan ─► apply
//	annotation last-applied ─► Applied ────────────┘
//
// Everything left of apply is a pure value that can be printed. The cloud is seen through the interface Cloud, once for
// each kind of balancer; kinds differ behind it and in the rules of the model, not in the flow.
//
// Rules that the package keeps:
//
//   - A balancer is absent only if complete lists prove it. A failed lookup is an error.
//   - A balancer is ours if it carries our marks, or, without marks, the display name that only this Service gives. On a
//     balancer of ours, listeners and backend sets are ours by their names; all others are left alone, and so are fields of
//     ours that neither the Service's spec nor an annotation controls.
//   - Every write can be the last one of this process: the next one finds what was made and goes on.
//   - The caller is held for a bounded time; work that takes longer goes on in the cloud and is met again (Pending).
package loadbalancer
