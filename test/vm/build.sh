#!/bin/bash
# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds a Linux guest with an iSCSI initiator and target, for tests that this machine's kernel cannot run: user-mode
# Linux and a small root of Debian packages, in the user's cache directory, and prints where it is. No maintainer script
# runs. It needs apt, and kmod, e2fsprogs and dpkg of the host, which it installs as root; a second run reuses what is there. The exit status is 3 where
# there can be no guest.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/oci-ccm-vm
key=$(cd "$here" && find . -type f ! -name test.sh ! -name '*.go' -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
guest=$cache/guest-$key
if [ -e "$guest/root.ext4" ]; then echo "$guest"; exit 0; fi
cannot() {
	echo "test/vm: $*" >&2
	exit 3
}
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || cannot "user-mode Linux is a program for Linux on x86-64"
export PATH=$PATH:/usr/sbin:/sbin
missing() { for tool in apt-get dpkg-deb depmod modprobe mke2fs; do command -v $tool >/dev/null || return 0; done; return 1; }
! missing || "$here/../../hack/debian.sh" kmod e2fsprogs || cannot "apt, dpkg, kmod and e2fsprogs are needed"
packages="busybox-static dash udev kmod mount util-linux e2fsprogs open-iscsi netbase iproute2 xfsprogs btrfs-progs multipath-tools dmsetup"
# What the closure brings along and nothing in the guest runs.
unused='^(perl|libperl|python3|libpython3|libicu72|dpkg_|tar_|coreutils|passwd|adduser|debconf|initramfs-tools|linux-base|klibc-utils|libklibc|gcc-12-base|libdb5|libgdbm|ucf|cpio_|libstdc\+\+6|sg3-utils_|libsqlite3-0|media-types|readline-common)'
# Rules of udev that name and hold disks. Every other one is tried for every event, and some start programs.
rules='^(50-udev-default|55-dm|56-dm-mpath|60-block|60-multipath|60-persistent-storage|60-persistent-storage-dm|68-del-part-nodes|95-dm-notify)\.rules$'
modules="sd_mod iscsi_tcp target_core_mod target_core_file iscsi_target_mod tcm_loop dm_mod dm_multipath dm_service_time dm_round_robin crc32c_generic md5 sha1_generic sha256_generic"

debs=$cache/packages
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$debs/partial" "$work/root" "$work/kernel"
: >"$work/status" # an empty machine: the whole closure is downloaded
echo "test/vm: downloading packages of Debian" >&2
apt-get -qq -o Dir::State::status="$work/status" -o Dir::Cache::archives="$debs/" -o APT::Sandbox::User=root \
	install --no-install-recommends -y -d $packages >/dev/null || cannot "packages of Debian 12 cannot be downloaded"
(cd "$debs" && { ls user-mode-linux_*.deb >/dev/null 2>&1 || apt-get -qq -o APT::Sandbox::User=root download user-mode-linux >/dev/null; }) ||
	cannot "Debian's user-mode-linux cannot be downloaded"

echo "test/vm: making the guest's root" >&2
root=$work/root
mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
for d in bin sbin lib lib64; do ln -s "usr/$d" "$root/$d"; done # as Debian's packages expect
for deb in "$debs"/*.deb; do
	name=$(basename "$deb")
	case $name in user-mode-linux_*) continue ;; esac
	! grep -qE "$unused" <<<"$name" || continue
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink --exclude='./usr/share/doc' --exclude='./usr/share/man' \
		--exclude='./usr/share/locale' --exclude='*/udev/hwdb.d' --exclude='./lib/systemd/system/*' --exclude='*/gconv/*'
done
for applet in $("$root/bin/busybox" --list); do
	[ -e "$root/usr/bin/$applet" ] || [ -e "$root/usr/sbin/$applet" ] || ln -s /bin/busybox "$root/usr/bin/$applet"
done
(cd "$root/usr/lib/udev/rules.d" && ls | grep -vE "$rules" | xargs -r rm -r)
cp -r "$here/etc/." "$root/etc/"
install -m 755 "$here/init" "$root/guest-init"
mkdir -p "$root"/{proc,sys,dev,run,tmp,mnt,root,job,etc/target,etc/multipath,var/lib/iscsi}
ln -sfn /proc/self/mounts "$root/etc/mtab"
ldconfig -r "$root"

dpkg-deb -x "$debs"/user-mode-linux_*.deb "$work/kernel"
version=$(ls "$work/kernel/usr/lib/uml/modules")
mkdir -p "$work/kernel/lib"
ln -sfn ../usr/lib/uml/modules "$work/kernel/lib/modules"
depmod -b "$work/kernel" "$version"
for module in $modules; do
	modprobe -d "$work/kernel" -S "$version" --show-depends "$module" 2>/dev/null | awk '$1 == "insmod" {print $2}' || true
done | sort -u | while read -r file; do
	install -D -m 644 "$file" "$root/usr/lib/modules/$version/${file#*/modules/"$version"/}"
done
cp "$work/kernel/usr/lib/uml/modules/$version"/modules.{order,builtin}* "$root/usr/lib/modules/$version/"
depmod -b "$root" "$version"

mkdir -p "$work/guest"
cp "$work/kernel/usr/bin/linux.uml" "$work/guest/linux.uml"
mke2fs -q -t ext4 -O ^has_journal -m 0 -N 12000 -d "$root" "$work/guest/root.ext4" 256M >/dev/null
rm -rf "$guest"
mv "$work/guest" "$guest"
echo "$guest"
