// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// The page: what is shown, what the server last said, and how the two are kept together.

import { Cache, Refused, address, get, post } from './api.js';
import { h, morph } from './dom.js';
import { clockTime } from './format.js';
import { actions, on } from './actions.js';
import { aging } from './resources.js';
import { views } from './views.js';

/** pace of the page, in milliseconds. */
const pace = { between: 500, firstRetry: 500, lastRetry: 8000, wait: 20000 };

/** page is the state that all views share. */
const page = {
  status: null, // last answer of /updates
  received: 0, // when that was, on the browser's monotonic clock
  route: { view: views[0], query: new URLSearchParams() },
  open: new Map(), // by key of a details element: whether it is open
  limits: new Map(), // by key of a list: how many rows it shows
  cache: null,
  draw,
  say,
  revision,
  isOpen: (key, otherwise = false) => page.open.get(key) ?? otherwise,
};
page.cache = new Cache(draw, (problem) => { if (problem instanceof Refused) say(problem.message, true); });

/** revision is another one whenever a resource of these kinds changed. */
function revision(kinds) {
  return page.status.kinds.filter((k) => kinds.includes(k.kind)).map((k) => k.revision).join(' ');
}

const main = document.getElementById('main');
let due = false;

/** draw brings the page up to date, once for all that happened since the last time. */
function draw() {
  if (due) return;
  due = true;
  queueMicrotask(() => {
    due = false;
    drawNow();
  });
}

function drawNow() {
  const { view, query } = page.route;
  document.title = `${view.title} · ocisim`;
  morph(document.getElementById('nav'), navigation());
  if (!page.status) {
    morph(main, h('p', { class: 'empty' }, 'Waiting for the simulator …'));
    return;
  }
  const { name, realm, tenancy } = page.status.region;
  morph(document.getElementById('region'), h('span', { title: `Realm ${realm}, tenancy ${tenancy}` }, name));
  morph(main, [h('h1', { key: 'title', tabindex: '-1' }, view.title), view.draw(page, query)]);
  page.cache.sweep();
  tick();
}

function navigation() {
  return h('ul', {}, views.map((view) => {
    const badge = page.status ? view.badge?.(page.status) : null;
    return h('li', { key: view.path }, h('a', {
      href: `#/${view.path}`,
      'aria-current': view === page.route.view ? 'page' : null,
    }, view.title, badge ? [' ', h('span', { class: `count ${badge.alarm ? 'alarm' : ''}` }, badge.text)] : null));
  }));
}

function tick() {
  if (!page.status || lostAt) return;
  const now = new Date(Date.parse(page.status.now) + performance.now() - page.received);
  const clock = document.getElementById('clock');
  clock.textContent = `${clockTime(now)} UTC`;
  clock.dateTime = now.toISOString();
  const { ahead } = page.status;
  document.getElementById('ahead').textContent = ahead === '0s' ? '' : `(${ahead.replace(/(\D)0s$/, '$1').replace(/(\D)0m$/, '$1')} ahead)`;
}

/** say tells the user what came of an action; screen readers hear it. */
function say(text, problem = false) {
  const news = document.getElementById('news');
  news.textContent = text;
  news.dataset.problem = problem;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { news.textContent = ''; }, problem ? 12000 : 5000);
}

