// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// What buttons and forms do. Elements name their action in data-do, so that they may come and go.

/** actions by name; each is called with the element, the event and the page. */
export const actions = new Map();

/** on says what an action does. */
export function on(name, run) {
  actions.set(name, run);
}
