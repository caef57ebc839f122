#!/bin/bash
# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0
#
# nodetools.sh: see to it that there is what nodes of make test-node need of the machine: xfsprogs, and a C compiler with libseccomp for runc. What is
# missing is installed with apt, as root; where that is not possible, it says so and fails.
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin
missing=()
command -v mkfs.xfs >/dev/null || missing+=(xfsprogs)
command -v mkfs.ext4 >/dev/null || missing+=(e2fsprogs)
command -v ip >/dev/null || missing+=(iproute2)
command -v gcc >/dev/null || missing+=(gcc libc6-dev)
command -v pkg-config >/dev/null || missing+=(pkg-config)
if ! command -v pkg-config >/dev/null || ! pkg-config --exists libseccomp; then
  missing+=(libseccomp-dev)
fi
if [[ ${#missing[@]} -eq 0 || $(id -u) -ne 0 ]]; then
  exit 0 # without root the tests leave themselves out, and say why
fi
why="only with apt"
if command -v apt-get >/dev/null; then
  echo "==> installing Debian's ${missing[*]} once"
  log=$(mktemp)
  if { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}"; } >"$log" 2>&1; then
    rm -f "$log"
    exit 0
  fi
  why=$(tail -1 "$log")
fi
printf 'There is no %s, which the nodes need, and it could not be installed: %s\n' "${missing[*]}" "$why" >&2
exit 1
