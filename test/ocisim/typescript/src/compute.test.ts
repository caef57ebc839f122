// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import * as core from "oci-core";
import * as workrequests from "oci-workrequests";

import { closing, compartmentId, everyPage, must, nodeSubnetId, noRetry, provider, refused, time, waiting } from "./region.js";

const client = closing(new core.ComputeClient({ authenticationDetailsProvider: provider }));
const network = closing(new core.VirtualNetworkClient({ authenticationDetailsProvider: provider }));
const workRequests = closing(new workrequests.WorkRequestClient({ authenticationDetailsProvider: provider }));
const waiters = client.createWaiters(workRequests, waiting);
const { Running, Stopped, Terminated } = core.models.Instance.LifecycleState;

test("instances: launch, list, get, update, stop, start, terminate", async () => {
  const all = await everyPage(
    3,
    (page) => client.listInstances({ compartmentId, limit: 3, page }),
    client.listAllInstances({ compartmentId, limit: 3 }),
  );
  assert.deepEqual(all.map(({ displayName }) => displayName).sort(), [1, 2, 3, 4, 5, 6, 7].map((n) => `worker-${n}`));
  const launched = await client.launchInstance({
    opcRetryToken: "launch",
    launchInstanceDetails: {
      compartmentId,
      availabilityDomain: must(all[0]).availabilityDomain,
      displayName: "launched",
      shape: "VM.Standard.E5.Flex",
      shapeConfig: { ocpus: 2, memoryInGBs: 16 },
      sourceDetails: {
        sourceType: core.models.InstanceSourceViaImageDetails.sourceType,
        imageId: "ocid1.image.oc1.iad.aaaaaaaats",
      } as core.models.InstanceSourceViaImageDetails,
      createVnicDetails: { subnetId: nodeSubnetId, assignPublicIp: false, hostnameLabel: "launched" },
      metadata: { user_data: "IyEvYmluL3NoCg==" },
    },
  });
  const instanceId = launched.instance.id;
  await waiters.forInstance({ instanceId }, Running);

  const { instance, etag } = await client.getInstance({ instanceId });
  assert.equal(instance.lifecycleState, Running);
  assert.equal(instance.region, "iad");
  assert.equal(instance.shapeConfig?.ocpus, 2);
  assert.ok(time(instance.timeCreated));

  const updateInstanceDetails = { displayName: "renamed", freeformTags: { made: "by a script" } };
  const { workRequestResponse } = await waiters.forUpdateInstance({ instanceId, ifMatch: etag, updateInstanceDetails });
  assert.equal(workRequestResponse.workRequest.status, "SUCCEEDED");
  const renamed = await client.getInstance({ instanceId });
  assert.equal(renamed.instance.displayName, "renamed");
  assert.notEqual(renamed.etag, etag);

  const wrong = { instanceId, action: "STOP", ifMatch: "another", retryConfiguration: noRetry };
  await refused(client.instanceAction(wrong), 412, "NoEtagMatch");
  await client.instanceAction({ instanceId, action: "STOP", ifMatch: renamed.etag });
  await waiters.forInstance({ instanceId }, Stopped);
  await client.instanceAction({ instanceId, action: "START" });
  await waiters.forInstance({ instanceId }, Running);
  await client.terminateInstance({ instanceId });
  const last = await waiters.forInstance({ instanceId }, Terminated);
  assert.equal(last?.instance.lifecycleState, Terminated);
});

test("the VNIC of an instance", async () => {
  const [instance] = (await client.listInstances({ compartmentId, displayName: "worker-1" })).items;
  const [attachment] = (await client.listVnicAttachments({ compartmentId, instanceId: must(instance).id })).items;
  const { vnic } = await network.getVnic({ vnicId: must(must(attachment).vnicId) });
  assert.equal(vnic.subnetId, nodeSubnetId);
  assert.equal(vnic.isPrimary, true);
  assert.match(must(vnic.privateIp), /^10\.0\.10\./);
});
