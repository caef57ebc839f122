// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import * as identity from "oci-identity";

import { closing, compartmentId, everyPage, must, noRetry, provider, refused, time, waiting } from "./region.js";

const client = closing(new identity.IdentityClient({ authenticationDetailsProvider: provider }));
const waiters = client.createWaiters(waiting);
const { Active, Deleted } = identity.models.Compartment.LifecycleState;

test("availability domains and fault domains", async () => {
  const { items: domains } = await client.listAvailabilityDomains({ compartmentId });
  assert.equal(domains.length, 3);
  for (const { name } of domains) {
    const { items } = await client.listFaultDomains({ compartmentId, availabilityDomain: must(name) });
    assert.deepEqual(items.map((domain) => domain.availabilityDomain), [name, name, name]);
  }
});

test("compartments: create, get, list, update, delete", async () => {
  const names = ["one", "two", "three", "four", "five"];
  const ids: string[] = [];
  for (const name of names) {
    const { compartment, etag } = await client.createCompartment({
      createCompartmentDetails: { compartmentId, name, description: `child ${name}`, freeformTags: { made: "by a script" } },
    });
    assert.equal(compartment.compartmentId, compartmentId);
    assert.ok(etag);
    assert.ok(Date.now() - time(compartment.timeCreated).getTime() < 3_600_000);
    ids.push(compartment.id);
    await waiters.forCompartment({ compartmentId: compartment.id }, Active);
  }

  const all = await everyPage(
    2,
    (page) => client.listCompartments({ compartmentId, limit: 2, page }),
    client.listAllCompartments({ compartmentId, limit: 2 }),
  );
  assert.deepEqual(all.map(({ id }) => id).sort(), [...ids].sort());

  const id = must(ids[0]);
  const { compartment: before, etag } = await client.getCompartment({ compartmentId: id });
  assert.equal(before.description, "child one");
  assert.deepEqual(before.freeformTags, { made: "by a script" });
  const updated = await client.updateCompartment({
    compartmentId: id,
    ifMatch: etag,
    updateCompartmentDetails: { name: "first", description: "renamed" },
  });
  assert.equal(updated.compartment.name, "first");
  assert.notEqual(updated.etag, etag);
  const stale = { compartmentId: id, ifMatch: etag, retryConfiguration: noRetry };
  await refused(client.updateCompartment({ ...stale, updateCompartmentDetails: { description: "lost" } }), 412, "NoEtagMatch");
  await refused(client.deleteCompartment(stale), 412, "NoEtagMatch");

  for (const compartmentId of ids) {
    const { opcWorkRequestId } = await client.deleteCompartment({ compartmentId });
    assert.ok(opcWorkRequestId);
  }
  for (const compartmentId of ids) {
    const gone = await waiters.forCompartment({ compartmentId }, Deleted);
    assert.equal(gone?.compartment.lifecycleState, Deleted);
  }
});
