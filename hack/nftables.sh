#!/bin/bash
# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0
#
# nftables.sh: see to it that there is the program nft, which kube-proxy uses. Where there is none it is installed with apt, as root; where that is
# not possible, it says so and fails.
set -euo pipefail

if [[ -x /usr/sbin/nft || -x /sbin/nft || -x /usr/bin/nft ]]; then
  exit 0
fi
if [[ $(id -u) -ne 0 ]]; then
  exit 0 # the tests leave themselves out, and say why
fi
why="only with apt"
if command -v apt-get >/dev/null; then
  echo "==> installing Debian's nftables once (less than 1 MB)"
  log=$(mktemp)
  if { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 nftables; } >"$log" 2>&1; then
    rm -f "$log"
    exit 0
  fi
  why=$(tail -1 "$log")
fi
printf 'There is no nft, which kube-proxy needs, and it could not be installed: %s\n' "$why" >&2
exit 1
