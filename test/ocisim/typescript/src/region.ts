// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// What the scripts have in common. Nothing here knows of the simulator: who we are and where the services are comes from
// the environment, as for any program on the SDK.
import assert from "node:assert/strict";
import { after } from "node:test";

import * as common from "oci-common";

// These OCIDs are in world.yaml.
export const compartmentId = "ocid1.compartment.oc1..aaaaaaaats";
export const vcnId = "ocid1.vcn.oc1.iad.aaaaaaaats";
export const balancerSubnetId = "ocid1.subnet.oc1.iad.aaaaaaaatslb";
export const nodeSubnetId = "ocid1.subnet.oc1.iad.aaaaaaaatsnodes";

export const provider = new common.ConfigFileAuthenticationDetailsProvider();

// The SDK writes every call that fails to the console, and the scripts make many fail.
console.warn = () => {};

/** How often waiters look (every 20 ms) and when they give up (after five minutes). */
export const waiting: common.WaiterConfiguration = {
  delayStrategy: new common.FixedTimeDelayStrategy(0.02),
  terminationStrategy: new common.MaxTimeTerminationStrategy(300),
};

/** For calls whose failure a test wants to see. */
export const noRetry = common.NoRetryConfigurationDetails;

/** Closes the client at the end of the file: its circuit breaker would keep the process alive. */
export function closing<T extends { close(): void }>(client: T): T {
  after(() => client.close());
  return client;
}

/** Runs a call that must fail, and checks the error as programs see it. */
export async function refused(call: Promise<unknown>, statusCode: number, serviceCode: string): Promise<common.OciError> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof common.OciError, `not an OciError: ${JSON.stringify(error)}`);
    assert.deepEqual({ statusCode: error.statusCode, serviceCode: error.serviceCode }, { statusCode, serviceCode }, error.message);
    assert.match(error.opcRequestId ?? "", /^\S{32}/, "the error has no opc-request-id");
    assert.ok(error.message.length > 0);
    return error;
  }
  return assert.fail(`the call succeeded, expected ${statusCode} ${serviceCode}`);
}

/** Waits until reading a resource is a 404. The SDK's waiters for a final state are meant to, and pass the 404 on. */
export async function gone(read: () => Promise<unknown>): Promise<void> {
  await common.genericWaiter(
    waiting,
    () => read().then(() => 200, (error) => (error as common.OciError).statusCode),
    (status) => status === 404,
  );
}

interface Page<T> {
  items: T[];
  opcNextPage?: string;
}

/**
 * Reads a list twice, page by page and by the SDK's iterator, checks that both agree and that no page is larger than
 * asked for and no item comes twice, and returns the items.
 */
export async function everyPage<T extends object>(
  size: number,
  list: (page: string | undefined) => Promise<Page<T>>,
  iterator: AsyncIterable<T>,
): Promise<T[]> {
  const items: T[] = [];
  let pages = 0;
  let next: string | undefined;
  do {
    const page = await list(next);
    assert.ok(page.items.length <= size, `a page of ${page.items.length}, asked for ${size}`);
    items.push(...page.items);
    next = page.opcNextPage;
    pages++;
  } while (next);
  assert.ok(pages >= 3, `${items.length} items came in ${pages} pages of ${size}, the test wants at least 3`);
  const iterated: T[] = [];
  for await (const item of iterator) iterated.push(item);
  assert.deepEqual(iterated, items);
  assert.equal(new Set(items.map((item) => JSON.stringify(item))).size, items.length, "an item came twice");
  return items;
}

/** A time of an answer: the SDK leaves it as text in spite of its types. */
export function time(value: unknown): Date {
  const parsed = new Date(value as string);
  assert.ok(!Number.isNaN(parsed.getTime()), `not a time: ${value}`);
  return parsed;
}

/** Fails where the API's answer lacks something that it always has. */
export function must<T>(value: T | null | undefined): T {
  assert.ok(value !== null && value !== undefined);
  return value;
}
