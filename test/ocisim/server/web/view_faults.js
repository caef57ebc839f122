// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Faults, missing permissions and held calls: what is in force, and forms to add to it.

import { post, remove } from './api.js';
import { h } from './dom.js';
import { count } from './format.js';
import { on } from './actions.js';
import { operationList } from './view_calls.js';

/** presets are faults that are often wanted. */
const presets = {
  'Throttle everything': { status: 429, retryAfter: '2s', note: 'throttle everything' },
  'Throttle every fifth call': { status: 429, chance: 0.2, note: 'throttle every fifth call' },
  'Lose the answer of the next create': { operation: 'Create*', drop: 'after', times: 1, note: 'lost answer of a create' },
  'Fail the next work request': { failWork: true, times: 1, code: 'INTERNAL_ERROR', message: 'An internal error occurred.', note: 'failed work request' },
  'Fail the next write with 500': { writes: true, status: 500, times: 1, note: '500 for a write' },
  'Cut the next answer in half': { halfBody: true, times: 1, note: 'half an answer' },
  'A budget of 2 calls per second': { budget: { perSecond: 2, burst: 4 }, retryAfter: '1s', note: 'budget of 2 per second' },
  'Slow reads and writes by 2 s': { delay: '2s', note: '2 s slower' },
};

export const faults = {
  path: 'faults',
  title: 'Faults',
  badge: (status) => {
    const n = status.faults.filter((fault) => !usedUp(fault)).length + status.denials.length + status.holds.length
      + status.acts.filter((act) => !act.value.done).length;
    return n > 0 ? { text: String(n), alarm: true } : null;
  },
  draw: (page, query) => [
    inForce(page.status),
    h('section', { class: 'group', key: 'presets', 'aria-labelledby': 'h-presets' },
      h('h2', { id: 'h-presets' }, 'Something goes wrong'),
      h('div', { class: 'presets' }, Object.keys(presets).map((name) => h('button', { type: 'button', key: name, data: { do: 'preset', preset: name } }, name)))),
    h('div', { class: 'forms', key: 'forms' }, faultForm(page, query), denialForm(page)),
    operationList(page),
  ],
};

/** inForce lists everything that is in force. */
export function inForce({ faults: list, denials, acts, holds }) {
  const empty = list.length + denials.length + acts.length + holds.length === 0;
  return h('section', { class: 'group', key: 'in-force', 'aria-labelledby': 'h-in-force' },
    h('div', { class: 'group-head' }, h('h2', { id: 'h-in-force' }, 'In force'),
      list.length > 1 ? h('button', { type: 'button', data: { do: 'remove', path: '/faults', what: 'All faults' } }, 'Remove all faults') : null,
      denials.length > 1 ? h('button', { type: 'button', data: { do: 'remove', path: '/denials', what: 'All denials' } }, 'Restore all permissions') : null),
    empty ? h('p', { class: 'empty' }, 'Everything works, and everything is allowed.') : null,
    h('ul', { class: 'in-force' },
      list.map((fault, i) => entry(`fault/${fault.id ?? `own-${i}`}`, usedUp(fault) ? 'Used up' : 'Fault', describe(fault.value), [
        `struck ${fault.struck} of ${count(fault.seen, onlyWork(fault.value) ? 'work request' : 'matching call')}`, fault.value.note ? `note “${fault.value.note}”` : null,
        fault.id ? null : 'made by the program that runs the simulator',
      ], fault.id ? { do: 'remove', path: `/faults/${fault.id}`, what: 'The fault' } : null, 'Remove')),
      denials.map((denial) => entry(`denial/${denial.id}`, 'Denied', describeDenial(denial.value), [], { do: 'remove', path: `/denials/${denial.id}`, what: 'The denial' }, 'Restore')),
      acts.map(({ id, value }) => entry(`act/${id}`, 'Somebody', describeAct(value), [
        value.error ? `it failed: ${value.error}` : `done ${value.done === 1 ? 'once' : `${value.done} times`}`,
      ], { do: 'remove', path: `/foreign/${id}`, what: 'The act' }, 'Remove')),
      holds.map((hold) => entry(`hold/${hold.id}`, 'Hold', describeHold(hold), [`state ${hold.state}`], { do: 'remove', path: `/hooks/${hold.id}`, what: 'The hold' }, 'Release'))));
}

