// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import * as common from "oci-common";
import * as networkloadbalancer from "oci-networkloadbalancer";

import { balancerSubnetId, closing, compartmentId, everyPage, must, noRetry, provider, refused, waiting } from "./region.js";

const client = closing(new networkloadbalancer.NetworkLoadBalancerClient({ authenticationDetailsProvider: provider }));
const waiters = client.createWaiters(waiting);
const { models } = networkloadbalancer;
const { Active } = models.LifecycleState;
const { Succeeded } = models.OperationStatus;

/** Waits for the work request of an accepted call. */
async function done({ opcWorkRequestId }: { opcWorkRequestId: string }): Promise<void> {
  const { workRequest } = await waiters.forWorkRequest({ workRequestId: opcWorkRequestId });
  assert.equal(workRequest.status, Succeeded);
  assert.equal(workRequest.percentComplete, 100);
}

const healthChecker = { protocol: models.HealthCheckProtocols.Tcp, port: 10256 };

async function create(displayName: string): Promise<string> {
  const created = await client.createNetworkLoadBalancer({
    opcRetryToken: `create ${displayName}`,
    createNetworkLoadBalancerDetails: {
      compartmentId,
      displayName,
      subnetId: balancerSubnetId,
      isPreserveSourceDestination: false,
      backendSets: {
        web: { policy: models.NetworkLoadBalancingPolicy.FiveTuple, healthChecker, backends: [{ ipAddress: "10.0.10.2", port: 30080 }] },
      },
      listeners: { http: { name: "http", defaultBackendSetName: "web", port: 80, protocol: models.ListenerProtocols.Tcp } },
    },
  });
  await done(created);
  const networkLoadBalancerId = created.networkLoadBalancer.id;
  const active = await waiters.forNetworkLoadBalancer({ networkLoadBalancerId }, Active);
  assert.equal(active?.networkLoadBalancer.displayName, displayName);
  return networkLoadBalancerId;
}

test("network load balancers", async (t) => {
  const ids = await Promise.all(["nlb-1", "nlb-2", "nlb-3", "nlb-4", "nlb-5"].map(create));
  const networkLoadBalancerId = must(ids[0]);

  await t.test("get", async () => {
    const { networkLoadBalancer, etag } = await client.getNetworkLoadBalancer({ networkLoadBalancerId });
    assert.ok(etag);
    assert.equal(networkLoadBalancer.listeners?.["http"]?.port, 80);
    assert.deepEqual(networkLoadBalancer.backendSets?.["web"]?.backends?.map(({ port }) => port), [30080]);
  });

  await t.test("list", async () => {
    const all = await everyPage(
      2,
      async (page) => {
        const answer = await client.listNetworkLoadBalancers({ compartmentId, limit: 2, page });
        return { items: must(answer.networkLoadBalancerCollection.items), opcNextPage: answer.opcNextPage };
      },
      // For this service the SDK has no listAll… of its own, but an iterator for any.
      common.genericPaginateRecords(
        { compartmentId, limit: 2 } as networkloadbalancer.requests.ListNetworkLoadBalancersRequest,
        (request) => client.listNetworkLoadBalancers(request),
        (answer) => answer.opcNextPage,
        (request, token) => (request.page = token),
        (answer) => must(answer.networkLoadBalancerCollection.items),
      ),
    );
    assert.deepEqual(all.map(({ id }) => id).sort(), [...ids].sort());
  });

  await t.test("update", async () => {
    const { etag } = await client.getNetworkLoadBalancer({ networkLoadBalancerId });
    const renamed = { networkLoadBalancerId, ifMatch: etag, updateNetworkLoadBalancerDetails: { displayName: "renamed" } };
    const accepted = await client.updateNetworkLoadBalancer(renamed);
    await done(accepted);
    await refused(client.updateNetworkLoadBalancer({ ...renamed, retryConfiguration: noRetry }), 412, "NoEtagMatch");
    const { networkLoadBalancer } = await client.getNetworkLoadBalancer({ networkLoadBalancerId });
    assert.equal(networkLoadBalancer.displayName, "renamed");
  });

  await t.test("backend sets and listeners", async () => {
    await done(
      await client.createBackendSet({
        networkLoadBalancerId,
        createBackendSetDetails: { name: "dns", policy: models.NetworkLoadBalancingPolicy.ThreeTuple, healthChecker },
      }),
    );
    await done(
      await client.updateBackendSet({
        networkLoadBalancerId,
        backendSetName: "dns",
        updateBackendSetDetails: {
          policy: models.NetworkLoadBalancingPolicy.TwoTuple,
          healthChecker,
          backends: [{ ipAddress: "10.0.10.3", port: 30053, weight: 3 }],
        },
      }),
    );
    await done(
      await client.createListener({
        networkLoadBalancerId,
        createListenerDetails: { name: "dns", defaultBackendSetName: "dns", port: 53, protocol: models.ListenerProtocols.Udp },
      }),
    );
    await done(
      await client.updateListener({
        networkLoadBalancerId,
        listenerName: "dns",
        updateListenerDetails: { port: 5353, protocol: models.ListenerProtocols.TcpAndUdp },
      }),
    );
    const { networkLoadBalancer } = await client.getNetworkLoadBalancer({ networkLoadBalancerId });
    assert.equal(networkLoadBalancer.backendSets?.["dns"]?.policy, "TWO_TUPLE");
    assert.equal(networkLoadBalancer.backendSets?.["dns"]?.backends?.[0]?.weight, 3);
    assert.equal(networkLoadBalancer.listeners?.["dns"]?.protocol, "TCP_AND_UDP");
    await done(await client.deleteListener({ networkLoadBalancerId, listenerName: "dns" }));
    await done(await client.deleteBackendSet({ networkLoadBalancerId, backendSetName: "dns" }));
  });

  await t.test("single backends", async () => {
    const backendSetName = "web";
    const backendName = "10.0.10.4:30080";
    const createBackendDetails = { name: backendName, ipAddress: "10.0.10.4", port: 30080 };
    await done(await client.createBackend({ networkLoadBalancerId, backendSetName, createBackendDetails }));
    await done(
      await client.updateBackend({ networkLoadBalancerId, backendSetName, backendName, updateBackendDetails: { weight: 5, isDrain: true } }),
    );
    const { backend } = await client.getBackend({ networkLoadBalancerId, backendSetName, backendName });
    assert.deepEqual({ weight: backend.weight, isDrain: backend.isDrain }, { weight: 5, isDrain: true });
    const { backendCollection } = await client.listBackends({ networkLoadBalancerId, backendSetName });
    assert.equal(backendCollection.items?.length, 2);
    await done(await client.deleteBackend({ networkLoadBalancerId, backendSetName, backendName }));
    const gone = client.getBackend({ networkLoadBalancerId, backendSetName, backendName, retryConfiguration: noRetry });
    await refused(gone, 404, "NotAuthorizedOrNotFound");
  });

  await t.test("delete", async () => {
    for (const networkLoadBalancerId of ids) await done(await client.deleteNetworkLoadBalancer({ networkLoadBalancerId }));
    await refused(client.getNetworkLoadBalancer({ networkLoadBalancerId, retryConfiguration: noRetry }), 404, "NotAuthorizedOrNotFound");
  });
});
