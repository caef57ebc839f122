// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// VCNs, subnets, routes and addresses.

import { h } from './dom.js';
import { badge, link, nameOf, none, resourceView, table } from './resources.js';

const vcn = ['VCN', (o, names) => nameOf(o.value.vcnId, names)];

export const network = resourceView({
  path: 'network',
  title: 'Network',
  groups: [
    { kind: 'VCN', title: 'VCNs', layout: 'cols-3', open: true, columns: [['CIDR blocks', (o) => (o.value.cidrBlocks ?? []).join(', ')], ['IPv6', (o) => (o.value.ipv6CidrBlocks ?? []).join(', ') || none()], ['DNS label', (o) => o.value.dnsLabel ?? none()]], body: subnetsOf },
    { kind: 'subnet', title: 'Subnets', layout: 'cols-4', columns: [['CIDR block', (o) => o.value.cidrBlock], ['Access', (o) => (o.value.prohibitPublicIpOnVnic ? 'private' : 'public')], ['Where', (o) => (o.value.availabilityDomain ? o.value.availabilityDomain.replace(/^.*:/, '') : 'regional')], vcn] },
    { kind: 'public IP', title: 'Public addresses', layout: 'cols-3', columns: [['Address', (o) => o.value.ipAddress], ['Lifetime', (o) => String(o.value.lifetime ?? '–').toLowerCase()], ['Assigned to', (o, names) => nameOf(o.value.assignedEntityId, names) || none()]] },
    { kind: 'route table', title: 'Route tables', layout: 'cols-3', columns: [['Rules', (o) => String((o.value.routeRules ?? []).length)], vcn], body: routes },
    { kind: 'internet gateway', title: 'Internet gateways', layout: 'cols-2', columns: [['Enabled', (o) => (o.value.isEnabled ? 'yes' : 'no')], vcn] },
    { kind: 'NAT gateway', title: 'NAT gateways', layout: 'cols-3', columns: [['Address', (o) => o.value.natIp ?? none()], ['Traffic', (o) => (o.value.blockTraffic ? 'blocked' : 'passes')], vcn] },
    { kind: 'service gateway', title: 'Service gateways', layout: 'cols-3', columns: [['Services', (o) => (o.value.services ?? []).map((s) => s.serviceName).join(', ') || none()], ['Traffic', (o) => (o.value.blockTraffic ? 'blocked' : 'passes')], vcn] },
    { kind: 'DHCP options', title: 'DHCP options', layout: 'cols-2', folded: true, columns: [['Options', (o) => String((o.value.options ?? []).length)], vcn] },
    { kind: 'VNIC', title: 'VNICs', layout: 'cols-4', folded: true, columns: [['Private address', (o) => o.value.privateIp ?? none()], ['Public address', (o) => o.value.publicIp ?? none()], ['Subnet', (o, names) => nameOf(o.value.subnetId, names)], ['Primary', (o) => (o.value.isPrimary ? 'yes' : 'no')]] },
    { kind: 'private IP', title: 'Private addresses', layout: 'cols-3', folded: true, columns: [['Address', (o) => o.value.ipAddress], ['VNIC', (o, names) => nameOf(o.value.vnicId, names)], ['Subnet', (o, names) => nameOf(o.value.subnetId, names)]] },
    { kind: 'IPv6 address', title: 'IPv6 addresses', layout: 'cols-3', folded: true, columns: [['Address', (o) => o.value.ipAddress], ['VNIC', (o, names) => nameOf(o.value.vnicId, names)], ['Subnet', (o, names) => nameOf(o.value.subnetId, names)]] },
  ],
});

function subnetsOf(object, tools) {
  const answer = tools.under('subnet');
  if (!answer?.objects.length) return null;
  return [h('h3', {}, 'Subnets'), table('Subnets', ['Name', 'State', 'CIDR block', 'Access', 'Security lists'], answer.objects.map((o) => ({
    key: o.id,
    cells: [link(o.id, { [o.id]: { kind: 'subnet', name: o.name } }), badge(o.state), o.value.cidrBlock,
      o.value.prohibitPublicIpOnVnic ? 'private' : 'public',
      (o.value.securityListIds ?? []).map((id, i) => [i > 0 ? ', ' : '', link(id, answer.mentioned)])],
  })))];
}

function routes(object, tools) {
  const rules = object.value.routeRules ?? [];
  if (rules.length === 0) return h('p', { class: 'empty' }, 'No rule.');
  return [h('h3', {}, 'Rules'), table('Route rules', ['Destination', 'Target', 'Description'], rules.map((r, i) => ({
    key: String(i),
    cells: [r.destination ?? r.cidrBlock, link(r.networkEntityId, tools.names), r.description ?? none()],
  })))];
}
