// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// The live log of calls.

import { address, get, post } from './api.js';
import { h } from './dom.js';
import { clockTime, count, moment, number, principal, took } from './format.js';
import { on } from './actions.js';
import { code, definitions, link, nameOf, table } from './resources.js';

const chunk = 200; // calls that are fetched and shown at first
const most = 2000; // calls on the page
const scrolledDown = 150; // pixels from where on new calls wait, because somebody reads

const filters = ['operation', 'principal', 'status', 'text', 'writes', 'faults'];

/** log is what the view knows. The calls are newest first; newest is the last one that was looked at, seen when it was made. */
const log = { calls: [], names: {}, more: false, newest: 0, seen: null, paused: false, reading: false, filter: '', loading: false, again: false };

export const calls = {
  path: 'calls',
  title: 'Calls',
  badge: (status) => ({ text: number(status.calls) }),
  enter: (page, query) => {
    const filter = filterOf(query).toString();
    if (filter !== log.filter) restart(filter);
    log.reading = false;
    refresh(page);
  },
  arrived: (page, visible) => { if (visible && !held()) refresh(page); },
  toggled: (page, key, open) => {
    if (key.startsWith('call/') && open) log.reading = true;
    page.draw();
  },
  draw: (page, query) => [
    filterForm(page, query),
    progress(page),
    h('div', { class: 'items log', key: 'log' }, log.calls.map((call) => drawCall(page, call))),
    log.calls.length === 0 && !log.loading
      ? h('p', { class: 'empty', key: 'none' }, log.filter ? 'No call matches.' : 'No call yet. The overview says how to point a program at the region.') : null,
    log.more ? h('p', { class: 'more', key: 'more' }, log.calls.length >= most
      ? 'Older calls are not shown: use the filters.'
      : h('button', { type: 'button', data: { do: 'older' } }, 'Show older calls')) : null,
    counters(page),
    edge(page),
  ],
};

function filterOf(query) {
  const q = new URLSearchParams();
  for (const name of filters) if (query.get(name)) q.set(name, query.get(name));
  return q;
}

function restart(filter) {
  Object.assign(log, { calls: [], names: {}, more: false, newest: 0, seen: null, filter });
}

function held() {
  return log.paused || log.reading || window.scrollY > scrolledDown;
}

function ask(query) {
  return get(address('/calls/recent', { ...Object.fromEntries(new URLSearchParams(log.filter)), limit: chunk, ...query }));
}

/** refresh fetches what is newer than the newest call on the page. */
async function refresh(page) {
  if (log.loading) {
    log.again = true;
    return;
  }
  log.loading = true;
  const { filter } = log;
  try {
    const answer = await ask({ since: log.newest || null });
    if (filter === log.filter) take(answer);
    else log.again = true;
  } finally {
    log.loading = false;
    page.draw();
    if (log.again) {
      log.again = false;
      refresh(page).catch(() => {});
    }
  }
}

function take(answer) {
  const known = log.newest > 0;
  Object.assign(log.names, answer.mentioned);
  if (known && answer.since !== log.seen) { // the log is another one: the region was reset, or the numbers are gone
    restart(log.filter);
    log.again = true;
    return;
  }
  const gap = known && answer.more;
  log.calls = known && !gap ? [...answer.calls, ...log.calls] : answer.calls;
  if (!known || gap) log.more = answer.more;
  if (log.calls.length > most) {
    log.calls.length = most;
    log.more = true;
  }
  const first = answer.calls[0];
  const ahead = first && first.seq > answer.lastSeq;
  log.newest = ahead ? first.seq : answer.lastSeq;
  log.seen = ahead ? first.time : answer.last;
}

on('older', async (element, event, page) => {
  const { filter } = log;
  const answer = await ask({ before: log.calls.at(-1).seq });
  if (filter !== log.filter) return;
  log.calls = [...log.calls, ...answer.calls];
  Object.assign(log.names, answer.mentioned);
  log.more = answer.more;
  page.draw();
});

on('pause', (element, event, page) => {
  log.paused = true;
  page.draw();
});

on('follow', (element, event, page) => {
  log.paused = false;
  log.reading = false;
  window.scrollTo(0, 0);
  refresh(page).catch(() => {});
});

on('reset-counters', async (element, event, page) => {
  await post('/reset-counters');
  page.say('Log and counters are empty.');
});

