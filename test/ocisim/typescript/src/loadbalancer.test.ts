// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import * as loadbalancer from "oci-loadbalancer";

import { balancerSubnetId, closing, compartmentId, everyPage, must, noRetry, provider, refused, time, waiting } from "./region.js";

const client = closing(new loadbalancer.LoadBalancerClient({ authenticationDetailsProvider: provider }));
const waiters = client.createWaiters(waiting);
const { Active } = loadbalancer.models.LoadBalancer.LifecycleState;
const { Succeeded } = loadbalancer.models.WorkRequest.LifecycleState;

/** Waits for the work request of an accepted call, and returns it. */
async function done({ opcWorkRequestId }: { opcWorkRequestId: string }) {
  const { workRequest } = await waiters.forWorkRequest({ workRequestId: opcWorkRequestId });
  assert.equal(workRequest.lifecycleState, Succeeded, workRequest.message);
  assert.ok(time(workRequest.timeFinished) >= time(workRequest.timeAccepted));
  return workRequest;
}

const healthChecker = { protocol: "HTTP", port: 10256, urlPath: "/healthz", returnCode: 200, retries: 3, timeoutInMillis: 3000, intervalInMillis: 10000 };

async function create(displayName: string): Promise<string> {
  const { loadBalancerId } = await done(
    await client.createLoadBalancer({
      opcRetryToken: `create ${displayName}`,
      createLoadBalancerDetails: {
        compartmentId,
        displayName,
        shapeName: "flexible",
        shapeDetails: { minimumBandwidthInMbps: 10, maximumBandwidthInMbps: 100 },
        subnetIds: [balancerSubnetId],
        freeformTags: { made: "by a script" },
        backendSets: { web: { policy: "ROUND_ROBIN", healthChecker, backends: [{ ipAddress: "10.0.10.2", port: 30080 }] } },
        listeners: { http: { defaultBackendSetName: "web", port: 80, protocol: "TCP" } },
      },
    }),
  );
  return loadBalancerId;
}

