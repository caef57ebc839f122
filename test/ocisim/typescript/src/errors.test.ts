// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";

import * as common from "oci-common";
import * as core from "oci-core";
import * as loadbalancer from "oci-loadbalancer";
import * as networkloadbalancer from "oci-networkloadbalancer";

import { balancerSubnetId, closing, compartmentId, must, noRetry, provider, refused, vcnId, waiting } from "./region.js";

const network = closing(new core.VirtualNetworkClient({ authenticationDetailsProvider: provider }));

/** The admin API of the simulator: this file alone uses it, to make calls fail. */
async function admin<T>(method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(must(process.env["OCISIM_ADMIN"]) + path, { method, body: body && JSON.stringify(body) });
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${await response.clone().text()}`);
  return (await response.json().catch(() => undefined)) as T;
}

interface Call {
  status: number;
  requestId: string;
}

const calls = async (operation: string) => (await admin<{ calls: Call[] }>("GET", `/calls?operation=${operation}`)).calls;

test("400: a mandatory field is missing", async () => {
  const details = { compartmentId } as core.models.CreateNetworkSecurityGroupDetails;
  await refused(network.createNetworkSecurityGroup({ createNetworkSecurityGroupDetails: details }), 400, "MissingParameter");
});

test("404, with the request id that the client chose", async () => {
  const client = closing(new loadbalancer.LoadBalancerClient({ authenticationDetailsProvider: provider }));
  const opcRequestId = "0123456789abcdef0123456789abcdef";
  const loadBalancerId = "ocid1.loadbalancer.oc1.iad.aaaaaaaanone";
  const error = await refused(client.getLoadBalancer({ loadBalancerId, opcRequestId }), 404, "NotAuthorizedOrNotFound");
  assert.ok(error.opcRequestId?.toLowerCase().startsWith(opcRequestId), error.opcRequestId ?? "");
  assert.equal(error.operationName, "getLoadBalancer");
});

test("409: a second change at the same time", async () => {
  const client = closing(new networkloadbalancer.NetworkLoadBalancerClient({ authenticationDetailsProvider: provider }));
  const waiters = client.createWaiters(waiting);
  const { Active } = networkloadbalancer.models.LifecycleState;
  await admin("PATCH", "/durations", { "networkloadbalancer.create": "1h" });
  const { networkLoadBalancer } = await client.createNetworkLoadBalancer({
    createNetworkLoadBalancerDetails: { compartmentId, displayName: "busy", subnetId: balancerSubnetId },
  });
  const networkLoadBalancerId = networkLoadBalancer.id;
  const change = (displayName: string) =>
    client.updateNetworkLoadBalancer({ networkLoadBalancerId, updateNetworkLoadBalancerDetails: { displayName }, retryConfiguration: noRetry });
  const error = await refused(change("not yet"), 409, "Conflict");
  assert.match(error.message, /Creating/);
  await admin("POST", "/clock/advance", { by: "2h" });
  await admin("PATCH", "/durations", { "networkloadbalancer.create": "10ms-50ms" });
  await waiters.forNetworkLoadBalancer({ networkLoadBalancerId }, Active);
  await change("now");
  await waiters.forNetworkLoadBalancer({ networkLoadBalancerId }, Active);
  const { opcWorkRequestId } = await client.deleteNetworkLoadBalancer({ networkLoadBalancerId });
  await waiters.forWorkRequest({ workRequestId: opcWorkRequestId });
});

test("412: the etag is not that of the resource", async () => {
  const { networkSecurityGroup, etag } = await network.createNetworkSecurityGroup({
    createNetworkSecurityGroupDetails: { compartmentId, vcnId, displayName: "guarded" },
  });
  const networkSecurityGroupId = networkSecurityGroup.id;
  await refused(network.deleteNetworkSecurityGroup({ networkSecurityGroupId, ifMatch: `${etag}x`, retryConfiguration: noRetry }), 412, "NoEtagMatch");
  await network.deleteNetworkSecurityGroup({ networkSecurityGroupId, ifMatch: etag });
});

test("429 is repeated by the SDK", async () => {
  const client = closing(
    new core.VirtualNetworkClient(
      { authenticationDetailsProvider: provider },
      {
        retryConfiguration: {
          delayStrategy: new common.FixedTimeDelayStrategy(0.05),
          terminationStrategy: new common.MaxAttemptsTerminationStrategy(4),
        },
      },
    ),
  );
  await admin("POST", "/faults", { operation: "ListVcns", status: 429, times: 3 });
  const { items } = await client.listVcns({ compartmentId });
  assert.deepEqual(items.map(({ id }) => id), [vcnId]);
  assert.deepEqual((await calls("ListVcns")).map(({ status }) => status), [429, 429, 429, 200]);

  await admin("POST", "/faults", { operation: "ListVcns", status: 429, times: 4 });
  const error = await refused(client.listVcns({ compartmentId }), 429, "TooManyRequests");
  assert.equal((await calls("ListVcns")).at(-1)?.requestId, error.opcRequestId);
});

test("a repeated creation with the same token makes one resource", async () => {
  const request = {
    opcRetryToken: "once",
    createNetworkSecurityGroupDetails: { compartmentId, vcnId, displayName: "once" },
  };
  await admin("POST", "/faults", { operation: "CreateNetworkSecurityGroup", drop: "after", times: 1 });
  const created = await network.createNetworkSecurityGroup({
    ...request,
    retryConfiguration: { ...common.OciSdkDefaultRetryConfiguration, delayStrategy: new common.FixedTimeDelayStrategy(0.05) },
  });
  const again = await network.createNetworkSecurityGroup(request);
  assert.equal(again.networkSecurityGroup.id, created.networkSecurityGroup.id);
  const { items } = await network.listNetworkSecurityGroups({ compartmentId, displayName: "once" });
  assert.equal(items.length, 1);
  await network.deleteNetworkSecurityGroup({ networkSecurityGroupId: created.networkSecurityGroup.id });
});

test("401: signatures are verified", async () => {
  const list = (authenticationDetailsProvider: common.AuthenticationDetailsProvider) =>
    closing(new core.VirtualNetworkClient({ authenticationDetailsProvider })).listSubnets({ compartmentId, retryConfiguration: noRetry });
  const identity = (privateKey: string, fingerprint: string) =>
    new common.SimpleAuthenticationDetailsProvider(
      provider.getTenantId(),
      provider.getUser(),
      fingerprint,
      privateKey,
      null,
      common.Region.US_ASHBURN_1,
    );
  const other = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs1", format: "pem" }) as string;

  assert.equal((await list(identity(provider.getPrivateKey(), provider.getFingerprint()))).items.length, 2);
  await refused(list(identity(other, provider.getFingerprint())), 401, "NotAuthenticated");
  await refused(list(identity(provider.getPrivateKey(), "00:11")), 401, "NotAuthenticated");
});
