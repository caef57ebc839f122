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
if ! "$(dirname "$0")/debian.sh" nftables; then
  echo "There is no nft, which kube-proxy needs" >&2
  exit 1
fi
