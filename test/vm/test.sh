#!/bin/bash
# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0
#
# test.sh 'PACKAGE…' … [-- FLAG…] runs those tests of packages that are for the guest of build.sh (TestLIO…, TestVM…) there, as root, with
# VM_TEST=1. The packages of one argument share a guest, and run one after the other; the guests run side by side, each on one processor.
# Flags are those of test binaries (-test.run=TestVMISCSI). VM_BIN names binaries of the product; the tests find them in the folder
# that VM_BIN is for them. The exit status is 1 if a test failed, and 125 if a guest did not answer. With VM_OPTIONAL=1 it is 0 on
# machines that cannot have a guest, after a line that says so.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
guests=()
while [ $# -gt 0 ]; do
	if [ "$1" = -- ]; then
		shift
		break
	fi
	guests+=("$1")
	shift
done
status=0
guest=$("$here/build.sh") || status=$?
if [ $status -eq 3 ] && [ -n "${VM_OPTIONAL:-}" ]; then
	printf '\033[1;31m==> NOT TESTED: iSCSI, multipath and hot-plugged disks: this machine cannot have a guest\033[0m\n' >&2
	exit 0
fi
[ $status -eq 0 ] || exit $status
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run JOB FLAG… runs the test binaries of a folder, and leaves the status there.
run() {
	local job=$1
	shift
	{
		cat <<-'RUN'
			#!/bin/sh
			export VM_TEST=1 VM_BIN=/job/bin TMPDIR=/scratch
			status=0
			for binary in ./*.test; do
		RUN
		printf '\techo "==> ${binary##*/}"\n\t$binary -test.v -test.timeout=15m -test.run='\''^(TestLIO|TestVM)'\'
		[ $# -eq 0 ] || printf ' %q' "$@"
		printf ' || status=1\ndone\nexit $status\n'
	} >"$job/run"
	chmod 755 "$job/run"
	mkdir "$job/bin"
	for binary in ${VM_BIN:-}; do cp "$binary" "$job/bin/"; done
	truncate -s 2G "$job/scratch.img"
	timeout "${VM_TIMEOUT:-1200}" "$guest/linux.uml" ubd0="$job/cow,$guest/root.ext4" ubd1="$job/scratch.img" root=/dev/ubda rootfstype=ext4 rw \
		init=/guest-init hostfs="$job" mem=1024M con=null con0=null,fd:1 ssl=null quiet loglevel=3 uml_dir="$job/" umid=guest </dev/null 2>"$job/errors" || true
	[ -s "$job/status" ] || {
		echo 125 >"$job/status"
		echo "test/vm: the guest did not answer"
		tail -20 "$job/errors"
	}
}

status=0
for i in "${!guests[@]}"; do
	mkdir "$work/$i"
	# Linked statically: a guest has no libraries of the compiler's.
	CGO_ENABLED=0 go test -c -o "$work/$i/" ${guests[$i]}
	run "$work/$i" "$@" >"$work/$i/output" &
done
wait
for i in "${!guests[@]}"; do
	cat "$work/$i/output"
	[ "$(cat "$work/$i/status")" -eq 0 ] || status=$(cat "$work/$i/status")
done
exit "$status"
