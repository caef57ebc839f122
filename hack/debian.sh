#!/bin/bash
# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0
#
# debian.sh PACKAGE…: install packages of Debian, as root, with apt. Where that is not possible it prints why, on standard error, and fails.
set -euo pipefail

if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
  echo "only root can install it, with apt: $*" >&2
  exit 1
fi
echo "==> installing Debian's $* once" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"; } >"$log" 2>&1; then
  tail -1 "$log" >&2
  exit 1
fi