function entry(key, kind, text, notes, data, verb) {
  const shown = notes.filter(Boolean);
  return h('li', { key },
    h('span', { class: 'badge', data: { mood: { Fault: 'bad', 'Used up': 'over' }[kind] ?? 'busy' } }, kind.toUpperCase()),
    h('span', { class: 'what' }, h('span', {}, text), shown.length > 0 ? h('span', { class: 'quiet' }, shown.map((n, i) => [i > 0 ? ' · ' : '', n])) : null),
    data ? h('button', { type: 'button', data, 'aria-label': `${verb}: ${text}` }, verb) : null);
}

function usedUp({ value, struck }) {
  const times = value.times || (value.nth ? 1 : 0);
  return times > 0 && struck >= times;
}

/** describe is a fault in a sentence. */
export function describe(f) {
  const kind = f.writes ? 'write' : f.reads ? 'read' : 'call';
  let which = onlyWork(f) ? 'every work request' : `every ${kind}`;
  if (f.operation && f.operation !== '*') which = f.operation + (kind === 'call' ? '' : ` (${kind}s only)`);
  if (f.principal) which += ` by ${f.principal}`;
  if (f.resource) which += ` about ${f.resource}`;
  const effects = [];
  if (f.delay && f.delay !== '0s') effects.push(`${f.applied ? 'the answer is' : 'it is'} ${f.delay} late`);
  if (f.failWork) effects.push(`${onlyWork(f) && !f.operation ? 'it' : 'its work request'} fails with ${f.code || 'INTERNAL_ERROR'}`);
  else if (f.status || f.budget) effects.push(`${f.applied ? 'it is applied, but answered' : 'it is answered'} ${f.status || 429}${f.code ? ` ${f.code}` : ''}${f.retryAfter && f.retryAfter !== '0s' ? ` with Retry-After ${f.retryAfter}` : ''}`);
  if (f.drop === 'before') effects.push('the connection drops before it is applied');
  if (f.drop === 'after') effects.push('it is applied, and its answer is lost');
  if (f.halfBody) effects.push('the answer breaks off in the middle');
  const when = [];
  if (f.nth) when.push(`from the ${ordinal(f.nth)} one`);
  const times = f.times || (f.nth ? 1 : 0);
  if (times) when.push(times === 1 ? 'once' : `${times} times`);
  if (f.budget) when.push(`above ${f.budget.perSecond} per second and a burst of ${f.budget.burst || 1}`);
  if (f.chance) when.push(`with a chance of ${Math.round(f.chance * 1000) / 10} %`);
  return `${which}${when.length > 0 ? `, ${when.join(', ')}` : ''}: ${effects.join('; ') || 'nothing happens'}`;
}

/** onlyWork says whether a fault counts what calls start, and not the calls. */
function onlyWork(f) {
  return Boolean(f.failWork && !f.drop && !f.halfBody && (!f.delay || f.delay === '0s'));
}

function ordinal(n) {
  const last = n % 100 > 10 && n % 100 < 14 ? 0 : n % 10;
  return `${n}${['th', 'st', 'nd', 'rd'][last] ?? 'th'}`;
}

function describeDenial(p) {
  const what = [p.operation ?? (p.verb || 'inspect'), p.resourceType || (p.operation ? '' : 'any resource')].filter(Boolean).join(' ');
  return `${what}${p.principal ? ` by ${p.principal}` : ' by anybody'}${p.compartment ? ` in ${p.compartment}` : ''}`;
}