/** progress says whether the list follows the log, and why not. */
function progress(page) {
  const { newest } = log;
  const behind = Math.max(page.status.lastSeq - newest, 0);
  const isHeld = held();
  let text = 'Follows the log.';
  if (log.paused) text = 'Paused.';
  else if (isHeld) text = 'New calls wait while you read.';
  return h('p', { class: 'progress', key: 'progress', data: { held: isHeld } },
    h('span', {}, text, isHeld && behind > 0 ? ` The log has gone on by ${count(behind, 'call')}.` : ''), ' ',
    isHeld
      ? h('button', { type: 'button', key: 'follow', data: { do: 'follow' } }, log.paused ? 'Continue' : 'Show them')
      : h('button', { type: 'button', key: 'pause', data: { do: 'pause' } }, 'Pause'),
    ' ', h('a', { href: '#counters', class: 'jump', data: { do: 'jump', to: 'counters' } }, 'Counters'));
}

on('jump', (element, event, page) => {
  event.preventDefault();
  page.open.set(element.dataset.to, true);
  page.draw();
  queueMicrotask(() => document.getElementById(element.dataset.to)?.scrollIntoView());
});

let wasHeld = false;
window.addEventListener('scroll', () => {
  if (held() === wasHeld || !document.querySelector('.log')) return;
  wasHeld = held();
  document.dispatchEvent(new CustomEvent('held'));
}, { passive: true });

const statuses = [['', 'Any'], ['errors', 'Errors (4xx, 5xx)'], ['2xx', '2xx'], ['4xx', '4xx'], ['5xx', '5xx'], ['404', '404'],
  ['409', '409'], ['412', '412'], ['429', '429'], ['dropped', 'Connection dropped']];

function filterForm(page, query) {
  const value = (name) => query.get(name) ?? '';
  const field = (name, label, input) => h('div', { class: 'field' }, h('label', { for: `f-${name}` }, label), input);
  const text = (name, label, more = {}) => field(name, label, h('input', { id: `f-${name}`, name, type: 'search', value: value(name), autocomplete: 'off', ...more }));
  const check = (name, label) => h('label', { class: 'check' }, h('input', { type: 'checkbox', name, checked: value(name) === 'true' }), label);
  return h('form', { class: 'filters', key: 'filters', role: 'search', 'aria-label': 'Filters of the log', data: { do: 'filter', input: 'filter', change: 'filter', still: filterOf(query).toString() } },
    text('operation', 'Operation', { list: 'operations', placeholder: 'part of it' }),
    text('principal', 'Principal', { placeholder: 'part of it' }),
    field('status', 'Status', h('select', { id: 'f-status', name: 'status' }, statuses.map(([v, label]) => h('option', { value: v, selected: v === value('status') }, label)))),
    text('text', 'Text', { placeholder: 'OCID, id, fault …' }),
    h('div', { class: 'checks' }, check('writes', 'Writes only'), check('faults', 'Faults only')),
    operationList(page));
}

/** operationList is what browsers suggest for the name of an operation. */
export function operationList(page) {
  const list = page.cache.use('/operations', page.status.assets) ?? [];
  const names = [...new Set(list.flatMap((o) => [o.name, `${o.service}.${o.name}`]))].sort();
  return h('datalist', { id: 'operations' }, names.map((name) => h('option', { value: name })));
}

let typing;
on('filter', (form, event, page) => {
  const go = () => {
    const q = new URLSearchParams();
    for (const name of filters) {
      const input = form.elements[name];
      if (input.type === 'checkbox' ? input.checked : input.value.trim()) q.set(name, input.type === 'checkbox' ? 'true' : input.value.trim());
    }
    const text = q.toString();
    if (text === log.filter) return;
    form.dataset.still = text;
    history.replaceState(null, '', text ? `#/calls?${text}` : '#/calls');
    page.route.query = q;
    restart(text);
    refresh(page).catch(() => {});
  };
  clearTimeout(typing);
  if (event.type === 'input' && event.target.type === 'search') typing = setTimeout(go, 250);
  else go();
});

/** statusBadge is the status of a call; 0 means that there was no answer. */
export function statusBadge(call) {
  const mood = call.status === 0 || call.status >= 500 ? 'bad' : call.status >= 400 ? 'busy' : 'good';
  return h('span', { class: 'badge status', data: { mood } }, call.status === 0 ? 'dropped' : String(call.status));
}

