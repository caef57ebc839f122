#!/bin/bash
# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0
#
# test.sh PACKAGE… [-- FLAG…] runs those tests of packages that are for the guest of build.sh (TestLIO…, TestVM…) there, as root, with
# VM_TEST=1: all packages one after the other in one guest, since booting costs seconds. Flags are those of test binaries
# (-test.run=TestVMISCSI). The folder bin beside the test binaries has what VM_BIN of the caller names: the product's binaries.
# The exit status is 1 if a test failed, and 125 if the guest did not answer. With VM_OPTIONAL=1 it is 0 on machines that cannot have a
# guest, after a line that says so.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
packages=()
while [ $# -gt 0 ]; do
	if [ "$1" = -- ]; then
		shift
		break
	fi
	packages+=("$1")
	shift
done
status=0
guest=$("$here/build.sh") || status=$?
if [ $status -eq 3 ] && [ -n "${VM_OPTIONAL:-}" ]; then
	printf '\033[1;31m==> NOT TESTED: iSCSI, multipath and hot-plugged disks: this machine cannot have a guest\033[0m\n' >&2
	exit 0
fi
[ $status -eq 0 ] || exit $status
job=$(mktemp -d)
trap 'rm -rf "$job"' EXIT
mkdir "$job/bin"
for binary in ${VM_BIN:-}; do cp "$binary" "$job/bin/"; done
# Linked statically: the guest has no compiler's libraries.
CGO_ENABLED=0 go test -c -o "$job/" "${packages[@]}"
{
	cat <<'RUN'
#!/bin/sh
export VM_TEST=1 VM_BIN=/job/bin TMPDIR=/scratch
status=0
for binary in ./*.test; do
RUN
	printf '\techo "==> ${binary##*/}"\n\t$binary -test.v -test.timeout=10m -test.run='\''^(TestLIO|TestVM)'\'
	[ $# -eq 0 ] || printf ' %q' "$@"
	printf ' || status=1\ndone\nexit $status\n'
} >"$job/run"
chmod 755 "$job/run"
truncate -s 2G "$job/scratch.img"
timeout "${VM_TIMEOUT:-900}" "$guest/linux.uml" ubd0="$job/cow,$guest/root.ext4" ubd1="$job/scratch.img" root=/dev/ubda rootfstype=ext4 rw \
	init=/guest-init hostfs="$job" mem=1024M con=null con0=null,fd:1 ssl=null quiet loglevel=3 uml_dir="$job/" umid=guest </dev/null 2>"$job/errors" || true
if [ ! -s "$job/status" ]; then
	echo "test/vm: the guest did not answer" >&2
	tail -20 "$job/errors" >&2
	exit 125
fi
exit "$(cat "$job/status")"
