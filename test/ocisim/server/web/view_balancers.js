// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Load balancers and network load balancers with listeners, backend sets, backends and their health.

import { h } from './dom.js';
import { count } from './format.js';
import { badge, link, nameOf, none, resourceView, table } from './resources.js';

const firstBackends = 50;

const columns = [
  ['Addresses', (o) => addresses(o.value)],
  ['Listeners', (o) => listenerList(o.value)],
  ['Backends', (o) => backendSummary(o)],
];

export const balancers = resourceView({
  path: 'balancers',
  title: 'Load balancers',
  groups: [
    { kind: 'load balancer', title: 'Load balancers', layout: 'cols-balancers', columns, body, open: true, aging: true },
    { kind: 'network load balancer', title: 'Network load balancers', layout: 'cols-balancers', columns, body, open: true, aging: true },
  ],
});

function addresses(value) {
  const list = value.ipAddresses ?? [];
  if (list.length === 0) return none('none yet');
  return list.map((a, i) => [i > 0 ? ', ' : '', a.ipAddress, a.isPublic ? '' : h('span', { class: 'quiet' }, ' private')]);
}

function listenerList(value) {
  const list = Object.values(value.listeners ?? {}).sort((a, b) => a.port - b.port);
  if (list.length === 0) return none('none');
  const texts = list.slice(0, 3).map((l) => `${l.protocol} ${l.port === 0 ? 'any port' : l.port}`);
  return texts.join(', ') + (list.length > 3 ? ` and ${list.length - 3} more` : '');
}

function backendSummary(object) {
  const sets = Object.values(object.value.backendSets ?? {});
  const n = sets.reduce((sum, set) => sum + (set.backends ?? []).length, 0);
  const text = n === 0 ? none('none') : `${count(n, 'backend')} in ${count(sets.length, 'set')}`;
  const health = object.extra?.health;
  return health?.status ? [text, ' ', badge(health.status)] : text;
}

function body(object, tools) {
  const { listeners = {}, backendSets = {} } = object.value;
  const names = Object.keys(backendSets).sort();
  const listens = object.extra?.listens; // where the simulator forwards traffic
  const heads = ['Name', 'Protocol', 'Port', 'Backend set', 'Settings', listens ? 'Listens at' : null].filter(Boolean);
  return [
    h('h3', {}, 'Listeners'),
    Object.keys(listeners).length === 0 ? h('p', { class: 'empty' }, 'No listener.') : table('Listeners', heads,
      Object.entries(listeners).sort((a, b) => a[1].port - b[1].port).map(([name, l]) => ({
        key: name, cells: [name, l.protocol, l.port === 0 ? 'any' : String(l.port), l.defaultBackendSetName, listenerSettings(l), listens?.[name] ?? none()].slice(0, heads.length),
      }))),
    names.length === 0 ? [h('h3', {}, 'Backend sets'), h('p', { class: 'empty' }, 'No backend set.')] : null,
    names.map((name) => backendSet(object, name, backendSets[name], tools)),
  ];
}

function listenerSettings(l) {
  const parts = [];
  if (l.sslConfiguration) parts.push(`TLS ${(l.sslConfiguration.protocols ?? []).join(', ')}`.trim());
  const proxy = l.connectionConfiguration?.backendTcpProxyProtocolVersion;
  if (proxy) parts.push(`proxy protocol v${proxy}`);
  if (l.isPpv2Enabled) parts.push('proxy protocol v2');
  const idle = l.connectionConfiguration?.idleTimeout ?? l.tcpIdleTimeout ?? l.udpIdleTimeout;
  if (idle) parts.push(`idle timeout ${idle} s`);
  for (const rule of l.ruleSetNames ?? []) parts.push(`rule set ${rule}`);
  return parts.length > 0 ? parts.join(', ') : none();
}

function backendSet(object, name, set, tools) {
  const list = `${object.id}/backends/${name}`;
  const limit = tools.limit(list, firstBackends);
  const backends = set.backends ?? [];
  const health = object.extra?.health?.sets?.[name];
  const targets = backends.some((b) => b.targetId);
  return h('section', { class: 'set', key: `set-${name}` },
    h('h3', {}, `Backend set ${name} `, health ? badge(health.status) : null),
    h('p', { class: 'quiet' }, setSettings(set)),
    backends.length === 0 ? h('p', { class: 'empty' }, 'No backend.') : table(`Backends of ${name}`, ['Backend', 'Port', 'Weight', targets ? 'Target' : null, 'Health'].filter(Boolean),
      backends.slice(0, limit).map((b) => ({
        key: `${b.ipAddress ?? b.targetId}:${b.port}`,
        cells: [b.ipAddress ?? nameOf(b.targetId, tools.names), String(b.port), String(b.weight ?? 1),
          targets ? [b.targetId ? link(b.targetId, tools.names) : none()] : null, backendHealth(b, health)].filter(Boolean),
      }))),
    tools.more(list, Math.min(limit, backends.length), backends.length, limit));
}

function setSettings(set) {
  const parts = [`Policy ${set.policy}`];
  const check = set.healthChecker;
  if (check) {
    parts.push(`checks ${check.protocol}${check.urlPath ? ` ${check.urlPath}` : ''} on ${check.port ? `port ${check.port}` : "the backend's port"}` +
      `${check.intervalInMillis ? ` every ${check.intervalInMillis / 1000} s` : ''}${check.returnCode && check.protocol === 'HTTP' ? `, wants ${check.returnCode}` : ''}`);
  }
  if (set.isPreserveSource) parts.push('keeps the source address');
  if (set.sslConfiguration) parts.push('TLS to the backends');
  return `${parts.join(' · ')}.`;
}

function backendHealth(b, health) {
  const flags = [['drain', b.drain ?? b.isDrain], ['backup', b.backup ?? b.isBackup], ['offline', b.offline ?? b.isOffline]]
    .filter(([, set]) => set).map(([flag]) => h('span', { class: 'badge', data: { mood: flag === 'backup' ? 'over' : 'busy' } }, flag.toUpperCase()));
  const status = health?.backends?.[b.name] ?? health?.backends?.[`${b.ipAddress}:${b.port}`];
  return [badge(status ?? 'UNKNOWN'), flags.map((f) => [' ', f])];
}
