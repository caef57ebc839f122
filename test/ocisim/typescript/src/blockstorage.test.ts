// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import * as core from "oci-core";
import * as workrequests from "oci-workrequests";

import { closing, compartmentId, everyPage, must, noRetry, provider, refused, time, waiting } from "./region.js";

const client = closing(new core.BlockstorageClient({ authenticationDetailsProvider: provider }));
const compute = closing(new core.ComputeClient({ authenticationDetailsProvider: provider }));
const workRequests = closing(new workrequests.WorkRequestClient({ authenticationDetailsProvider: provider }));
const waiters = client.createWaiters(workRequests, waiting);
const computeWaiters = compute.createWaiters(workRequests, waiting);
const { Available, Terminated } = core.models.Volume.LifecycleState;

const [instance] = (await compute.listInstances({ compartmentId, displayName: "worker-4" })).items;
const { id: instanceId, availabilityDomain } = must(instance);

async function create(displayName: string, more: Partial<core.models.CreateVolumeDetails> = {}): Promise<string> {
  const { volume, etag } = await client.createVolume({
    opcRetryToken: `create ${displayName}`,
    createVolumeDetails: { compartmentId, availabilityDomain, displayName, sizeInGBs: 50, vpusPerGB: 10, ...more },
  });
  assert.ok(etag);
  assert.equal(volume.displayName, displayName);
  await waiters.forVolume({ volumeId: volume.id }, Available);
  return volume.id;
}

test("volumes: create, get, list, update, clone, back up, delete", async () => {
  const ids: string[] = [];
  for (const name of ["vol-1", "vol-2", "vol-3", "vol-4", "vol-5"]) ids.push(await create(name));
  const volumeId = must(ids[0]);

  const all = await everyPage(
    2,
    (page) => client.listVolumes({ compartmentId, limit: 2, page }),
    client.listAllVolumes({ compartmentId, limit: 2 }),
  );
  assert.deepEqual(all.map(({ id }) => id).sort(), [...ids].sort());

  const { volume, etag } = await client.getVolume({ volumeId });
  assert.deepEqual({ size: volume.sizeInGBs, vpus: volume.vpusPerGB, state: volume.lifecycleState }, { size: 50, vpus: 10, state: Available });
  assert.ok(time(volume.timeCreated));
  const larger = { volumeId, ifMatch: etag, updateVolumeDetails: { displayName: "larger", sizeInGBs: 100, vpusPerGB: 20 } };
  await client.updateVolume(larger);
  const grown = await waiters.forVolume({ volumeId }, Available);
  assert.deepEqual({ name: grown?.volume.displayName, size: grown?.volume.sizeInGBs, vpus: grown?.volume.vpusPerGB }, { name: "larger", size: 100, vpus: 20 });
  await refused(client.updateVolume({ ...larger, retryConfiguration: noRetry }), 412, "NoEtagMatch");
  const smaller = { volumeId, updateVolumeDetails: { sizeInGBs: 60 }, retryConfiguration: noRetry };
  await refused(client.updateVolume(smaller), 400, "InvalidParameter");

  const sourceDetails = { type: core.models.VolumeSourceFromVolumeDetails.type, id: volumeId };
  ids.push(await create("clone", { sourceDetails, sizeInGBs: 100 }));
  const { volumeBackup } = await client.createVolumeBackup({ createVolumeBackupDetails: { volumeId, displayName: "backup" } });
  const kept = await waiters.forVolumeBackup({ volumeBackupId: volumeBackup.id }, core.models.VolumeBackup.LifecycleState.Available);
  assert.equal(kept?.volumeBackup.sizeInGBs, 100);
  await client.deleteVolumeBackup({ volumeBackupId: volumeBackup.id });

  for (const id of ids) {
    await untilHydrated(id);
    await client.deleteVolume({ volumeId: id });
  }
  for (const id of ids) {
    const gone = await waiters.forVolume({ volumeId: id }, Terminated);
    assert.equal(gone?.volume.lifecycleState, Terminated);
  }
});

/** A clone is copied in the background, and must not be deleted before that, nor its source. */
async function untilHydrated(volumeId: string): Promise<void> {
  while (!(await client.getVolume({ volumeId })).volume.isHydrated) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test("volume attachments", async () => {
  const volumeId = await create("attached");
  const { Attached, Detached } = core.models.VolumeAttachment.LifecycleState;
  const { volumeAttachment } = await compute.attachVolume({
    opcRetryToken: "attach",
    attachVolumeDetails: {
      type: core.models.AttachParavirtualizedVolumeDetails.type,
      instanceId,
      volumeId,
      device: "/dev/oracleoci/oraclevdc",
    } as core.models.AttachParavirtualizedVolumeDetails,
  });
  const volumeAttachmentId = volumeAttachment.id;
  const attached = await computeWaiters.forVolumeAttachment({ volumeAttachmentId }, Attached);
  assert.equal(attached.volumeAttachment.attachmentType, core.models.ParavirtualizedVolumeAttachment.attachmentType);
  assert.equal(attached.volumeAttachment.device, "/dev/oracleoci/oraclevdc");

  const { items: devices } = await compute.listInstanceDevices({ instanceId, isAvailable: false });
  assert.ok(devices.some(({ name }) => name === "/dev/oracleoci/oraclevdc"));
  const { items } = await compute.listVolumeAttachments({ compartmentId, instanceId });
  assert.deepEqual(items.map(({ id, volumeId }) => ({ id, volumeId })), [{ id: volumeAttachmentId, volumeId }]);
  await refused(client.deleteVolume({ volumeId, retryConfiguration: noRetry }), 409, "Conflict");

  await compute.detachVolume({ volumeAttachmentId });
  await computeWaiters.forVolumeAttachment({ volumeAttachmentId }, Detached);

  // The waiter of an operation follows its work request.
  const second = await computeWaiters.forAttachVolume({
    attachVolumeDetails: {
      type: core.models.AttachIScsiVolumeDetails.type,
      instanceId,
      volumeId,
      useChap: true,
    } as core.models.AttachIScsiVolumeDetails,
  });
  assert.equal(second.workRequestResponse.workRequest.status, "SUCCEEDED");
  const iscsi = (await compute.getVolumeAttachment({ volumeAttachmentId: second.response.volumeAttachment.id }))
    .volumeAttachment as core.models.IScsiVolumeAttachment;
  assert.equal(iscsi.lifecycleState, Attached);
  assert.equal(iscsi.port, 3260);
  assert.match(iscsi.iqn, /^iqn\.2015-12\.com\.oracleiaas:/);
  assert.ok(iscsi.chapSecret);
  await computeWaiters.forDetachVolume({ volumeAttachmentId: iscsi.id });
  await client.deleteVolume({ volumeId });
  await waiters.forVolume({ volumeId }, Terminated);
});
