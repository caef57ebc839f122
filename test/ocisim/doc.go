// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package ocisim is a simulated region of Oracle Cloud Infrastructure: an HTTP API that unmodified programs built on
// the OCI SDKs talk to. It verifies signatures, keeps etags and retry tokens, pages lists, runs state machines and
// work requests, refuses what OCI refuses, and fails on demand.
//
// A test makes a region, fills it and connects a client to it:
//
//	region := ocisim.New(ocisim.Options{Seed: 1})
//	compartment := region.AddCompartment(ocisim.Compartment{Name: "cluster"})
//	client.HTTPClient = &http.Client{Transport: region.Transport()}
//
// Region.ServeHTTP serves the same API to real connections. Time is that of the time package, so that a region
// works inside a testing/synctest bubble; Region.Advance moves it forward outside of one. State machines are
// evaluated when somebody looks.
//
// # Adding a service
//
// A service is a function that returns a table of operations and the default durations of its state changes, and a
// line in services(). The parts are:
//
//   - kind[T] (kind.go): one kind of resource. T is a model of the SDK. newKind takes a kindInfo (OCID type, label
//     for messages, policy resource type, eventual, keep) and a function that tells the engine the facets: id,
//     compartment, display name, state, availability domain, and further keys that it is listed under (parents,
//     addresses). Methods: insert, find, lookup, update (changes a copy; the etag changes exactly when the value
//     does), remove, under (iterates over a key), related (for OCIDs in bodies: 400 when absent). Stored values are
//     never changed in place.
//   - Operation (engine_route.go): one line of the API table. With Target the engine resolves the first path
//     parameter to c.target and answers 404 itself; RetryToken and IfMatch switch those headers on; Query names
//     the parameters, a trailing * the required ones. Policies see Verb and Resource. Partial says what is missing;
//     go generate writes it to docs/reference/simulator-operations.md.
//   - The handler gets a *call (which embeds *cloud: store, clock, randomness) with the region's lock held, and
//     returns an *answer or an error made by errNotFound, errInvalid, errConflict, errIncorrectState,
//     errPrecondition, errLimit, or c.rule(situation, args...) for what is not established. It reads c.param(name),
//     c.query, decode[Details](c) (which validates mandatory fields, enums and tags), checkSize, checkNumber,
//     checkPattern, and c.createIn(compartment) before a create.
//   - Answers: c.show(resource), c.created(resource) for a create, c.send(status, value), none(status),
//     accepted(status, work), c.list(listing) for a page. answer.retryAfter and etag may be set on a new answer.
//     c.markCreated is for creates whose answer does not show the resource; c.tokenLive overrides the question
//     whether a repeated retry token still has its resource.
//   - State machines: cl.after(cl.duration("service.step"), func() { ... }). Events run in order, at their own
//     time; whoever schedules one checks in it that the resource is still in the expected state.
//   - Work requests (work.go): c.submit(task{...}) accepts an asynchronous operation; tasks with one target queue,
//     cl.busy tells whether there are any. finish applies the effect or returns problems, failed undoes. A service
//     renders *workRequest in its own form with listing.render or c.send; workKey lists them by compartment.
package ocisim

//go:generate go run ./internal/gendoc ../../docs/reference/simulator-operations.md
