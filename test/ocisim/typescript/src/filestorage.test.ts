// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import * as filestorage from "oci-filestorage";
import * as identity from "oci-identity";

import { closing, compartmentId, everyPage, must, nodeSubnetId, noRetry, provider, refused, time, waiting } from "./region.js";

const client = closing(new filestorage.FileStorageClient({ authenticationDetailsProvider: provider }));
const iam = closing(new identity.IdentityClient({ authenticationDetailsProvider: provider }));
const waiters = client.createWaiters(waiting);
const { models } = filestorage;
const { Active, Deleted } = models.FileSystem.LifecycleState;

const [domain] = (await iam.listAvailabilityDomains({ compartmentId })).items;
const availabilityDomain = must(must(domain).name);

test("file systems, mount targets, exports and snapshots", async (t) => {
  const ids: string[] = [];
  let exportSetId = "";
  let mountTargetId = "";

  await t.test("file systems: create, get, list, update", async () => {
    for (const displayName of ["fs-1", "fs-2", "fs-3"]) {
      const { fileSystem } = await client.createFileSystem({ createFileSystemDetails: { compartmentId, availabilityDomain, displayName } });
      ids.push(fileSystem.id);
      await waiters.forFileSystem({ fileSystemId: fileSystem.id }, Active);
    }
    const all = await everyPage(
      1,
      (page) => client.listFileSystems({ compartmentId, availabilityDomain, limit: 1, page }),
      client.listAllFileSystems({ compartmentId, availabilityDomain, limit: 1 }),
    );
    assert.deepEqual(all.map(({ id }) => id).sort(), [...ids].sort());
    const fileSystemId = must(ids[0]);
    const { fileSystem, etag } = await client.getFileSystem({ fileSystemId });
    assert.equal(fileSystem.meteredBytes, 0);
    assert.ok(time(fileSystem.timeCreated));
    const renamed = { fileSystemId, ifMatch: etag, updateFileSystemDetails: { displayName: "renamed" } };
    assert.equal((await client.updateFileSystem(renamed)).fileSystem.displayName, "renamed");
    await waiters.forFileSystem({ fileSystemId }, Active);
    await refused(client.updateFileSystem({ ...renamed, retryConfiguration: noRetry }), 412, "NoEtagMatch");
  });

  await t.test("a mount target and its export set", async () => {
    const { mountTarget } = await client.createMountTarget({
      createMountTargetDetails: { compartmentId, availabilityDomain, subnetId: nodeSubnetId, displayName: "mt" },
    });
    mountTargetId = mountTarget.id;
    const active = must(await waiters.forMountTarget({ mountTargetId }, models.MountTarget.LifecycleState.Active)).mountTarget;
    assert.equal(active.privateIpIds?.length, 1);
    exportSetId = must(active.exportSetId);
    const { items } = await client.listMountTargets({ compartmentId, availabilityDomain });
    assert.deepEqual(items.map(({ id }) => id), [mountTargetId]);
    const updated = await client.updateMountTarget({ mountTargetId, updateMountTargetDetails: { displayName: "renamed" } });
    assert.equal(updated.mountTarget.displayName, "renamed");
    await client.updateExportSet({ exportSetId, updateExportSetDetails: { displayName: "set" } });
    assert.equal((await client.getExportSet({ exportSetId })).exportSet.displayName, "set");
  });

  await t.test("exports: create, get, list, update, delete", async () => {
    const { Access, IdentitySquash } = models.ClientOptions;
    const paths = ["/a", "/b", "/c"];
    const exportIds: string[] = [];
    for (const [i, fileSystemId] of ids.entries()) {
      const created = await client.createExport({
        createExportDetails: {
          exportSetId,
          fileSystemId,
          path: must(paths[i]),
          exportOptions: [{ source: "10.0.0.0/16", access: Access.ReadWrite, identitySquash: IdentitySquash.None }],
        },
      });
      exportIds.push(created.export.id);
      await waiters.forExport({ exportId: created.export.id }, models.Export.LifecycleState.Active);
    }
    const all = await everyPage(
      1,
      (page) => client.listExports({ exportSetId, limit: 1, page }),
      client.listAllExports({ exportSetId, limit: 1 }),
    );
    assert.deepEqual(all.map(({ path }) => path).sort(), paths);
    const exportId = must(exportIds[0]);
    await client.updateExport({ exportId, updateExportDetails: { exportOptions: [{ source: "10.0.10.0/24", access: Access.ReadOnly }] } });
    const { export: changed } = await client.getExport({ exportId });
    assert.deepEqual(changed.exportOptions.map(({ source, access }) => ({ source, access })), [{ source: "10.0.10.0/24", access: Access.ReadOnly }]);
    await refused(client.deleteFileSystem({ fileSystemId: must(ids[0]), retryConfiguration: noRetry }), 409, "Conflict");
    for (const exportId of exportIds) await client.deleteExport({ exportId });
    for (const exportId of exportIds) await waiters.forExport({ exportId }, models.Export.LifecycleState.Deleted);
  });

  await t.test("snapshots", async () => {
    const fileSystemId = must(ids[0]);
    const { snapshot } = await client.createSnapshot({ createSnapshotDetails: { fileSystemId, name: "first" } });
    const snapshotId = snapshot.id;
    await waiters.forSnapshot({ snapshotId }, models.Snapshot.LifecycleState.Active);
    const { items } = await client.listSnapshots({ fileSystemId });
    assert.deepEqual(items.map(({ name }) => name), ["first"]);
    await client.deleteSnapshot({ snapshotId });
    await waiters.forSnapshot({ snapshotId }, models.Snapshot.LifecycleState.Deleted);
  });

  await t.test("delete", async () => {
    await client.deleteMountTarget({ mountTargetId });
    await waiters.forMountTarget({ mountTargetId }, models.MountTarget.LifecycleState.Deleted);
    for (const fileSystemId of ids) await client.deleteFileSystem({ fileSystemId });
    for (const fileSystemId of ids) await waiters.forFileSystem({ fileSystemId }, Deleted);
  });
});
