// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Security lists and network security groups with their rules.

import { h } from './dom.js';
import { count, ports, protocol } from './format.js';
import { link, nameOf, none, resourceView, table } from './resources.js';

const vcn = ['VCN', (o, names) => nameOf(o.value.vcnId, names)];

export const security = resourceView({
  path: 'security',
  title: 'Security rules',
  groups: [
    { kind: 'security list', title: 'Security lists', layout: 'cols-2', open: true, columns: [['Rules', (o) => listCount(o.value)], vcn], body: listRules },
    { kind: 'network security group', title: 'Network security groups', layout: 'cols-2', open: true, columns: [['Rules', (o) => count(o.extra?.rules ?? 0, 'rule')], vcn], needs: ['security rule'], body: groupRules },
    { kind: 'security rule', title: 'Rules of groups, one by one', layout: 'cols-4', folded: true, columns: [['Direction', (o) => direction(o.value)], ['Protocol', (o) => protocol(o.value.protocol)], ['Peer', (o, names) => nameOf(peer(o.value), names)], ['Ports', (o) => ports(o.value)]] },
  ],
});

function listCount(value) {
  const ingress = (value.ingressSecurityRules ?? []).length;
  const egress = (value.egressSecurityRules ?? []).length;
  return `${ingress} in, ${egress} out`;
}

function direction(rule) {
  return rule.direction === 'EGRESS' ? 'out' : 'in';
}

function peer(rule) {
  return rule.direction === 'EGRESS' ? rule.destination : rule.source;
}

function listRules(object, tools) {
  const rules = [
    ...(object.value.ingressSecurityRules ?? []).map((rule) => ({ ...rule, direction: 'INGRESS' })),
    ...(object.value.egressSecurityRules ?? []).map((rule) => ({ ...rule, direction: 'EGRESS' })),
  ];
  return ruleTable(rules, tools.names);
}

function groupRules(object, tools) {
  const answer = tools.under('security rule');
  return answer ? ruleTable(answer.objects.map((o) => o.value), answer.mentioned) : h('p', { class: 'empty' }, 'Loading …');
}

function ruleTable(rules, names) {
  if (rules.length === 0) return h('p', { class: 'empty' }, 'No rule: nothing is allowed by it.');
  return table('Rules', ['Direction', 'Protocol', 'Source or destination', 'Ports', 'State', 'Description'], rules.map((rule, i) => ({
    key: rule.id ?? String(i),
    cells: [
      h('span', { class: 'badge', data: { mood: rule.direction === 'EGRESS' ? 'out' : 'in' } }, rule.direction === 'EGRESS' ? '→ out' : '← in'),
      protocol(rule.protocol), peerText(rule, names), ports(rule), rule.isStateless ? 'stateless' : none('stateful'),
      rule.description || none(),
    ],
  })));
}

function peerText(rule, names) {
  const text = peer(rule) ?? '';
  if (text.startsWith('ocid1.')) return ['group ', link(text, names)];
  return text === '0.0.0.0/0' || text === '::/0' ? [text, h('span', { class: 'quiet' }, ' anywhere')] : text;
}
