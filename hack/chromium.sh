#!/bin/bash
# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0
#
# chromium.sh: see to it that the tests of the simulator's web page find a Chromium. Where there is none it is installed with apt, as root; where that
# is not possible, it says that these tests will be left out.
set -euo pipefail

for name in chromium chromium-browser google-chrome google-chrome-stable; do # those that test/ocisim/webtest looks for
  if command -v "$name" >/dev/null; then
    exit 0
  fi
done
why="it has to be installed by hand: only root can do it, and only with apt"
if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
  echo "==> installing Debian's chromium once (about 80 MB)"
  log=$(mktemp)
  if { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 chromium; } >"$log" 2>&1; then
    rm -f "$log"
    exit 0
  fi
  why=$(tail -1 "$log")
fi
printf '\033[1;31m==> NOT TESTED: the web page of the simulator. There is no Chromium: %s\033[0m\n' "$why" >&2
