#!/bin/bash
# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the scripts of src/ with the OCI TypeScript SDK, as it is published, against the binary ocisim:
#
#     test/ocisim/typescript/run.sh [OCISIM]      # default bin/ocisim, as make build leaves it
#
# The packages are installed once per version of package-lock.json, into the user's cache directory.
set -euo pipefail
ocisim=$(realpath "${1:-$(dirname "$0")/../../../bin/ocisim}")
cd "$(dirname "$0")"

missing() {
	printf '\033[1;33mNOT TESTED: the OCI TypeScript SDK against the simulator. It needs Node.js 20 or newer and npm; %s.\033[0m\n' "$1"
	exit 0
}
command -v node >/dev/null || missing "there is no node"
command -v npm >/dev/null || missing "there is no npm"
node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' || missing "this is $(node --version)"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/oci-ccm-tools/ocisim-typescript-$(sha256sum package-lock.json | cut -c1-16)
if [ ! -d "$cache" ]; then
	echo "installing the packages into $cache"
	mkdir -p "$(dirname "$cache")"
	fresh=$(mktemp -d "$cache.XXXXXX")
	cp package.json package-lock.json .npmrc "$fresh"
	(cd "$fresh" && npm ci --ignore-scripts --no-audit --no-fund) || { rm -rf "$fresh"; exit 1; }
	mv -T "$fresh" "$cache" || rm -rf "$fresh" # another run was faster
fi
rm -rf node_modules dist
ln -s "$cache/node_modules" node_modules
node_modules/.bin/tsc --project .

dir=$(mktemp -d)
"$ocisim" serve --seed world.yaml --dir "$dir" --duration '*=10ms-50ms' \
	--listen 127.0.0.1:0 --proxy 127.0.0.1:0 --metadata 127.0.0.1:0 --admin 127.0.0.1:0 \
	--proxymux 127.0.0.1:0 >"$dir/out" 2>"$dir/err" &
pid=$!
trap 'kill "$pid" 2>/dev/null || true; rm -rf "$dir"' EXIT
until grep -q '^admin API' "$dir/out"; do
	kill -0 "$pid" 2>/dev/null || { echo "ocisim did not start:"; cat "$dir/err"; exit 1; }
	sleep 0.05
done
row() { sed -n "s/^ *$1 *//p" "$dir/out"; }

# From here on it is what docs/simulator.md tells users to do.
unset http_proxy https_proxy no_proxy # Node.js prefers them to those in capitals
OCISIM_ADMIN=$(row 'admin API')
OCISIM_ENDPOINT=$(row endpoint)
OCI_METADATA_BASE_URL=$(row 'export OCI_METADATA_BASE_URL=')
OCISIM_PROXYMUX=$(row 'workload identity')
export OCISIM_ADMIN OCISIM_ENDPOINT OCI_METADATA_BASE_URL OCISIM_PROXYMUX
eval "$("$ocisim" env --admin "${OCISIM_ADMIN#http://}" --user script)"
export HOME=$dir # the SDK prefers an ~/.oci/config to OCI_CONFIG_FILE

preload=()
if ! node -e 'process.exit(process.allowedNodeEnvironmentFlags.has("--use-env-proxy") ? 0 : 1)'; then
	preload=(--import ./env-proxy.mjs --disable-warning=UNDICI-EHPA)
fi
# One process for all: loading the SDK takes as long as the calls.
for script in dist/*.test.js; do echo "import \"../$script\";"; done >dist/all.js
node "${preload[@]}" --test-reporter=spec dist/all.js
