// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Instances with their VNICs and volumes.

import { h } from './dom.js';
import { badge, link, none, resourceView, table } from './resources.js';
import { attachmentTable } from './view_storage.js';

export const instances = resourceView({
  path: 'instances',
  title: 'Instances',
  groups: [{
    kind: 'instance',
    title: 'Instances',
    layout: 'cols-instances',
    needs: ['VNIC', 'VNIC attachment'],
    columns: [
      ['Private address', (o) => primary(o)?.privateIp ?? none()],
      ['Public address', (o) => primary(o)?.publicIp ?? none()],
      ['Shape', (o) => o.value.shape],
      ['Availability domain', (o) => (o.value.availabilityDomain ?? '').replace(/^.*:/, '')],
    ],
    body,
  }],
});

function primary(object) {
  const vnics = object.extra?.vnics ?? [];
  return vnics.find((v) => v.isPrimary) ?? vnics[0];
}

function body(object, tools) {
  const vnics = object.extra?.vnics ?? [];
  return [
    h('h3', {}, 'VNICs'),
    vnics.length === 0 ? h('p', { class: 'empty' }, 'No VNIC.') : table('VNICs', ['Name', 'State', 'Private address', 'Public address', 'IPv6', 'Subnet', 'Security groups'],
      vnics.map((v) => ({
        key: v.id,
        cells: [[v.displayName, v.isPrimary ? ' (primary)' : ''], badge(v.lifecycleState), v.privateIp ?? none(), v.publicIp ?? none(),
          (v.ipv6Addresses ?? []).join(', ') || none(), link(v.subnetId, tools.names),
          (v.nsgIds ?? []).length > 0 ? v.nsgIds.map((id, i) => [i > 0 ? ', ' : '', link(id, tools.names)]) : none()],
      }))),
    attachmentTable(tools),
  ];
}
