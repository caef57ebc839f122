// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// The overview: how much there is, what is in force, and what was called last.

import { h } from './dom.js';
import { clockTime, mood, number, principal } from './format.js';
import { code } from './resources.js';
import { statusBadge } from './view_calls.js';
import { inForce } from './view_faults.js';

const cards = [
  ['Load balancers', 'balancers', ['load balancer']],
  ['Network load balancers', 'balancers', ['network load balancer']],
  ['Instances', 'instances', ['instance']],
  ['Volumes', 'volumes', ['volume']],
  ['File systems', 'files', ['file system', 'Lustre file system']],
  ['Subnets', 'network', ['subnet']],
  ['Security lists and groups', 'security', ['security list', 'network security group']],
  ['Work requests', 'rest', ['work request']],
];

const lastCalls = 12;

export const overview = {
  path: '',
  title: 'Overview',
  draw: (page) => [
    h('div', { class: 'cards', key: 'cards' }, cards.map(([title, path, kinds]) => card(page, title, path, kinds))),
    inForce(page.status),
    recent(page),
    environment(page),
  ],
};

function card(page, title, path, kinds) {
  const summaries = page.status.kinds.filter((k) => kinds.includes(k.kind));
  const states = {};
  for (const s of summaries) for (const [state, n] of Object.entries(s.states ?? {})) states[state] = (states[state] ?? 0) + n;
  return h('a', { class: 'card', href: `#/${path}`, key: title },
    h('span', { class: 'card-title' }, title),
    h('span', { class: 'card-count' }, number(summaries.reduce((sum, s) => sum + s.count, 0))),
    h('span', { class: 'card-states' }, Object.entries(states).sort().map(([state, n]) => h('span', { class: 'state', data: { mood: mood(state) } }, `${number(n)} ${state}`))));
}

function recent(page) {
  const answer = page.cache.use(`/calls/recent?limit=${lastCalls}`, page.status.lastSeq);
  const list = answer?.calls ?? [];
  return h('section', { class: 'group', key: 'recent', 'aria-labelledby': 'h-recent' },
    h('div', { class: 'group-head' }, h('h2', { id: 'h-recent' }, 'Last calls'), h('a', { href: '#/calls' }, 'The whole log')),
    list.length === 0 ? h('p', { class: 'empty' }, 'No call yet.') : null,
    h('ol', { class: 'recent' }, list.map((call) => h('li', { key: String(call.seq) },
      h('span', { class: 'time' }, clockTime(new Date(call.time))), statusBadge(call),
      h('span', { class: 'name' }, call.operation || `${call.method} ${call.path}`, call.fault ? h('span', { class: 'mark fault' }, call.fault) : null),
      h('span', { class: 'quiet' }, principal(call.principal, answer.mentioned))))));
}

function environment(page) {
  const open = page.isOpen('environment');
  const lines = open ? page.cache.use('/env', page.status.assets) ?? [] : [];
  return h('details', { class: 'group folded', key: 'environment', open },
    h('summary', {}, h('h2', {}, 'Point a program at it')),
    open ? [
      h('p', {}, 'Any program on an OCI SDK works in a shell with these variables. ', code('ocisim env --user NAME'), ' prints them with a user; ',
        code('--instance NAME'), ' chooses the instance that the program runs on.'),
      h('pre', { tabindex: '0', role: 'region', 'aria-label': 'Environment' }, lines.map((line) => `export ${line}\n`).join('')),
    ] : null);
}