test("load balancers", async (t) => {
  const ids = await Promise.all(["lb-1", "lb-2", "lb-3", "lb-4", "lb-5"].map(create));
  const loadBalancerId = must(ids[0]);

  await t.test("get", async () => {
    const { loadBalancer } = await client.getLoadBalancer({ loadBalancerId });
    assert.equal(loadBalancer.lifecycleState, Active);
    assert.equal(loadBalancer.listeners?.["http"]?.port, 80);
    assert.deepEqual(loadBalancer.backendSets?.["web"]?.backends.map(({ name }) => name), ["10.0.10.2:30080"]);
    assert.equal(loadBalancer.ipAddresses?.length, 1);
    assert.deepEqual(loadBalancer.freeformTags, { made: "by a script" });
  });

  await t.test("list", async () => {
    const all = await everyPage(
      2,
      (page) => client.listLoadBalancers({ compartmentId, limit: 2, page }),
      client.listAllLoadBalancers({ compartmentId, limit: 2 }),
    );
    assert.deepEqual(all.map(({ id }) => id).sort(), [...ids].sort());
    const { items } = await client.listLoadBalancers({ compartmentId, displayName: "lb-3" });
    assert.deepEqual(items.map(({ displayName }) => displayName), ["lb-3"]);
  });

  await t.test("update", async () => {
    await done(await client.updateLoadBalancer({ loadBalancerId, updateLoadBalancerDetails: { displayName: "renamed", freeformTags: {} } }));
    await done(
      await client.updateLoadBalancerShape({
        loadBalancerId,
        updateLoadBalancerShapeDetails: { shapeName: "flexible", shapeDetails: { minimumBandwidthInMbps: 20, maximumBandwidthInMbps: 50 } },
      }),
    );
    const { loadBalancer } = await client.getLoadBalancer({ loadBalancerId });
    assert.equal(loadBalancer.displayName, "renamed");
    assert.deepEqual(loadBalancer.freeformTags, {});
    assert.deepEqual(loadBalancer.shapeDetails, { minimumBandwidthInMbps: 20, maximumBandwidthInMbps: 50 });
  });

  await t.test("backend sets and listeners", async () => {
    await done(
      await client.createBackendSet({
        loadBalancerId,
        createBackendSetDetails: { name: "tls", policy: "LEAST_CONNECTIONS", healthChecker, backends: [] },
      }),
    );
    await done(
      await client.updateBackendSet({
        loadBalancerId,
        backendSetName: "tls",
        updateBackendSetDetails: {
          policy: "IP_HASH",
          healthChecker,
          backends: [
            { ipAddress: "10.0.10.2", port: 30443, weight: 2 },
            { ipAddress: "10.0.10.3", port: 30443, drain: true },
          ],
        },
      }),
    );
    const { backendSet } = await client.getBackendSet({ loadBalancerId, backendSetName: "tls" });
    assert.equal(backendSet.policy, "IP_HASH");
    assert.deepEqual(backendSet.backends.map(({ name, weight, drain }) => ({ name, weight, drain })), [
      { name: "10.0.10.2:30443", weight: 2, drain: false },
      { name: "10.0.10.3:30443", weight: 1, drain: true },
    ]);
    await done(
      await client.createListener({ loadBalancerId, createListenerDetails: { name: "https", defaultBackendSetName: "tls", port: 443, protocol: "TCP" } }),
    );
    await refused(client.deleteBackendSet({ loadBalancerId, backendSetName: "tls", retryConfiguration: noRetry }), 400, "InvalidParameter");
    await done(
      await client.updateListener({
        loadBalancerId,
        listenerName: "https",
        updateListenerDetails: { defaultBackendSetName: "tls", port: 8443, protocol: "TCP" },
      }),
    );
    const { loadBalancer } = await client.getLoadBalancer({ loadBalancerId });
    assert.equal(loadBalancer.listeners?.["https"]?.port, 8443);
    await done(await client.deleteListener({ loadBalancerId, listenerName: "https" }));
    await done(await client.deleteBackendSet({ loadBalancerId, backendSetName: "tls" }));
    const { items } = await client.listWorkRequests({ loadBalancerId });
    assert.deepEqual(new Set(items.map(({ lifecycleState }) => lifecycleState)), new Set([Succeeded]));
  });

  await t.test("single backends", async () => {
    const backendSetName = "web";
    const backendName = "10.0.10.4:30080";
    const createBackendDetails = { ipAddress: "10.0.10.4", port: 30080, weight: 2 };
    await done(await client.createBackend({ loadBalancerId, backendSetName, createBackendDetails }));
    const updateBackendDetails = { weight: 5, backup: false, drain: true, offline: false };
    await done(await client.updateBackend({ loadBalancerId, backendSetName, backendName, updateBackendDetails }));
    const { backend } = await client.getBackend({ loadBalancerId, backendSetName, backendName });
    assert.deepEqual({ weight: backend.weight, drain: backend.drain }, { weight: 5, drain: true });
    const { items } = await client.listBackends({ loadBalancerId, backendSetName });
    assert.deepEqual(items.map(({ name }) => name), ["10.0.10.2:30080", backendName]);
    const { backendSetHealth } = await client.getBackendSetHealth({ loadBalancerId, backendSetName });
    assert.equal(backendSetHealth.totalBackendCount, 2);
    await done(await client.deleteBackend({ loadBalancerId, backendSetName, backendName }));
    const gone = client.getBackend({ loadBalancerId, backendSetName, backendName, retryConfiguration: noRetry });
    await refused(gone, 404, "NotAuthorizedOrNotFound");
  });

  await t.test("delete", async () => {
    const deletions = await Promise.all(ids.map((loadBalancerId) => client.deleteLoadBalancer({ loadBalancerId })));
    await Promise.all(deletions.map(done));
    await refused(client.getLoadBalancer({ loadBalancerId, retryConfiguration: noRetry }), 404, "NotAuthorizedOrNotFound");
    assert.deepEqual((await client.listLoadBalancers({ compartmentId })).items, []);
  });
});
