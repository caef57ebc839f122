// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// How values read.

const plain = new Intl.NumberFormat('en-US');

/** count writes a number with a noun: "1 backend", "2,000 backends". */
export function count(n, one, many = `${one}s`) {
  return `${plain.format(n)} ${n === 1 ? one : many}`;
}

export function number(n) {
  return plain.format(n);
}

/** clockTime is the time of day in UTC, as OCI logs have it. */
export function clockTime(date, milliseconds = false) {
  const text = date.toISOString();
  return text.slice(11, milliseconds ? 23 : 19);
}

/** moment is a date and a time in UTC. */
export function moment(text) {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? String(text) : `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** took is a duration that Go wrote in nanoseconds. */
export function took(nanoseconds) {
  const ms = nanoseconds / 1e6;
  if (ms < 1) return '<1 ms';
  if (ms < 10000) return `${plain.format(Math.round(ms))} ms`;
  return `${plain.format(Math.round(ms / 100) / 10)} s`;
}

/** shortId is the end of an OCID: its beginning is the same for all of a kind. */
export function shortId(id) {
  return id.length > 20 ? `…${id.slice(-12)}` : id;
}

/** principal is a caller in a few characters. */
export function principal(id, names) {
  if (!id) return 'nobody';
  if (names?.[id]?.name) return names[id].name;
  const match = /^ocid1\.([a-z]+)\.[^.]*\.[^.]*\.(.+)$/.exec(id);
  return match ? `${match[1]} ${shortId(match[2])}` : id;
}

const protocols = { 1: 'ICMP', 6: 'TCP', 17: 'UDP', 58: 'ICMPv6', all: 'All' };

export function protocol(value) {
  return protocols[value] ?? `Protocol ${value}`;
}

function range(r) {
  return r.min === r.max ? String(r.min) : `${r.min}–${r.max}`;
}

/** ports are the ports or ICMP types of a security rule. */
export function ports(rule) {
  const options = rule.tcpOptions ?? rule.udpOptions;
  const icmp = rule.icmpOptions;
  if (icmp) return icmp.code === null || icmp.code === undefined ? `type ${icmp.type}` : `type ${icmp.type}, code ${icmp.code}`;
  const parts = [];
  if (options?.destinationPortRange) parts.push(range(options.destinationPortRange));
  if (options?.sourcePortRange) parts.push(`from port ${range(options.sourcePortRange)}`);
  return parts.length > 0 ? parts.join(', ') : 'all';
}

/** words turns a JSON field name into words: "timeCreated" into "Time created". */
export function words(name) {
  const text = name.replace(/Ids?$/, '').replace(/([a-z0-9])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`);
  return capital(text.replace(/\b(vcn|vnic|nsg|cidr|dns|ip|ipv6|dhcp|kms|ocid|url|mac)\b/gi, (word) => (/^ipv6$/i.test(word) ? 'IPv6' : word.toUpperCase())));
}

/** capital makes the first letter a capital. */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** mood sorts lifecycle states: good, busy, bad, or over. */
export function mood(state) {
  switch (state) {
    case 'RUNNING': case 'ACTIVE': case 'AVAILABLE': case 'ATTACHED': case 'ASSIGNED': case 'SUCCEEDED': case 'OK':
    case 'COMPLETED':
      return 'good';
    case 'FAILED': case 'FAULTY': case 'CRITICAL': case 'NEEDS_ATTENTION':
      return 'bad';
    case 'TERMINATED': case 'DELETED': case 'STOPPED': case 'DETACHED': case 'INACTIVE': case 'CANCELED':
      return 'over';
    case 'WARNING':
      return 'busy';
    case 'UNKNOWN':
      return 'none';
    default:
      return 'busy';
  }
}
