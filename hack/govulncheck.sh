#!/bin/bash
# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0
#
# govulncheck.sh BINARY VERSION: run govulncheck if its vulnerability database can be reached; say so if not.
# GOVULNDB names another database (govulncheck's own variable).
set -euo pipefail
bin=$1 version=$2

if [[ ! -x $bin ]]; then
  echo "==> building govulncheck $version once"
  tmp=$(mktemp -d)
  GOBIN=$tmp go install "golang.org/x/vuln/cmd/govulncheck@$version"
  mkdir -p "$(dirname "$bin")"
  mv "$tmp/govulncheck" "$bin"
  rmdir "$tmp"
fi
# -version asks the database for its date, so it tells whether the database answers.
if ! timeout 20 "$bin" -version >/dev/null 2>&1; then
  echo "==> govulncheck: left out, its vulnerability database cannot be reached from here (GOVULNDB names another one)"
  exit 0
fi
echo "==> govulncheck $version"
"$bin" ./...
