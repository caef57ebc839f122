// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Block volumes and file systems with what they are attached to and exported by.

import { h } from './dom.js';
import { badge, link, nameOf, none, resourceView, table } from './resources.js';

const size = ['Size', (o) => (o.value.sizeInGBs ? `${o.value.sizeInGBs} GB` : none())];
const domain = ['Availability domain', (o) => (o.value.availabilityDomain ?? '–').replace(/^.*:/, '')];

const volumeColumns = [size, ['Performance', (o) => performance(o.value)], domain];

function performance(value) {
  return value.vpusPerGB === undefined ? none() : `${value.vpusPerGB} VPUs/GB`;
}

const attachmentColumns = [
  ['Volume', (o, names) => nameOf(o.value.volumeId ?? o.value.bootVolumeId, names)],
  ['Instance', (o, names) => nameOf(o.value.instanceId, names)],
  ['Type', (o) => o.value.attachmentType ?? none()],
  ['Device', (o) => o.value.device ?? none()],
];

const backupColumns = [size, ['Of', (o, names) => nameOf(o.value.volumeId ?? o.value.bootVolumeId ?? o.value.volumeGroupId, names)], ['Type', (o) => o.value.type ?? none()]];

export const volumes = resourceView({
  path: 'volumes',
  title: 'Volumes',
  groups: [
    { kind: 'volume', title: 'Volumes', layout: 'cols-3', columns: volumeColumns, body: (o, tools) => attachmentTable(tools) },
    { kind: 'volume attachment', title: 'Volume attachments', layout: 'cols-4', columns: attachmentColumns },
    { kind: 'boot volume', title: 'Boot volumes', layout: 'cols-3', columns: volumeColumns },
    { kind: 'boot volume attachment', title: 'Boot volume attachments', layout: 'cols-4', columns: attachmentColumns },
    { kind: 'volume backup', title: 'Volume backups', layout: 'cols-3', columns: backupColumns },
    { kind: 'volume group', title: 'Volume groups', layout: 'cols-3', columns: [size, ['Volumes', (o) => String((o.value.volumeIds ?? []).length)], domain] },
    { kind: 'volume group backup', title: 'Volume group backups', layout: 'cols-3', columns: backupColumns },
  ],
});

/** attachmentTable shows the volume attachments of an instance or of a volume; nothing where there are none. */
export function attachmentTable(tools) {
  const list = ['volume attachment', 'boot volume attachment'].flatMap((kind) => tools.under(kind));
  const objects = list.flatMap((answer) => answer?.objects ?? []);
  if (objects.length === 0) return null;
  const names = Object.assign({}, ...list.map((answer) => answer?.mentioned ?? {}));
  return [h('h3', {}, 'Volume attachments'),
    table('Volume attachments', ['Volume', 'Instance', 'State', 'Type', 'Device', 'Access'], objects.map((o) => ({
      key: o.id,
      cells: [link(o.value.volumeId ?? o.value.bootVolumeId, names), link(o.value.instanceId, names), badge(o.state),
        o.value.attachmentType ?? none(), o.value.device ?? none(), access(o.value)],
    })))];
}

function access(value) {
  const parts = [value.isReadOnly ? 'read only' : 'read and write'];
  if (value.isShareable) parts.push('shared');
  if (value.isMultipath) parts.push('multipath');
  return parts.join(', ');
}

export const files = resourceView({
  path: 'files',
  title: 'File systems',
  groups: [
    { kind: 'file system', title: 'File systems', layout: 'cols-3', columns: [['Used', (o) => bytes(o.value.meteredBytes)], domain], body: (o, tools) => exportsUnder(tools) },
    { kind: 'mount target', title: 'Mount targets', layout: 'cols-3', columns: [['Subnet', (o, names) => nameOf(o.value.subnetId, names)], ['Export set', (o, names) => nameOf(o.value.exportSetId, names)], domain] },
    { kind: 'export', title: 'Exports', layout: 'cols-3', columns: [['Path', (o) => o.value.path], ['File system', (o, names) => nameOf(o.value.fileSystemId, names)], ['Export set', (o, names) => nameOf(o.value.exportSetId, names)]], body: exportOptions },
    { kind: 'export set', title: 'Export sets', layout: 'cols-3', columns: [['VCN', (o, names) => nameOf(o.value.vcnId, names)], domain], body: (o, tools) => exportsUnder(tools) },
    { kind: 'snapshot', title: 'Snapshots', layout: 'cols-3', columns: [['File system', (o, names) => nameOf(o.value.fileSystemId, names)]] },
    { kind: 'Lustre file system', title: 'Lustre file systems', layout: 'cols-3', columns: [['Capacity', (o) => (o.value.capacityInGBs ? `${o.value.capacityInGBs} GB` : none())], ['Management address', (o) => o.value.managementServiceAddress ?? none()], domain] },
  ],
});

function bytes(n) {
  if (n === undefined || n === null) return none();
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit += 1;
  }
  return `${Math.round(n * 10) / 10} ${units[unit]}`;
}

function exportsUnder(tools) {
  const answer = tools.under('export');
  if (!answer?.objects.length) return null;
  return [h('h3', {}, 'Exports'), table('Exports', ['Path', 'State', 'File system', 'Export set'], answer.objects.map((o) => ({
    key: o.id,
    cells: [o.value.path, badge(o.state), link(o.value.fileSystemId, answer.mentioned), link(o.value.exportSetId, answer.mentioned)],
  })))];
}

function exportOptions(object) {
  const options = object.value.exportOptions ?? [];
  if (options.length === 0) return null;
  return [h('h3', {}, 'Export options'), table('Export options', ['Source', 'Access', 'Identity squash', 'Privileged port'], options.map((o, i) => ({
    key: String(i),
    cells: [o.source, o.access ?? none(), o.identitySquash ?? none(), o.requirePrivilegedSourcePort ? 'required' : 'not required'],
  })))];
}
