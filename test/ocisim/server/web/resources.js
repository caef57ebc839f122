// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Views that list resources, each of which opens to show what is in it.

import { address } from './api.js';
import { h } from './dom.js';
import { capital, mood, moment, number, shortId, words } from './format.js';
import { on } from './actions.js';

const firstRows = 50;

/** aging is how often what ages is fetched again, in milliseconds. */
export const aging = 5000;

/** viewOf says where resources of a kind are shown. */
const viewOf = new Map();

/** register makes a view known as the place of the kinds that it lists. */
export function register(view) {
  for (const group of view.groups) viewOf.set(group.kind, view);
}

/**
 * resourceView lists groups of resources of one kind each. A group has
 *   kind      as the server names it
 *   title     plural, for people
 *   columns   [label, function(object, names) → content], after name and state
 *   layout    class for the widths of the columns
 *   needs     further kinds that its columns read
 *   aging     whether its columns also change without any change of a resource: health
 *   body      function(object, tools) → what an open resource shows
 *   open      whether resources are open at first when there are few of them
 */
export function resourceView({ path, title, groups }) {
  return {
    path,
    title,
    groups,
    badge: (status) => {
      const n = total(status, groups);
      return n > 0 ? { text: number(n) } : null;
    },
    draw: (page, query) => drawGroups(page, path, query, groups),
  };
}

function total(status, groups) {
  return status.kinds.filter((k) => groups.some((g) => g.kind === k.kind)).reduce((sum, k) => sum + k.count, 0);
}

/** rest lists all kinds that no other view lists: what a new service brings shows at once. */
export const rest = {
  path: 'rest',
  title: 'Everything else',
  badge: (status) => {
    const n = status.kinds.filter((k) => !viewOf.has(k.kind)).reduce((sum, k) => sum + k.count, 0);
    return n > 0 ? { text: number(n) } : null;
  },
  draw: (page, query) => {
    const kinds = page.status.kinds.filter((k) => !viewOf.has(k.kind));
    return drawGroups(page, 'rest', query, kinds.map((k) => genericGroup(k.kind)));
  },
};

function genericGroup(kind) {
  const group = { kind, title: capital(plural(kind)), columns: [['Identifier', (o) => code(shortId(o.id))]], folded: true };
  if (kind === 'work request') {
    group.columns = [
      ['Operation', (o) => o.value.operation], ['Done', (o) => `${o.value.percentComplete} %`],
      ['Works on', (o, names) => nameOf(o.value.resource, names)],
    ];
    group.newest = true;
  }
  return group;
}

function plural(kind) {
  if (/(list|set|group|policy|s)$/.test(kind) && kind.endsWith('y')) return `${kind.slice(0, -1)}ies`;
  return kind.endsWith('s') ? `${kind}es` : `${kind}s`;
}

function drawGroups(page, path, query, groups) {
  const text = query.get('text') ?? '';
  const shown = groups.filter((g) => countOf(page, g.kind).count > 0);
  const missing = groups.filter((g) => countOf(page, g.kind).count === 0).map((g) => (/^([A-Z]{2}|IPv6|Lustre)/.test(g.title) ? g.title : g.title.charAt(0).toLowerCase() + g.title.slice(1)));
  return [
    searchForm(path, text),
    shown.map((group) => drawGroup(page, path, query, group, text)),
    missing.length > 0 ? h('p', { class: 'empty', key: 'missing' }, `There are no ${listing(missing)}.`) : null,
    groups.length === 0 ? h('p', { class: 'empty', key: 'missing' }, 'There is nothing else.') : null,
  ];
}

function listing(list) {
  return list.length < 2 ? list.join('') : `${list.slice(0, -1).join(', ')} or ${list.at(-1)}`;
}

function countOf(page, kind) {
  return page.status.kinds.find((k) => k.kind === kind) ?? { count: 0, states: {} };
}

function searchForm(path, text) {
  const form = h('form', { class: 'search', key: `search-${path}`, role: 'search', data: { do: 'search', input: 'search', still: text, path } },
    h('label', { for: 'text' }, 'Find'),
    h('input', { id: 'text', name: 'text', type: 'search', value: text, placeholder: 'name, OCID, address, tag …', autocomplete: 'off' }));
  return form;
}

