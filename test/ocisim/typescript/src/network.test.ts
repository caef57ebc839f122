// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import * as core from "oci-core";
import * as workrequests from "oci-workrequests";

import { closing, compartmentId, everyPage, gone, must, noRetry, provider, refused, time, vcnId, waiting } from "./region.js";

const client = closing(new core.VirtualNetworkClient({ authenticationDetailsProvider: provider }));
const compute = closing(new core.ComputeClient({ authenticationDetailsProvider: provider }));
const workRequests = closing(new workrequests.WorkRequestClient({ authenticationDetailsProvider: provider }));
const waiters = client.createWaiters(workRequests, waiting);
const { Ingress, Egress } = core.models.SecurityRule.Direction;

test("a network with a subnet, a gateway and a route table", async () => {
  const created = await client.createVcn({
    createVcnDetails: { compartmentId, displayName: "second", cidrBlocks: ["10.9.0.0/16"], dnsLabel: "second" },
  });
  const vcnId = created.vcn.id;
  await waiters.forVcn({ vcnId }, core.models.Vcn.LifecycleState.Available);
  const { internetGateway } = await client.createInternetGateway({
    createInternetGatewayDetails: { compartmentId, vcnId, isEnabled: true, displayName: "door" },
  });
  const toDoor: core.models.RouteRule = {
    destination: "0.0.0.0/0",
    destinationType: core.models.RouteRule.DestinationType.CidrBlock,
    networkEntityId: internetGateway.id,
  };
  const { routeTable } = await client.createRouteTable({
    createRouteTableDetails: { compartmentId, vcnId, displayName: "routes", routeRules: [toDoor] },
  });
  const rtId = routeTable.id;
  const { subnet } = await client.createSubnet({
    createSubnetDetails: { compartmentId, vcnId, cidrBlock: "10.9.1.0/24", displayName: "subnet", routeTableId: rtId },
  });
  await waiters.forSubnet({ subnetId: subnet.id }, core.models.Subnet.LifecycleState.Available);

  // Its etag changes when it has become AVAILABLE.
  let { routeTable: before, etag } = await client.getRouteTable({ rtId });
  while (before.lifecycleState === "PROVISIONING") {
    await new Promise((resolve) => setTimeout(resolve, 50));
    ({ routeTable: before, etag } = await client.getRouteTable({ rtId }));
  }
  assert.deepEqual(before.routeRules.map(({ destination, networkEntityId }) => ({ destination, networkEntityId })), [
    { destination: "0.0.0.0/0", networkEntityId: internetGateway.id },
  ]);
  const narrower = { rtId, ifMatch: etag, updateRouteTableDetails: { routeRules: [{ ...toDoor, destination: "192.0.2.0/24" }] } };
  const { routeTable: after } = await client.updateRouteTable(narrower);
  assert.deepEqual(after.routeRules.map(({ destination }) => destination), ["192.0.2.0/24"]);
  await refused(client.updateRouteTable({ ...narrower, retryConfiguration: noRetry }), 412, "NoEtagMatch");
  const tables = await client.listRouteTables({ compartmentId, vcnId });
  assert.deepEqual(tables.items.map(({ displayName }) => displayName).sort(), ["Default Route Table for second", "routes"]);
  await refused(client.deleteVcn({ vcnId, retryConfiguration: noRetry }), 409, "Conflict");

  await client.deleteSubnet({ subnetId: subnet.id });
  await gone(() => client.getSubnet({ subnetId: subnet.id, retryConfiguration: noRetry }));
  await client.deleteRouteTable({ rtId });
  await gone(() => client.getRouteTable({ rtId, retryConfiguration: noRetry }));
  await client.deleteInternetGateway({ igId: internetGateway.id });
  await gone(() => client.getInternetGateway({ igId: internetGateway.id, retryConfiguration: noRetry }));
  await client.deleteVcn({ vcnId });
  await gone(() => client.getVcn({ vcnId, retryConfiguration: noRetry }));
});

