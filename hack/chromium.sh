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
if ! "$(dirname "$0")/debian.sh" chromium; then # about 80 MB
  printf '\033[1;31m==> NOT TESTED: the web page of the simulator. There is no Chromium\033[0m\n' >&2
fi
