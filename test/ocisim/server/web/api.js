// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Requests to the admin API.

/** Refused is an answer that is no success. */
export class Refused extends Error {}

async function request(method, path, body, timeout) {
  const response = await fetch(path, {
    method,
    cache: 'no-store',
    headers: body === undefined ? {} : { 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(timeout),
  });
  const text = await response.text();
  if (!response.ok) {
    let message = text;
    try {
      message = JSON.parse(text).error ?? text;
    } catch {
      // Not JSON: the text says it.
    }
    throw new Refused(`${response.status}: ${message}`);
  }
  return text === '' ? null : JSON.parse(text);
}

export const get = (path, timeout = 20000) => request('GET', path, undefined, timeout);
export const post = (path, body) => request('POST', path, body ?? {}, 20000);
export const remove = (path) => request('DELETE', path, undefined, 20000);

/** address writes a path with a query; lists repeat their key, and what is empty is left out. */
export function address(path, query) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const v of [value].flat()) {
      if (v !== '' && v !== null && v !== undefined && v !== false) q.append(name, v);
    }
  }
  const text = q.toString();
  return text === '' ? path : `${path}?${text}`;
}

/**
 * Cache holds answers that a view shows. A view asks for what it needs each time it is drawn; the cache answers with
 * what it has, and fetches again when the revision is another one. An answer that is no longer asked for is dropped.
 */
export class Cache {
  #entries = new Map();
  #arrived;
  #failed;

  constructor(arrived, failed) {
    this.#arrived = arrived;
    this.#failed = failed;
  }

  /** use returns the last answer, or undefined before the first one. */
  use(path, revision) {
    let entry = this.#entries.get(path);
    if (!entry) {
      entry = { loading: false };
      this.#entries.set(path, entry);
    }
    entry.used = true;
    if (entry.revision !== revision && !entry.loading) this.#load(path, entry, revision);
    return entry.value;
  }

  async #load(path, entry, revision) {
    entry.loading = true;
    try {
      entry.value = await get(path);
      entry.revision = revision;
      this.#arrived();
    } catch (problem) {
      this.#failed(problem);
    } finally {
      entry.loading = false;
    }
  }

  /** sweep forgets what was not used since the last sweep. */
  sweep() {
    for (const [path, entry] of this.#entries) {
      if (!entry.used && !entry.loading) this.#entries.delete(path);
      entry.used = false;
    }
  }

  /** expire makes everything be fetched again; until then the old answers stay. */
  expire() {
    for (const entry of this.#entries.values()) entry.revision = undefined;
  }
}
