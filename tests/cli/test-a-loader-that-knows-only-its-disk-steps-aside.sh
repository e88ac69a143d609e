#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A boot loader of the source that may know only its own disk is kept aside, ours boots;
# one that is signed stays; what else is on the ESP is copied whole.
. "$(dirname "$0")/../lib/lib.sh"
requires grub-mkimage mformat mtype
[ -e /usr/lib/grub/x86_64-efi/normal.mod ] || skip "GRUB's modules are not installed"

mkdir -p src/bin src/boot/efi/EFI/{BOOT,vendor}
cp /bin/true src/bin/sh
echo kernel >src/boot/vmlinuz-1.0
echo '# a stub' >src/boot/efi/EFI/vendor/grub.cfg
loader=src/boot/efi/EFI/BOOT/BOOTX64.EFI
grub-mkimage -O x86_64-efi -p /boot/grub -o $loader ext2 normal

le32() { # NUMBER
	printf "\\x%02x\\x%02x\\x%02x\\x%02x" $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24)) |
		xargs -0 printf '%b'
}
on_esp() { # FILE
	mtype -i "disk.raw@@$(partition_offset disk.raw 15)" "::/$1"
}
capture name src
expect_report '.tree.boots | contains(["uefi"])'
expect_report '.tree.edited | any(.path == "/boot/efi")'
on_esp EFI/BOOT/BOOTX64.EFI.of-source | cmp - $loader || fail "the source's loader"
! on_esp EFI/BOOT/BOOTX64.EFI | cmp -s - $loader || fail "the source's loader is on the path"
on_esp EFI/vendor/grub.cfg | cmp - src/boot/efi/EFI/vendor/grub.cfg || fail "not copied"

# Again, as when an image of ours is captured: no name is taken twice.
cp $loader src/boot/efi/EFI/BOOT/bootx64.efi.of-source
capture name src
on_esp EFI/BOOT/BOOTX64.EFI.of-source.1 | cmp - $loader || fail "the second one"
rm src/boot/efi/EFI/BOOT/bootx64.efi.of-source

# A table of certificates, as a signature adds it: entry 4 of the data directories.
at=$(($(od -An -tu4 -j60 -N4 $loader) + 24 + 112 + 4 * 8))
(le32 "$(stat -c %s $loader)" && le32 8) | dd of=$loader bs=1 seek=$at conv=notrunc status=none
head -c 8 /dev/zero >>$loader
capture name src
on_esp EFI/BOOT/BOOTX64.EFI | cmp - $loader || fail "a signed loader was replaced"

# No program at all, in another case.
rm -r src/boot/efi/*
mkdir -p src/boot/efi/efi/boot
: >src/boot/efi/efi/boot/bootx64.efi
echo mine >src/boot/efi/efi/boot/other.efi
capture name src
[ "$(on_esp EFI/BOOT/other.efi)" = mine ] || fail "not copied"
on_esp EFI/BOOT/BOOTX64.EFI >run/loader
[ "$(head -c 2 run/loader)" = MZ ] || fail "no loader"