test("network security groups and their rules", async () => {
  const ids: string[] = [];
  for (const displayName of ["a", "b", "c", "d", "e"]) {
    const { networkSecurityGroup } = await client.createNetworkSecurityGroup({
      createNetworkSecurityGroupDetails: { compartmentId, vcnId, displayName, definedTags: { Operations: { owner: "script" } } },
    });
    assert.deepEqual(networkSecurityGroup.definedTags?.["Operations"], { owner: "script" });
    ids.push(networkSecurityGroup.id);
  }
  const all = await everyPage(
    2,
    (page) => client.listNetworkSecurityGroups({ compartmentId, limit: 2, page }),
    client.listAllNetworkSecurityGroups({ compartmentId, limit: 2 }),
  );
  assert.deepEqual(all.map(({ id }) => id).sort(), [...ids].sort());

  const networkSecurityGroupId = must(ids[0]);
  const { etag } = await client.getNetworkSecurityGroup({ networkSecurityGroupId });
  const renamed = await client.updateNetworkSecurityGroup({
    networkSecurityGroupId,
    ifMatch: etag,
    updateNetworkSecurityGroupDetails: { displayName: "renamed" },
  });
  assert.equal(renamed.networkSecurityGroup.displayName, "renamed");

  const added = await client.addNetworkSecurityGroupSecurityRules({
    networkSecurityGroupId,
    addNetworkSecurityGroupSecurityRulesDetails: {
      securityRules: [
        { direction: Ingress, protocol: "6", source: "0.0.0.0/0", tcpOptions: { destinationPortRange: { min: 443, max: 443 } } },
        { direction: Egress, protocol: "17", destination: "10.0.0.0/16", udpOptions: { destinationPortRange: { min: 53, max: 53 } } },
        { direction: Ingress, protocol: "1", source: "10.0.0.0/16", icmpOptions: { type: 3, code: 4 } },
      ].map((rule) => rule as core.models.AddSecurityRuleDetails),
    },
  });
  const rules = must(added.addedNetworkSecurityGroupSecurityRules.securityRules);
  assert.equal(rules.length, 3);
  const listed = await everyPage(
    1,
    (page) => client.listNetworkSecurityGroupSecurityRules({ networkSecurityGroupId, limit: 1, page }),
    client.listAllNetworkSecurityGroupSecurityRules({ networkSecurityGroupId, limit: 1 }),
  );
  assert.deepEqual(listed.map(({ id }) => id).sort(), rules.map(({ id }) => id).sort());
  const web = must(rules.find(({ protocol }) => protocol === "6"));
  await client.updateNetworkSecurityGroupSecurityRules({
    networkSecurityGroupId,
    updateNetworkSecurityGroupSecurityRulesDetails: {
      securityRules: [{ id: must(web.id), direction: Ingress as never, protocol: "6", source: "10.0.20.0/24", description: "narrower" }],
    },
  });
  await client.removeNetworkSecurityGroupSecurityRules({
    networkSecurityGroupId,
    removeNetworkSecurityGroupSecurityRulesDetails: { securityRuleIds: rules.filter((rule) => rule !== web).map(({ id }) => must(id)) },
  });
  const { items: left } = await client.listNetworkSecurityGroupSecurityRules({ networkSecurityGroupId });
  assert.deepEqual(left.map(({ id, source, description }) => ({ id, source, description })), [
    { id: web.id, source: "10.0.20.0/24", description: "narrower" },
  ]);

  for (const networkSecurityGroupId of ids) await client.deleteNetworkSecurityGroup({ networkSecurityGroupId });
  await refused(client.getNetworkSecurityGroup({ networkSecurityGroupId, retryConfiguration: noRetry }), 404, "NotAuthorizedOrNotFound");
});

test("public IP addresses", async () => {
  const scope = core.requests.ListPublicIpsRequest.Scope.Region;
  const ids: string[] = [];
  for (const displayName of ["one", "two", "three"]) {
    const { publicIp } = await client.createPublicIp({
      createPublicIpDetails: { compartmentId, displayName, lifetime: core.models.CreatePublicIpDetails.Lifetime.Reserved },
    });
    ids.push(must(publicIp.id));
    await waiters.forPublicIp({ publicIpId: must(publicIp.id) }, core.models.PublicIp.LifecycleState.Available);
  }
  const all = await everyPage(
    1,
    (page) => client.listPublicIps({ scope, compartmentId, limit: 1, page }),
    client.listAllPublicIps({ scope, compartmentId, limit: 1 }),
  );
  assert.deepEqual(all.map(({ id }) => id).sort(), [...ids].sort());
  const publicIpId = must(ids[0]);
  const { publicIp, etag } = await client.getPublicIp({ publicIpId });
  const byAddress = await client.getPublicIpByIpAddress({ getPublicIpByIpAddressDetails: { ipAddress: must(publicIp.ipAddress) } });
  assert.equal(byAddress.publicIp.id, publicIpId);
  const updated = await client.updatePublicIp({ publicIpId, ifMatch: etag, updatePublicIpDetails: { displayName: "renamed" } });
  assert.equal(updated.publicIp.displayName, "renamed");
  for (const publicIpId of ids) await client.deletePublicIp({ publicIpId });
});

test("private IP addresses", async () => {
  const [instance] = (await compute.listInstances({ compartmentId, displayName: "worker-2" })).items;
  const [attachment] = (await compute.listVnicAttachments({ compartmentId, instanceId: must(instance).id })).items;
  const vnicId = must(must(attachment).vnicId);
  for (const ipAddress of ["10.0.10.201", "10.0.10.202"]) {
    const { privateIp } = await client.createPrivateIp({ createPrivateIpDetails: { vnicId, ipAddress } });
    assert.equal(privateIp.ipAddress, ipAddress);
    assert.ok(time(privateIp.timeCreated));
  }
  const all = await everyPage(
    1,
    (page) => client.listPrivateIps({ vnicId, limit: 1, page }),
    client.listAllPrivateIps({ vnicId, limit: 1 }),
  );
  const secondary = all.filter(({ isPrimary }) => !isPrimary);
  assert.equal(secondary.length, 2);
  const again = { vnicId, ipAddress: "10.0.10.201" };
  await refused(client.createPrivateIp({ createPrivateIpDetails: again, retryConfiguration: noRetry }), 409, "Conflict");
  for (const { id } of secondary) await client.deletePrivateIp({ privateIpId: must(id) });
  assert.equal((await client.listPrivateIps({ vnicId })).items.length, 1);
});
