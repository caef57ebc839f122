#!/bin/bash
# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0
#
# align-modules.sh: give the main module and test/cluster/tools the same versions of what both need, the newer one of the
# two, so that the build cache serves both: a cold build of binaries and control plane compiles client-go once.
set -euo pipefail
cd "$(dirname "$0")/.."

versions() { (cd "$1" && go list -m -f '{{if not .Main}}{{.Path}} {{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}' all | grep ' v'); }

# raise DIR OTHER: in DIR, require what its go.mod names in the version that OTHER uses, where that one is newer.
raise() {
  local newer
  newer=$(join <(versions "$1" | sort -k1,1) <(versions "$2" | sort -k1,1) | while read -r path have want; do
    if [[ $have != "$want" && $(printf '%s\n' "$have" "$want" | sort -V | tail -1) == "$want" ]] && grep -q "^	$path v" "$1/go.mod"; then
      echo "$path@$want"
    fi
  done)
  [[ -n $newer ]] || return 0
  # shellcheck disable=SC2086 # one argument per module
  (cd "$1" && go get $newer && go mod tidy)
}

for _ in 1 2 3; do
  before=$(cat go.mod test/cluster/tools/go.mod)
  raise . test/cluster/tools
  raise test/cluster/tools .
  [[ $before != "$(cat go.mod test/cluster/tools/go.mod)" ]] || break
done
