// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Making and updating elements. Everything that comes from the region goes in as text, never as markup.

/**
 * h makes an element. Attributes that are null, undefined or false are left out; data is for data-… attributes; key
 * tells morph which element among its siblings this one is.
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'data') {
      for (const [key, datum] of Object.entries(value)) {
        if (datum !== null && datum !== undefined) element.dataset[key] = datum;
      }
    } else if (name === 'key') {
      element.dataset.key = value;
    } else {
      element.setAttribute(name, value === true ? '' : value);
    }
  }
  element.append(...nodes(children));
  return element;
}

/** nodes flattens lists and drops what is not there. */
export function nodes(children) {
  const list = [];
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === '') continue;
    list.push(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return list;
}

/**
 * morph makes the children of an element equal to a list of new ones, and keeps the old elements where it can: so focus,
 * selection, scroll position and what was typed survive an update.
 */
export function morph(parent, children) {
  const list = nodes([children]);
  const wanted = new Set();
  for (const node of list) if (keyOf(node)) wanted.add(keyOf(node));
  const known = new Map();
  for (const child of parent.children) if (keyOf(child)) known.set(keyOf(child), child);

  let at = parent.firstChild;
  const dropOld = () => {
    while (at && keyOf(at) && !wanted.has(keyOf(at))) at = remove(at);
  };
  for (const node of list) {
    dropOld();
    const key = keyOf(node);
    const match = key ? known.get(key) : at && !keyOf(at) ? at : null;
    if (!match || !alike(match, node)) {
      parent.insertBefore(node, at);
      continue;
    }
    if (match === at) at = at.nextSibling;
    else parent.insertBefore(match, at);
    update(match, node);
  }
  while (at) at = remove(at);
}

function remove(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.dataset.key : undefined;
}

function alike(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName;
}

function update(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.dataset.still !== undefined) { // a form: what is in it is the user's, unless the page wants it filled anew
    if (fresh.dataset.still !== old.dataset.still) old.replaceWith(fresh);
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  morph(old, [...fresh.childNodes]);
}
