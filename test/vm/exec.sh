#!/bin/bash
# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0
#
# For go test -exec: exec.sh TEST-BINARY ARGUMENTS… runs a test binary, linked statically, in the guest of build.sh, as
# root, with VM_TEST=1. Its exit status is that of the test; 125 means that the guest did not answer.
set -euo pipefail
guest=$("$(dirname "$0")/build.sh")
job=$(mktemp -d)
trap 'rm -rf "$job"' EXIT
cp "$1" "$job/test.bin"
shift
{
	echo '#!/bin/sh'
	echo 'export VM_TEST=1 TMPDIR=/scratch'
	printf 'exec ./test.bin'
	printf ' %q' "$@"
	echo
} >"$job/run"
chmod 755 "$job/run"
truncate -s 2G "$job/scratch.img"
timeout "${VM_TIMEOUT:-600}" "$guest/linux.uml" ubd0="$job/cow,$guest/root.ext4" ubd1="$job/scratch.img" root=/dev/ubda rootfstype=ext4 rw \
	init=/guest-init hostfs="$job" mem=1024M con=null con0=null,fd:1 ssl=null quiet loglevel=3 uml_dir="$job/" umid=guest </dev/null 2>"$job/errors" || true
if [ ! -s "$job/status" ]; then
	echo "test/vm: the guest did not answer" >&2
	tail -20 "$job/errors" >&2
	exit 125
fi
exit "$(cat "$job/status")"
