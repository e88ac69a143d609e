#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A real Debian system as a tree: its image boots to a login prompt under BIOS and UEFI,
# with no failed unit, as another instance than the source, which stays as it is.
. "$(dirname "$0")/../lib/lib.sh"
requires_root
requires python3 mmdebstrap qemu-system-x86_64 grub-mkimage mformat
[ -e /usr/share/OVMF/OVMF_CODE.fd ] || skip "ovmf is not installed"

kept=$CCSNAP_CACHE/debian.tar
if [ ! -e "$kept" ]; then
	mkdir -p "$CCSNAP_CACHE"
	"$top/tests/lib/make-debian-tree" "$T/src" || skip "mmdebstrap: no packages to be had"
	tar -C src --xattrs --acls --numeric-owner -cf "$kept.new" . && mv "$kept.new" "$kept"
else
	mkdir src
	tar -C src --xattrs --acls --numeric-owner -xpf "$kept"
fi
printf '0123456789abcdef0123456789abcdef\n' >src/etc/machine-id
echo seed >src/var/lib/systemd/random-seed
before=$(find src -printf '%p %m %U %G %s %T@ %C@\n' | sort | sha256sum)

capture name src --reset identity
expect_report '.tree.boots == ["bios", "uefi"] and .exit_code == 0'
expect_report '[.tree.reset[].path] | contains(["/etc/machine-id", "/var/lib/systemd/random-seed"])'
[ "$before" = "$(find src -printf '%p %m %U %G %s %T@ %C@\n' | sort | sha256sum)" ] ||
	fail "the source changed"
[ "$(look 'cat /etc/machine-id')" = "" ] && is_inside /etc/machine-id || fail "machine-id"
look 'cat /etc/fstab' | cmp - src/etc/fstab || fail "fstab"

# What image services look for in a GPT's protective MBR.
[ "$(xxd -s 446 -l 16 -p disk.raw)" = "00000200ee$(xxd -s 451 -l 3 -p disk.raw)01000000$(xxd \
	-s 458 -l 4 -p disk.raw)" ] || fail "protective MBR: $(xxd -s 446 -l 66 disk.raw)"
[ "$(xxd -s 462 -l 50 -p -c 50 disk.raw)" = "$(printf '00%.0s' {1..48})55aa" ] || fail "MBR"

for firmware in bios uefi; do
	python3 "$top/tests/lib/boot-image" "$image" --format=qcow2 --firmware=$firmware --run \
		'systemctl is-system-running --wait; systemctl --failed --plain --no-legend; \
		cat /etc/machine-id; getcap /usr/bin/ping' >booted || fail "does not boot: $(cat booted)"
	sed 's/^/  /' booted
	grep -qx running booted || fail "$firmware: not running"
	! grep -q 0123456789abcdef booted || fail "$firmware: the old machine-id"
	grep -q cap_net_raw booted || fail "$firmware: ping has lost its capability"
done