let typing;
on('search', (form, event, page) => {
  const go = () => {
    const query = new URLSearchParams(page.route.query);
    const text = form.elements.text.value.trim();
    if (text === (query.get('text') ?? '')) return;
    query.delete('open');
    if (text) query.set('text', text);
    else query.delete('text');
    form.dataset.still = text; // so that drawing leaves the field alone
    history.replaceState(null, '', hashFor(form.dataset.path, query));
    page.route.query = query;
    page.draw();
  };
  clearTimeout(typing);
  if (event.type === 'submit') go();
  else typing = setTimeout(go, 250);
});

on('state', (element, event, page) => {
  const key = element.dataset.list;
  page.open.set(key, page.open.get(key) === element.dataset.state ? undefined : element.dataset.state);
  page.draw();
});

function hashFor(path, query) {
  const text = query.toString();
  return text === '' ? `#/${path}` : `#/${path}?${text}`;
}

const lastPages = new Map(); // by list: what it showed, while the next answer is on its way

function drawGroup(page, path, query, group, text) {
  const { kind } = group;
  const list = `${path}/${kind}`;
  const summary = countOf(page, kind);
  const state = page.open.get(`${list}/state`);
  const head = h('div', { class: 'group-head' },
    h('h2', { id: `h-${kind.replaceAll(' ', '-')}` }, group.title, ' ', h('span', { class: 'count' }, number(summary.count))),
    h('div', { class: 'chips' }, Object.entries(summary.states ?? {}).sort().map(([name, n]) => (group.folded
      ? h('span', { class: 'state', data: { mood: mood(name) } }, `${name} ${number(n)}`) // within a summary there are no buttons
      : h('button', {
        type: 'button', class: 'chip', key: name, 'aria-pressed': String(state === name), title: 'Show only these',
        data: { do: 'state', list: `${list}/state`, state: name, mood: mood(name) },
      }, `${name} ${number(n)}`)))));
  const section = (content, open) => (group.folded
    ? h('details', { class: 'group folded', key: list, open }, h('summary', {}, head), open ? content : null)
    : h('section', { class: 'group', key: list, 'aria-labelledby': `h-${kind.replaceAll(' ', '-')}` }, head, content));
  const open = !group.folded || page.isOpen(list, Boolean(text));
  if (!open) return section(null, false);

  const limit = page.limits.get(list) ?? firstRows;
  const skip = group.newest && !text && !state ? Math.max(summary.count - limit, 0) : 0;
  const age = group.aging ? Math.floor(performance.now() / aging) : '';
  const revision = `${page.revision([kind, ...(group.needs ?? [])])} ${age}`;
  const answer = page.cache.use(address('/objects', { kind, text, state, limit, skip }), revision) ?? lastPages.get(list);
  if (!answer) return section(h('p', { class: 'empty' }, 'Loading …'), true);
  lastPages.set(list, answer);
  const objects = group.newest ? [...answer.objects].reverse() : answer.objects;
  const few = summary.count <= 4 || text !== '' && answer.matched <= 2;
  const wanted = query.get('open');
  return section([
    h('div', { class: `head-row ${group.layout ?? ''}`, 'aria-hidden': 'true', key: 'head' },
      ['Name', 'State', ...group.columns.map(([label]) => label)].map((label) => h('span', {}, label))),
    h('div', { class: 'items', key: 'items' }, objects.map((object) => drawItem(page, group, object, answer.mentioned,
      object.id === wanted || Boolean(group.open && few)))),
    answer.matched === 0 ? h('p', { class: 'empty', key: 'none' }, 'Nothing matches.') : null,
    more(list, objects.length, group.newest && !text && !state ? summary.count : answer.matched, limit),
  ], true);
}

function more(list, shown, matched, limit) {
  if (matched <= shown) return null;
  const next = Math.min(Math.max(limit * 2, 200), 1000);
  return h('p', { class: 'more', key: 'more' }, `${number(shown)} of ${number(matched)} are shown. `,
    limit >= 1000 ? 'Use the search to find the others.'
      : h('button', { type: 'button', data: { do: 'more', list, limit: next } }, 'Show more'));
}

function drawItem(page, group, object, names, otherwise) {
  const key = `${object.kind}/${object.id}`;
  const open = page.isOpen(key, otherwise);
  const label = object.name || shortId(object.id);
  return h('details', { class: 'item', key, open, data: { wasOpen: otherwise ? '' : null } },
    h('summary', { class: `row ${group.layout ?? ''}` },
      h('span', { class: 'name' }, label),
      h('span', { class: 'cell' }, object.state ? badge(object.state) : null),
      group.columns.map(([title, content]) => h('span', { class: 'cell', data: { label: title } }, content(object, names)))),
    open ? h('div', { class: 'body' }, drawBody(page, group, object, names)) : null);
}

