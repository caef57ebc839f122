// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package blockvolume makes block volumes, attaches and detaches them, expands and modifies them, and backs them up. Every
// operation is idempotent: it may be repeated at any time, by another process too, and finds what was done before.
//
//   - Volumes and backups are found by the mark that they carry (marks.go), then by their names. Creates carry retry
//     tokens, and a create under a new token waits until the old one cannot have made anything (attempts.go).
//   - Waiting is shared (watch.go): all who wait for volumes, or for attachments, of one compartment are served by one list.
//   - A volume is attached and detached from its own side: by its attachments, whatever became of the Node or the instance.
//   - An absence is proven (oci.Decide) before it counts.
//
// Errors match the sentinels of errors.go, which say what the caller may conclude; which gRPC code or exit status that is, is
// the adapter's business. Sizes are bytes, except where a name says GB, which is what the API calls a GiB.
package blockvolume