/** describeAct is what somebody else does at a call. */
function describeAct({ id, set, delete: gone, before, after }) {
  const trigger = before ?? after;
  const what = id || 'the resource of the call';
  return `${gone ? `deletes ${what}` : `changes ${what}: ${JSON.stringify(set)}`}, ${before ? 'before' : 'after'} ${trigger?.operation || 'any operation'}`;
}

function describeHold({ rule, call, seen }) {
  const operations = (rule.operations ?? []).join(' or ') || 'any operation';
  return `${ordinal(rule.n)} call of ${operations}${call ? `: ${call.service}.${call.operation} is applied, its answer waits` : `, ${seen} seen`}`;
}

function field(label, name, attributes, value, hint) {
  return h('div', { class: 'field' }, h('label', { for: `n-${name}` }, label),
    h('input', { id: `n-${name}`, name, type: 'text', autocomplete: 'off', value, 'aria-describedby': hint ? `hint-${name}` : null, ...attributes }),
    hint ? h('span', { class: 'hint', id: `hint-${name}` }, hint) : null);
}

function check(name, label) {
  return h('label', { class: 'check' }, h('input', { type: 'checkbox', name }), label);
}

function faultForm(page, query) {
  const value = (name) => query.get(name) ?? '';
  return h('form', { class: 'group', key: 'fault-form', data: { do: 'add-fault', still: `fault ${query}` }, 'aria-labelledby': 'h-fault' },
    h('h2', { id: 'h-fault' }, 'Add a fault'),
    h('fieldset', {}, h('legend', {}, 'Which calls'), h('div', { class: 'fields-grid' },
      field('Operation', 'operation', { list: 'operations', placeholder: 'every one' }, value('operation'), 'A * at the end stands for anything: Create*, loadbalancer.*'),
      field('Principal', 'principal', { placeholder: 'anybody' }, value('principal')),
      field('Resource', 'resource', { placeholder: 'any' }, value('resource')),
      h('div', { class: 'checks' }, check('writes', 'Writes only'), check('reads', 'Reads only')))),
    h('fieldset', {}, h('legend', {}, 'When'), h('div', { class: 'fields-grid' },
      field('First struck', 'nth', { type: 'number', min: '1', placeholder: '1' }, '', 'Of the matching calls'),
      field('Times', 'times', { type: 'number', min: '1', placeholder: 'always' }, ''),
      field('Chance', 'chance', { type: 'number', min: '0', max: '1', step: 'any', placeholder: '1' }, '', 'From 0 to 1'),
      field('Above this many per second', 'budget.perSecond', { type: 'number', min: '0', step: 'any', placeholder: 'no budget' }, '', 'Of each principal, for each service'),
      field('Burst', 'budget.burst', { type: 'number', min: '1', placeholder: '1' }, ''))),
    h('fieldset', {}, h('legend', {}, 'What happens'), h('div', { class: 'fields-grid' },
      field('Status', 'status', { type: 'number', min: '400', max: '599', placeholder: 'none', list: 'error-statuses' }, value('status')),
      h('datalist', { id: 'error-statuses' }, [400, 401, 404, 409, 412, 429, 500, 502, 503, 504].map((s) => h('option', { value: s }))),
      field('Code', 'code', { placeholder: 'follows from the status' }, ''),
      field('Message', 'message', {}, ''),
      field('Retry-After', 'retryAfter', { placeholder: 'none' }, '', 'A duration: 10s, 2m'),
      field('Delay', 'delay', { placeholder: 'none' }, '', 'A duration: 500ms, 5s'),
      h('div', { class: 'field' }, h('label', { for: 'n-drop' }, 'Connection drops'),
        h('select', { id: 'n-drop', name: 'drop' }, [['', 'no'], ['before', 'before the call is applied'], ['after', 'after it: the answer is lost']].map(([v, label]) => h('option', { value: v }, label)))),
      check('halfBody', 'The answer breaks off in the middle'),
      check('applied', 'Status and delay come after the effect'),
      check('failWork', 'The work request fails'),
      field('Note', 'note', { placeholder: 'shown in the log' }, ''))),
    h('p', {}, h('button', { type: 'submit', class: 'main' }, 'Add the fault')));
}

