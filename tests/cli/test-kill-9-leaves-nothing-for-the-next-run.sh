#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# After kill -9 at any moment no half image is to be seen, and the next run of the
# same name succeeds and clears what was left.
. "$(dirname "$0")/../lib/lib.sh"
requires jq mke2fs qemu-img

make_disk disk.raw 16
qemu-img convert -f raw -O qcow2 disk.raw disk.qcow2
mkdir home/fine
count=8
! is_full || count=60

children_gone() {
	! pgrep -f "qemu-nbd.*$T" >/dev/null
}

for ((n = 0; n < count; n++)); do
	source=(disk.raw --source-format raw)
	[ $((n % 3)) != 2 ] || source=(disk.qcow2 --source-format qcow2)
	rm -rf store && mkdir store
	"$CCSNAP" create a --source "${source[@]}" --to folder:store --level 12 \
		>"$out" 2>"$err" </dev/null &
	pid=$!
	sleep "0.$(printf %03d $(((n * 997 / count) % 800)))"
	kill -9 $pid 2>/dev/null || true
	wait $pid 2>/dev/null || true
	wait_until 5 children_gone || fail "qemu-nbd outlived its parent"

	# What can be seen is whole; then the name is to be had again.
	visible=$(find store -maxdepth 1 -name 'a.qcow2' 2>/dev/null)
	[ -z "$visible" ] || qemu-img check -q -f qcow2 "$visible" || fail "half an image"
	create a "${source[@]}" --overwrite
	expect_image_equals "$image" qcow2 disk.raw
	rm -rf home/fine && mkdir home/fine
	ccsnap create a --source "${source[@]}" --to folder:home/fine --report report.json
	expect_exit 0
	diff <(cd store && find . | sort) <(cd home/fine && find . | sort) || fail "debris"
	rm -rf "${TMPDIR:?}"/*
done

# What was there under the name is whole at any time: the old one or the new one.
head -c 1M /dev/urandom >old.raw
for ((n = 0; n < count; n++)); do
	rm -rf store
	create a old.raw
	"$CCSNAP" create a --source disk.raw --to folder:store --overwrite >"$out" 2>"$err" </dev/null &
	pid=$!
	sleep "0.$(printf %03d $((n * 200 / count)))"
	kill -9 $pid 2>/dev/null || true
	wait $pid 2>/dev/null || true
	qemu-img compare -q -f qcow2 -F raw store/a.qcow2 old.raw ||
		qemu-img compare -q -f qcow2 -F raw store/a.qcow2 disk.raw || fail "neither old nor new"
	# The next run, though refused, brings image and manifest together again.
	ccsnap create a --source old.raw --to folder:store
	expect_exit 4
	ccsnap verify store/a.qcow2
	expect_exit 0
done

# The same for a file that was named.
"$CCSNAP" create --source disk.raw --output out.qcow2 "${slow[@]}" >"$out" 2>"$err" </dev/null &
pid=$!
sleep 0.4
kill -9 $pid
wait $pid 2>/dev/null || true
expect_gone out.qcow2
ccsnap create --source disk.raw --output out.qcow2
expect_exit 0
[ "$(find . -maxdepth 1 -name '*out.qcow2*' | wc -l)" = 1 ] || fail "debris: $(ls -lA)"
