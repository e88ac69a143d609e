#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fetch --to-disk onto a block device: all of it is what the image holds, or it is said that
# it is not; never onto one that is in use.
. "$(dirname "$0")/../lib/lib.sh"
requires_root
requires losetup jq mke2fs sgdisk qemu-img blockdev python3

make_mixed_disk disk.raw 64
sgdisk -n 1:2048:40000 -n 2:40960:0 disk.raw >/dev/null
create a disk.raw
create b disk.raw --format raw
mkdir mnt

fresh_loop() { # SIZE OPTION...: random bytes; sets $loop
	head -c "$1" /dev/urandom >"backing.$1"
	attach_loop "backing.$1" "${@:2}"
}

for image in a b; do
	fresh_loop 64M --partscan
	ccsnap fetch $image --to folder:store --to-disk "$loop" --yes
	expect_exit 0
	[ ! -s "$err" ] || fail "nothing is worth a word here"
	blockdev --flushbufs "$loop"
	expect_identical "$loop" disk.raw
	expect_identical backing.64M disk.raw
	wait_until 5 test -b "${loop}p2" || echo "note: no partitions here"
	losetup -d "$loop"
done

fresh_loop 72M
ccsnap fetch a --to folder:store --to-disk "$loop"
expect_exit 4
expect_one_line "all that the disk $loop \(.*backing.72M, 72 MiB\) holds will be lost"
ccsnap fetch a --to folder:store --to-disk "$loop" --yes
expect_exit 0
expect_one_line "sgdisk -e $loop$"
cmp -n $((64 << 20)) "$loop" disk.raw || fail "differs"
[ "$(tail -c 1M "$loop" | tr -d '\0' | wc -c)" = 0 ] || fail "the end is not empty"

# A table for other sectors than the disk has.
fresh_loop 65M --sector-size 4096
ccsnap fetch a --to folder:store --to-disk "$loop" --yes
expect_exit 0
expect_stderr 'has sectors of 4096 bytes, and the partition table in the image is made for 512'
cmp -n $((64 << 20)) "$loop" disk.raw || fail "differs"

# In use: mounted in any way, itself or in part, or held by somebody.
refused() { # DEVICE WORDS
	ccsnap fetch a --to folder:store --to-disk "$1" --yes
	expect_exit 4
	expect_one_line "$2"
}
fresh_loop 68M --read-only
refused "$loop" 'the device is read-only'
fresh_loop 66M
mke2fs -q -t ext4 "$loop"
before=$(sha256sum <backing.66M)
if mount "$loop" mnt; then
	at_exit umount -l "$T/mnt"
	refused "$loop" 'mounted read-write on'
	refused backing.66M 'the loop device .* on it is mounted read-write on'
	mount -o remount,ro mnt
	before=$(sha256sum <backing.66M)
	refused "$loop" 'mounted read-only; unmount it first'
	refused backing.66M 'mounted read-only; unmount it first'
	umount mnt
fi
python3 -c 'import os, sys, time
os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL); print(flush=True); time.sleep(60)' "$loop" >run/held &
wait_until 10 test -s run/held || fail "not held"
refused "$loop" 'held by something else'
kill $!
wait $! || true
[ "$(sha256sum <backing.66M)" = "$before" ] || fail "the disk has changed"

fresh_loop 67M --partscan
sgdisk -n 1:2048:0 "$loop" >/dev/null
blockdev --rereadpt "$loop" || true
if wait_until 3 test -b "${loop}p1"; then
	mke2fs -q -t ext4 "${loop}p1"
	mount "${loop}p1" mnt
	refused "$loop" 'its partition .* is mounted read-write'
	umount mnt
fi

# A disk that cannot take it all: what is there now is of no use, and that is said.
mount_tmpfs small 16M
truncate -s 64M small/backing
attach_loop small/backing
ccsnap fetch a --to folder:store --to-disk "$loop" --yes
expect_exit 1
expect_stderr "$loop is written only in part and of no use now; fetch onto it again: "

# One that takes all and keeps something else.
requires nbdkit nbdfuse fusermount3
[ -w /dev/fuse ] || skip "no /dev/fuse here"
truncate -s 64M forgetful.raw
cat >run/plugin <<-END
	#!/bin/sh
	case "\$1" in
	get_size) echo 67108864 ;;
	can_write | can_flush) exit 0 ;;
	flush) ;;
	pread) dd if="$PWD/forgetful.raw" iflag=skip_bytes,count_bytes skip=\$4 count=\$3 bs=64k status=none ;;
	pwrite)
		if [ \$4 -ge 40000000 ]; then cat >/dev/null; else
			dd of="$PWD/forgetful.raw" oflag=seek_bytes seek=\$4 bs=64k conv=notrunc status=none
		fi ;;
	*) exit 2 ;;
	esac
END
chmod +x run/plugin
: >forgetful
nbdfuse forgetful --command nbdkit -s --exit-with-parent sh "$PWD/run/plugin" 2>run/nbdkit.log &
at_exit fusermount3 -u -z "$PWD/forgetful"
wait_until 10 has_size_of disk.raw forgetful || skip "nbdfuse does not work here"
ccsnap fetch b --to folder:store --to-disk forgetful --yes
expect_exit 1
expect_one_line 'forgetful was written, but not found to hold what it should: b differs from forgetful at offset [4-6]'
fusermount3 -u -z forgetful