function follow() {
  const [path, search] = location.hash.replace(/^#\/?/, '').split('?');
  const view = views.find((v) => v.path === path) ?? views[0];
  const changed = view !== page.route.view;
  page.route = { view, query: new URLSearchParams(search ?? '') };
  view.enter?.(page, page.route.query);
  drawNow();
  document.querySelector('#nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  if (changed) {
    window.scrollTo(0, 0);
    main.querySelector('h1')?.focus({ preventScroll: true });
  }
}

/** pause ends early when wake is called. */
let wake = () => {};
function pause(ms) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    wake = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

/** watch follows the server for as long as the page is there. */
async function watch() {
  let retry = 0;
  for (;;) {
    if (document.hidden) await pause(2 ** 30); // visibilitychange wakes it
    const since = retry === 0 ? page.status?.tag : '';
    let status;
    try {
      status = await get(address('/updates', { since, wait: `${pace.wait}ms` }), pace.wait + 10000);
    } catch {
      retry = Math.min(retry === 0 ? pace.firstRetry : retry * 2, pace.lastRetry);
      await lost(retry * (0.8 + 0.4 * Math.random()));
      continue;
    }
    if (retry > 0) page.cache.expire();
    retry = 0;
    took(status);
    await pause(pace.between);
  }
}

let assets = null;
let lostAt = null; // since when the simulator does not answer

function took(status) {
  page.status = status;
  page.received = performance.now();
  assets ??= status.assets;
  connection('live', 'Live');
  banner(assets === status.assets ? null : [
    'The simulator is another version now. ', h('button', { type: 'button', data: { do: 'reload' } }, 'Load its page'),
  ]);
  for (const view of views) view.arrived?.(page, view === page.route.view);
  draw();
}

async function lost(ms) {
  lostAt ??= new Date();
  connection('lost', 'Connection lost');
  const end = performance.now() + ms;
  banner([
    `The simulator has not answered since ${clockTime(lostAt)} UTC. `,
    page.status ? 'The page shows what was there before. ' : '',
    'It tries again by itself. ', h('button', { type: 'button', data: { do: 'retry' } }, 'Try now'),
  ]);
  await pause(end - performance.now());
}

function connection(state, text) {
  const element = document.getElementById('connection');
  if (element.dataset.state === state) return;
  const before = element.dataset.state;
  element.dataset.state = state;
  element.textContent = text;
  document.body.dataset.connection = state;
  if (state === 'live') lostAt = null;
  if (state === 'live' && before === 'lost') say('The simulator answers again.');
  if (state === 'lost') say('Connection lost.', true);
}

function banner(content) {
  const element = document.getElementById('banner');
  element.hidden = content === null;
  morph(element, content ?? []);
}

on('retry', () => wake());
on('reload', () => location.reload());
on('skip', (element, event) => {
  event.preventDefault();
  main.focus();
});
on('advance', async (element) => {
  await post('/clock/advance', { by: element.dataset.by });
  say(`The region's clock is ${element.dataset.by} further.`);
});
on('more', (element) => {
  page.limits.set(element.dataset.list, Number(element.dataset.limit));
  draw();
});

/** toggle opens and closes details: the page knows which are open, so that an update does not close them. */
function toggle(details, open) {
  page.open.set(details.dataset.key, open);
  drawNow();
}

document.addEventListener('click', (event) => {
  const target = event.target.closest('[data-do], summary');
  if (!target) return;
  const details = target.parentElement;
  if (target.matches('summary') && details.dataset.key) {
    event.preventDefault();
    toggle(details, !details.open);
    page.route.view.toggled?.(page, details.dataset.key, details.open);
  } else if (target.dataset.do && target.tagName !== 'FORM') {
    run(target, event);
  }
});

document.addEventListener('toggle', (event) => { // find in page opens details, too
  const { key } = event.target.dataset;
  if (key && page.isOpen(key, event.target.dataset.wasOpen !== undefined) !== event.target.open) toggle(event.target, event.target.open);
}, true);

for (const type of ['submit', 'input', 'change']) {
  document.addEventListener(type, (event) => {
    const form = event.target.closest('form[data-do]');
    if (!form) return;
    if (type === 'submit') event.preventDefault();
    const name = type === 'submit' ? form.dataset.do : form.dataset[type];
    if (name) run(form, event, name);
  });
}

async function run(element, event, name = element.dataset.do) {
  try {
    await actions.get(name)?.(element, event, page);
  } catch (problem) {
    say(problem instanceof Refused ? problem.message : 'The simulator does not answer.', true);
  }
}

document.addEventListener('held', draw);
document.addEventListener('visibilitychange', () => { if (!document.hidden) wake(); });
window.addEventListener('hashchange', follow);
setInterval(tick, 1000);
setInterval(() => {
  if (!document.hidden && page.route.view.groups?.some((group) => group.aging)) draw();
}, aging);
follow();
watch();