function drawCall(page, call) {
  const key = `call/${call.seq}`;
  const open = page.isOpen(key);
  return h('details', { class: 'item', key, open },
    h('summary', { class: 'row cols-calls' },
      h('span', { class: 'time' }, clockTime(new Date(call.time), true)),
      h('span', { class: 'cell' }, statusBadge(call)),
      h('span', { class: 'name' }, h('span', {}, call.operation ? [h('span', { class: 'quiet service' }, `${call.service}.`), h('wbr'), call.operation] : `${call.method} ${call.path}`),
        call.write ? h('span', { class: 'mark' }, 'write') : null,
        call.fault ? h('span', { class: 'mark fault', title: call.fault }, call.fault) : null,
        call.replayed ? h('span', { class: 'mark' }, 'replayed') : null),
      h('span', { class: 'cell', title: call.principal, data: { label: 'By' } }, principal(call.principal, log.names)),
      h('span', { class: 'cell', title: about(call), data: { label: 'On' } }, nameOf(about(call), log.names)),
      h('span', { class: 'cell quiet took', data: { label: 'Took' } }, took(call.duration))),
    open ? h('div', { class: 'body' }, details(call)) : null);
}

/** about is what a call was about, or what it made. */
function about(call) {
  return call.resource ?? call.created;
}

function details(call) {
  const name = call.operation ? `${call.service}.${call.operation}` : '';
  const rows = [
    ['Request', code(`${call.method} ${call.path}${call.query ? `?${call.query}` : ''}`)],
    ['Status', call.status === 0 ? 'none: the connection was dropped before the call was applied' : `${call.status} ${call.code ?? ''}`],
    ['Fault', call.fault],
    ['Reason', call.reason],
    ['Request id', call.requestId && code(call.requestId)],
    ['Principal', call.principal && named(call.principal)],
    ['Resource', call.resource && named(call.resource)],
    ['Created', call.created && named(call.created)],
    ['Work request', call.workRequest && code(call.workRequest)],
    ['Retry token', call.retryToken && [code(call.retryToken), call.replayed ? ' (answered from its record)' : '']],
    ['If-Match', call.ifMatch && code(call.ifMatch)],
    ['Time', `${moment(call.time)}, took ${took(call.duration)}`],
    ['Number', number(call.seq)],
  ];
  const to = (view, query) => `#/${view}?${new URLSearchParams(query)}`;
  return [
    definitions(rows.filter(([, value]) => value)),
    name ? h('p', { class: 'links' },
      h('a', { href: to('calls', { operation: name }) }, 'Only this operation'), ' ',
      call.principal ? h('a', { href: to('calls', { principal: call.principal }) }, 'Only this principal') : null, ' ',
      call.resource ? h('a', { href: to('calls', { text: call.resource }) }, 'Only this resource') : null, ' ',
      h('a', { href: to('faults', { operation: name }) }, 'Let this operation fail')) : null,
  ];
}

/** named is an identifier in full, with the name of what it stands for. */
function named(id) {
  const mention = log.names[id];
  if (mention?.kind === 'user') return [`user ${mention.name} `, code(id)];
  return mention ? [link(id, log.names), ' ', code(id)] : code(id);
}

function counters(page) {
  const open = page.isOpen('counters');
  let content = null;
  if (open) {
    const all = Object.entries(page.cache.use('/counters', page.status.calls) ?? {}).sort((a, b) => b[1] - a[1]);
    content = [
      all.length === 0 ? h('p', { class: 'empty' }, 'No call yet.') : table('Calls by operation', ['Operation', 'Calls'], all.map(([name, n]) => ({
        key: name, cells: [name === '.' ? 'no operation' : h('a', { href: `#/calls?${new URLSearchParams({ operation: name })}` }, name), number(n)],
      }))),
      h('p', {}, h('button', { type: 'button', data: { do: 'reset-counters' } }, 'Empty log and counters')),
    ];
  }
  return h('details', { class: 'group folded', key: 'counters', id: 'counters', open },
    h('summary', {}, h('h2', {}, 'Counters ', h('span', { class: 'count' }, number(page.status.calls)))), content);
}

function edge(page) {
  const open = page.isOpen('edge');
  const list = open ? page.cache.use('/edge/recent?limit=100', page.status.edge) ?? [] : [];
  return h('details', { class: 'group folded', key: 'edge', open },
    h('summary', {}, h('h2', {}, 'Metadata, tokens and proxy ', h('span', { class: 'count' }, number(page.status.edge)))),
    open ? [h('p', { class: 'quiet' }, 'Requests that never reach the region; the newest 100.'),
      table('Requests', ['Time', 'Kind', 'Target', 'Status', 'By'], list.map((c, i) => ({
        key: `${c.time}/${i}`, cells: [clockTime(new Date(c.time), true), c.kind, c.target, statusBadge(c), c.principal ?? '–'],
      })))] : null);
}
