// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package oci is the only code that touches the OCI SDK: domain types out, SDK types in.
//
// A Client speaks for one principal (auth.go, auth_instance.go, auth_workload.go). Each service has a file and an accessor,
// and every request of every service goes through invoke (call.go), where it
//
//   - waits for its budget, one per service and direction, which shrinks when the service throttles (limiter.go);
//   - is signed, sent, logged and counted (signer.go, transport.go, metrics.go);
//   - is repeated where that is useful and harmless, inside the caller's deadline (retry.go);
//   - becomes an *Error if it fails, to be asked with errors.Is (errors.go).
//
// A 404 is no absence: presence.go tells what is. Asynchronous operations end in waiter.go.
package oci
