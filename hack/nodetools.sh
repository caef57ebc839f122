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
if ! "$(dirname "$0")/debian.sh" "${missing[@]}"; then
  echo "There is no ${missing[*]}, which the nodes need" >&2
  exit 1
fi
