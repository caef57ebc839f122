#!/bin/sh
# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0
#
# The command for ocisim's iSCSI body on Linux: lio.sh attach|detach|resize. It drives the kernel's target (LIO) through
# configfs, and needs root, modprobe, ip and, where the initiator runs on the same machine, iscsiadm. Attachments of type
# iscsi become targets; the others become SCSI disks of this machine. What it finds in its environment is documented in
# package bodies. It starts few programs: in a guest each one takes a tenth of a second.
set -eu
config=/sys/kernel/config
target=$config/target
if [ ! -d $target/core ]; then
	modprobe -a configfs target_core_mod target_core_file
	mountpoint -q $config || mount -t configfs configfs $config
fi
store=$target/core/fileio_0/$OCISIM_SERIAL

# need loads modules that are not there.
need() {
	for module; do [ -d "/sys/module/$module" ] || modprobe "$module"; done
}

# One backing store for all attachments of a volume.
back() {
	[ ! -d "$store" ] || return 0
	mkdir -p "$store"
	echo "fd_dev_name=$OCISIM_FILE,fd_dev_size=$OCISIM_BYTES" >"$store/control"
	echo 1 >"$store/enable"
	echo "$OCISIM_SERIAL" >"$store/wwn/vpd_unit_serial"
}

# The target's name is that of the attachment: a shared volume has a target for each.
iscsi() {
	need iscsi_target_mod
	group=$target/iscsi/$OCISIM_IQN/tpgt_1
	lun=$group/lun/lun_$OCISIM_LUN
	mkdir -p "$lun"
	[ -e "$lun/volume" ] || ln -s "$store" "$lun/volume"
	echo 0 >"$group/attrib/authentication"
	echo 1 >"$group/attrib/generate_node_acls"
	if [ "$OCISIM_READ_ONLY" = true ]; then echo 1; else echo 0; fi >"$group/attrib/demo_mode_write_protect"
	if [ -n "${OCISIM_CHAP_USER:-}" ]; then
		echo 1 >"$group/attrib/authentication"
		# Without a newline, which would become part of the name.
		printf %s "$OCISIM_CHAP_USER" >"$group/auth/userid"
		printf %s "$OCISIM_CHAP_SECRET" >"$group/auth/password"
	fi
	for portal in $OCISIM_PORTALS; do
		ip addr replace "${portal%:*}/32" dev lo
		mkdir -p "$group/np/$portal"
	done
	echo 1 >"$group/enable"
}

# A loopback target needs a name of its own: a WWN, made of the first nine digits of the serial.
digits=${OCISIM_SERIAL%"${OCISIM_SERIAL#?????????}"}
loopback=$target/loopback/naa.6001405$digits/tpgt_1

disk() {
	need tcm_loop sd_mod
	# For a rule of udev that makes consistent device paths: which one the disk with this serial has.
	if [ -n "$OCISIM_DEVICE" ]; then
		[ -d /run/oracleoci ] || mkdir -p /run/oracleoci
		echo "${OCISIM_DEVICE##*/}" >"/run/oracleoci/$OCISIM_SERIAL"
	fi
	mkdir -p "$loopback"
	nexus=
	read -r nexus 2>/dev/null <"$loopback/nexus" || true
	[ -n "$nexus" ] || echo "naa.6001406$digits" >"$loopback/nexus"
	mkdir -p "$loopback/lun/lun_0"
	[ -e "$loopback/lun/lun_0/volume" ] || ln -s "$store" "$loopback/lun/lun_0/volume"
}

# remove takes away a target group, its target, and the backing store if nobody else uses it. All of it may be gone.
remove() {
	for lun in "$1"/lun/lun_*; do
		[ -d "$lun" ] || continue
		rm -f "$lun/volume"
		rmdir "$lun"
	done
	for portal in "$1"/np/*; do [ ! -d "$portal" ] || rmdir "$portal"; done
	[ ! -d "$1" ] || rmdir "$1"
	[ ! -d "${1%/*}" ] || rmdir "${1%/*}"
	[ ! -d "$store" ] || rmdir "$store" 2>/dev/null || true
}

case $1 in
attach)
	back
	if [ "$OCISIM_TYPE" = iscsi ]; then iscsi; else disk; fi
	;;
detach)
	if [ "$OCISIM_TYPE" = iscsi ]; then remove "$target/iscsi/$OCISIM_IQN/tpgt_1"; else remove "$loopback"; fi
	;;
resize)
	echo "fd_dev_size=$OCISIM_BYTES" >"$store/control"
	if [ "$OCISIM_TYPE" = iscsi ]; then
		! command -v iscsiadm >/dev/null || iscsiadm -m node -T "$OCISIM_IQN" -R >/dev/null 2>&1 || true # nobody has logged in here
	fi
	;;
*)
	echo "lio.sh attach|detach|resize, not $1" >&2
	exit 2
	;;
esac
