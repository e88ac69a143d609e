#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fetch --to-disk makes a disk hold what the image holds, zeros included, after asking; and
# says so when it could not.  (Here the disk is a file.)
. "$(dirname "$0")/../lib/lib.sh"
requires jq qemu-img sgdisk

make_mixed_disk disk.raw 32
sgdisk -n 1:2048:0 disk.raw >/dev/null
create a disk.raw
create b disk.raw --format raw
create c disk.raw --compression zlib --cluster-size 4K

fresh() { # SIZE
	head -c "$1" /dev/urandom >target
}

for image in a b c; do
	fresh 32M
	ccsnap fetch $image --to folder:store --to-disk target --yes
	expect_exit 0
	expect_identical target disk.raw
	expect_stdout '^target$'
	expect_stdout 'unpacked to 32 MiB, which were read back'
	[ ! -s "$err" ] || fail "nothing is worth a word here"
done
[ "$(stat -c %b target)" -lt $((24 * 2048)) ] || fail "zeros take room"

# A larger one: nothing of the old end is left to be taken for something.
fresh 40M
ccsnap fetch a --to folder:store --to-disk target --yes --json
expect_exit 0
expect_one_line 'sgdisk -e target$'
jq -e '.path == "target" and .virtual_size_bytes == 33554432' "$out" >/dev/null || fail "wrong result"
cmp -n $((32 << 20)) target disk.raw || fail "differs"
tail -c 1M target | tr -d '\0' | wc -c | grep -qx 0 || fail "the end is not empty"
sgdisk -e target >/dev/null
sgdisk -v target | grep -q 'No problems' || fail "no sound GPT"

# Refused, with nothing done: no consent, too small, no disk, in use.
refused() { # STATUS WORDS FETCH-OPTION...
	local before

	before=$(sha256sum <target)
	ccsnap fetch a --to folder:store --to-disk "${@:3}"
	expect_exit "$1"
	expect_one_line "$2"
	[ "$(sha256sum <target)" = "$before" ] || fail "the disk has changed"
}
fresh 32M
refused 4 'all that the file target \(32 MiB\) holds will be lost, .* agree with --yes' target
refused 4 'nosuch: ' nosuch --yes
refused 4 'store: neither a block device nor a regular file' store --yes
refused 4 'null: neither' /dev/null --yes
cp store/b.raw kept
refused 4 'store/b.raw: an image of a store' store/b.raw --yes
cmp -s store/b.raw kept || fail "the store has changed"
fresh 31M
refused 4 'target is too small: it has 32505856 bytes, the disk in a has 33554432' target --yes
fresh 32M
qemu-nbd -r -f raw -k "$T/run/nbd.sock" target &
wait_until 10 test -S run/nbd.sock || fail "qemu-nbd does not start"
refused 4 'target: in use by a running QEMU' target --yes
kill $!
wait $! || true

# A damaged image never gets there.
cp store/b.raw kept
printf X | dd of=store/b.raw bs=1 seek=3000000 conv=notrunc status=none
before=$(sha256sum <target)
ccsnap fetch b --to folder:store --to-disk target --yes
expect_exit 1
expect_one_line 'begins to differ'
[ "$(sha256sum <target)" = "$before" ] || fail "the disk has changed"
cat kept >store/b.raw

# One that names other files is no image of ours, whatever its manifest says.
qemu-img create -q -f qcow2 -b /etc/hostname -F raw evil.qcow2 32M
cp store/a.manifest.json kept.json
cat evil.qcow2 >store/a.qcow2
jq --arg sha256 "$(sha256sum <evil.qcow2 | cut -d' ' -f1)" --arg sha512 "$(sha512sum <evil.qcow2 | cut -d' ' -f1)" \
	--argjson size "$(stat -c %s evil.qcow2)" \
	'.sha256 = $sha256 | .sha512 = $sha512 | .size_bytes = $size' kept.json >store/a.manifest.json
refused 4 '^ccsnap: a: names another file as its backing file' target --yes

# A terminal that says no, and one that says yes.
if command -v script >/dev/null; then
	answer() {
		echo "$1" | timeout 60 script -qec "'$CCSNAP' fetch b --to folder:store --to-disk target" \
			/dev/null >run/terminal 2>&1
	}
	status=0
	answer n || status=$?
	expect_exit 4
	[ "$(sha256sum <target)" = "$before" ] || fail "the disk has changed"
	answer y || fail "$(cat run/terminal)"
	expect_identical target disk.raw
fi

# A signal while it is being written: said, since the disk is lost.
truncate -s 0 large.raw && make_mixed_disk large.raw 128
create large large.raw --format raw
truncate -s 128M large-target
: >"$out"
wrote() { grep -q '"phase": *"write"' "$out"; }
env --default-signal "$CCSNAP" fetch large --to folder:store --to-disk large-target --yes \
	--progress json >"$out" 2>"$err" </dev/null &
wait_until 20 wrote || fail "no progress"
kill -TERM $!
status=0
wait $! || status=$?
if [ $status != 0 ]; then
	expect_exit 143
	expect_one_line 'large-target (is written only in part and of no use now|was written, but not)'
fi