function drawBody(page, group, object, names) {
  const tools = {
    names,
    /** under lists the resources of a kind that belong to this one; it may be called for one kind after another. */
    under: (kind) => page.cache.use(address('/objects', { kind, under: object.id, limit: 500 }), page.revision([kind])),
    more: (list, shown, all, limit) => more(list, shown, all, limit),
    limit: (list, first) => page.limits.get(list) ?? first,
  };
  return [
    group.body?.(object, tools),
    h('h3', {}, 'Details'),
    fields(object, names),
    h('p', { class: 'links' },
      h('a', { href: `#/calls?text=${encodeURIComponent(object.id)}` }, 'Calls about it'), ' ',
      h('a', { href: `#/faults?resource=${encodeURIComponent(object.id)}` }, 'Let calls about it fail')),
    raw(page, object),
  ];
}

/** raw is the resource as the API shows it. */
function raw(page, object) {
  const key = `json/${object.kind}/${object.id}`;
  const open = page.isOpen(key);
  return h('details', { class: 'raw', key, open }, h('summary', {}, 'As JSON'),
    open ? h('pre', { tabindex: '0', role: 'region', 'aria-label': 'JSON' }, JSON.stringify(object.value, null, 2)) : null);
}

/** fields are the simple fields of any resource, and its tags. */
export function fields(object, names) {
  const rows = [['OCID', code(object.id)]];
  for (const [name, value] of Object.entries(object.value)) {
    if (name === 'id' || name === 'displayName' || name === 'lifecycleState' || name === 'systemTags') continue;
    const content = name.endsWith('Tags') ? tags(value) : simple(name, value, names);
    if (content !== null) rows.push([words(name), content]);
  }
  if (object.etag) rows.push(['ETag', code(object.etag)]);
  return definitions(rows);
}

/** definitions is a list of names with values. */
export function definitions(rows) {
  return h('dl', { class: 'fields' }, rows.map(([name, value]) => h('div', { key: name }, h('dt', {}, name), h('dd', {}, value))));
}

function simple(name, value, names) {
  if (value === null || value === '') return null;
  if (Array.isArray(value)) {
    if (value.length === 0 || value.some((v) => typeof v === 'object')) return null;
    return value.map((v, i) => [i > 0 ? ', ' : '', simple(name, v, names)]);
  }
  switch (typeof value) {
    case 'object': return null;
    case 'boolean': return value ? 'yes' : 'no';
    case 'number': return String(value);
    default:
      if (value.startsWith('ocid1.')) return link(value, names);
      return /^time[A-Z]/.test(name) ? moment(value) : value;
  }
}

function tags(value) {
  const list = [];
  for (const [key, v] of Object.entries(value ?? {})) {
    if (v !== null && typeof v === 'object') for (const [k, inner] of Object.entries(v)) list.push([`${key}.${k}`, inner]);
    else list.push([key, v]);
  }
  if (list.length === 0) return null;
  return list.map(([key, v]) => h('span', { class: 'tag' }, `${key} = ${v}`));
}

/** none stands where there is nothing; on a phone such a cell is left out. */
export function none(text = '–') {
  return h('span', { class: 'quiet none' }, text);
}

export function code(text) {
  return h('code', {}, text);
}

export function badge(state, text = state) {
  return h('span', { class: 'badge', data: { mood: mood(state) } }, text);
}

/** nameOf is the display name of a resource that another one mentions. */
export function nameOf(id, names) {
  return names?.[id]?.name || (id ? shortId(id) : '');
}

/** link leads to a resource that another one mentions. */
export function link(id, names) {
  const mention = names?.[id];
  if (!mention) return h('code', { title: 'There is no resource with this OCID.' }, id);
  const query = new URLSearchParams({ text: id, open: id });
  return h('a', { href: `#/${viewOf.get(mention.kind)?.path ?? 'rest'}?${query}`, title: id }, mention.name || shortId(id));
}

/** table is a small table that scrolls in itself when it must, and turns into cards on a phone. */
export function table(label, heads, rows) {
  return h('div', { class: 'scroll' }, h('table', { role: 'table' },
    h('caption', {}, label),
    h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, heads.map((head) => h('th', { scope: 'col', role: 'columnheader' }, head)))),
    h('tbody', { role: 'rowgroup' }, rows.map(({ key, cells }) => h('tr', { key, role: 'row' },
      cells.map((cell, i) => h('td', { role: 'cell', data: { label: heads[i] } }, h('span', {}, cell))))))));
}
