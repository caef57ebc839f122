// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package firewall keeps the rules that Services need on security lists and network security groups (NSGs), which they
// share with each other, with other clusters, and with people and their tools.
//
// An owner (the UID of a Service) says which rules it needs on which targets: a Claim. Per sync of a Service:
//
//	Check   what would be written; no effect
//	Open    before the listeners and backends that need the rules: adds what is missing. What the owner had before still
//	        counts, because its old listeners are still there.
//	Settle  when they are as they should be, at the end of every sync, also of one that Check found nothing to do for: from
//	        now on the claim is all that the owner needs. Adds what is missing, removes what nobody needs any more.
//	Release when the owner's balancer is deleted, before or after
//
// and now and then, for all Services together, Sweep. All of these are cheap when there is nothing to do: a target is read
// once per Config.MaxAge, for everybody.
//
// # Whose rule is it
//
// Nothing about owners is stored in the cloud, because several of them can need one rule; they are computed from the
// claims. A rule of a security list is ours if its description is "k8s " and the cluster's identity; a rule of an NSG is an
// owner's if its description is "service-uid-" and the UID, as the existing implementation writes it. Such a rule
// is removed when nobody needs it. All other rules stay, byte for byte and in their order:
//
//   - A rule of somebody else that does exactly what is needed is used and not made again, unless its description is that of
//     another cluster or another Service: those take their rules away when they please.
//   - A rule with our description that is not of the form of our rules (stateful, TCP or UDP, one destination port, any
//     source port) was edited. It is nobody's of ours any more: it is left as it is and reported, and does not count as what we need.
//     An edit that leaves the form (another CIDR block, another port) cannot be told from a rule of ours; such a rule is
//     removed like one that nobody needs, and the right one is made again.
//   - A rule without description can be what the existing implementation wrote, see Claim.Legacy and Config.KeepAnonymous.
//
// # Before everybody has spoken
//
// After a start nothing is known about the needs of owners that have not settled yet. A rule that one of them may need
// (Owner.MayNeed) stays until it has; whoever settles on that target then, or Sweep, removes it. Sweep also finds rules of
// ours on lists that nobody claims any more.
//
// # Writing
//
// Each target has one writer in the process. Requests that arrive while it is busy are joined into one read, one
// computation and one write. An update of a security list is guarded by its ETag; when somebody else was faster, the list
// is read again, the wishes are merged into it again, and the update is tried again. Limits are checked before anything
// is written, and a wish that does not fit does not hold up the others.
package firewall