function denialForm(page) {
  const operations = page.cache.use('/operations', page.status.assets) ?? [];
  const types = [...new Set(operations.map((o) => o.resource).filter(Boolean))].sort();
  return h('form', { class: 'group', key: 'denial-form', data: { do: 'add-denial', still: `denial ${types.length}` }, 'aria-labelledby': 'h-denial' },
    h('h2', { id: 'h-denial' }, 'Take a permission away'),
    h('div', { class: 'fields-grid' },
      h('div', { class: 'field' }, h('label', { for: 'd-verb' }, 'Weakest verb that is gone'),
        h('select', { id: 'd-verb', name: 'verb' }, ['inspect', 'read', 'use', 'manage'].map((v) => h('option', { value: v }, v)))),
      h('div', { class: 'field' }, h('label', { for: 'd-type' }, 'Resource type'),
        h('input', { id: 'd-type', name: 'resourceType', type: 'text', list: 'resource-types', placeholder: 'any', autocomplete: 'off' })),
      h('datalist', { id: 'resource-types' }, types.map((t) => h('option', { value: t }))),
      h('div', { class: 'field' }, h('label', { for: 'd-principal' }, 'Principal'), h('input', { id: 'd-principal', name: 'principal', type: 'text', placeholder: 'anybody', autocomplete: 'off' })),
      h('div', { class: 'field' }, h('label', { for: 'd-compartment' }, 'Compartment'), h('input', { id: 'd-compartment', name: 'compartment', type: 'text', placeholder: 'any', autocomplete: 'off' })),
      h('div', { class: 'field' }, h('label', { for: 'd-operation' }, 'Operation'), h('input', { id: 'd-operation', name: 'operation', type: 'text', list: 'operations', placeholder: 'any', autocomplete: 'off' }))),
    h('p', { class: 'quiet' }, 'Refused calls are answered 404, as in OCI. Lists need inspect, reads need read.'),
    h('p', {}, h('button', { type: 'submit', class: 'main' }, 'Take it away')));
}

/** valuesOf is what is filled in, with numbers as numbers; a dot in a name leads into an object. */
function valuesOf(form) {
  const values = {};
  const put = (name, value) => {
    const [outer, inner] = name.split('.');
    if (inner) values[outer] = { ...values[outer], [inner]: value };
    else values[outer] = value;
  };
  for (const input of form.elements) {
    if (!input.name) continue;
    if (input.type === 'checkbox') {
      if (input.checked) put(input.name, true);
    } else if (input.value.trim() !== '') {
      put(input.name, input.type === 'number' ? Number(input.value) : input.value.trim());
    }
  }
  return values;
}

on('preset', async (element, event, page) => {
  await post('/faults', presets[element.dataset.preset]);
  page.say(`In force: ${element.dataset.preset.toLowerCase()}.`);
});

on('add-fault', async (form, event, page) => {
  const fault = valuesOf(form);
  if (!['status', 'delay', 'drop', 'halfBody', 'failWork', 'budget'].some((effect) => fault[effect])) {
    page.say('Say what happens: a status, a delay, a dropped connection, half an answer, a failing work request or a budget.', true);
    form.elements.status.focus();
    return;
  }
  await post('/faults', fault);
  form.reset();
  page.say('The fault is in force.');
});

on('add-denial', async (form, event, page) => {
  await post('/denials', valuesOf(form));
  form.reset();
  page.say('The permission is gone.');
});

on('remove', async (element, event, page) => {
  await remove(element.dataset.path);
  page.say(`${element.dataset.what} is removed.`.replace(/^All (\w+) is/, 'All $1 are'));
});
