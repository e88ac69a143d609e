#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Twenty captures of a guest that writes all the time: each image is a sound, clean filesystem of
# one instant, in which no file names another that is not there whole; and the guest itself saw
# no more of it than the report says.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/libvirt.sh"
requires jq e2fsck debugfs dumpe2fs
requires_jsonschema
session_up
guest_define raw --words writer
guest_define q2 --words writer --format qcow2
as_ordinary_user
mkdir reports
count=0

# capture_guest NAME OPTION...: into the store; sets $image.
capture_guest() {
	ccsnap create "$1" --domain "$1" --connect "$URI" --to folder:store --overwrite \
		--report report.json "${@:2}"
	expect_exit 0
	expect_report '.status == "ok" and .source.kind == "domain"'
	image=$(report .image.path)
	cp report.json "reports/$((count += 1))"
}

expect_quiesced() {
	expect_report '.source.consistency == "quiesced" and (.quiesce | .quiesced and
		.method == "backup-job" and .thawed_by == "ccsnap" and .frozen_ms > 0 and
		.filesystems == 1 and .reason == null)'
}

expect_sound() { # IMAGE quiesced|crashed [FORMAT]
	[ "${3:-qcow2}" = raw ] || qemu-img check -q -f qcow2 "$1" || fail "qemu-img check $1"
	check_writer_image "$1" "$2" "${3:-qcow2}"
}

expect_nothing_left() { # GUEST
	guest_is_thawed "$1" || fail "$1 is frozen"
	expect_no_traces "$1"
	[ "$(ls -A store)" = "$(printf '%s\n' "$1.manifest.json" "$(basename "$image")")" ] ||
		fail "in the store: $(ls -lA store)"
	rm store/*
}

# --- what the guest sees --------------------------------------------------------

# A plausible part of what the report says: asking is not yet being frozen.
guest_saw_it() {
	[ "$(guest_longest_gap "$guest" "$since")" -ge $((frozen_ms / 5)) ]
}

baseline_of() { # GUEST
	wait_until 60 guest_is_past "$1" 1 || fail "the guest says nothing"
	since=$(guest_now "$1")
	wait_until 60 guest_is_past "$1" $((since + 4000)) || fail "the guest's clock stands still"
	baseline=$(guest_longest_gap "$1" "$since")
}

# Whatever holds up a busy host adds to both; see expect_agreement.
hold_once() { # GUEST
	guest=$1 since=$(guest_now "$1")
	capture_guest "$1" --quiesce=require
	expect_quiesced
	frozen_ms=$(report '.quiesce.frozen_ms | floor')
	expect_sound "$image" quiesced
	wait_until 60 guest_saw_it || fail "the guest saw nothing of $frozen_ms ms"
	gap=$(guest_longest_gap "$1" "$since")
	[ "$gap" -le $((frozen_ms + baseline + 1000)) ] ||
		fail "the guest was held for $gap ms, not $frozen_ms (without a capture: $baseline)"
	echo "$frozen_ms $gap" >>run/held
	expect_nothing_left "$1"
}

median() {
	sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# As a rule the two are one number, less the way to the agent.
expect_agreement() {
	local excess share

	excess=$(awk '{ print $2 - $1 }' run/held | median)
	share=$(awk '{ print int(100 * $2 / $1) }' run/held | median)
	echo "held for $(cut -d ' ' -f 1 run/held | median) ms by the report," \
		"$(cut -d ' ' -f 2 run/held | median) ms by the guest (medians of $(wc -l <run/held))"
	[ "$excess" -le 30 ] || fail "the guest was held longer than reported: $(cat run/held)"
	[ "$share" -ge 33 ] || fail "the guest was held for less than reported: $(cat run/held)"
}

# --- twenty in a row --------------------------------------------------------------

guest_start raw
baseline_of raw
for ((n = 0; n < 20; n++)); do
	hold_once raw
done
expect_agreement
[ "$(jq -r .image.sha256 reports/* | sort -u | wc -l)" = 20 ] || fail "the writer stood still"
guest_writes raw || fail "the writer stands still"

# --- other ways to hold it -----------------------------------------------------------

# As after a power cut, and nobody was asked.
since=$(guest_now raw)
capture_guest raw --quiesce=off
expect_report '.source.consistency == "crash-consistent" and (.quiesce | .quiesced == false and
	.requested == "off" and .method == "backup-job" and .reason == null and
	.frozen_ms == null and .thawed_by == null and .filesystems == 0)'
expect_sound "$image" crashed
expect_nothing_left raw

capture_guest raw --quiesce=require --format raw
expect_quiesced
expect_sound "$image" quiesced raw
expect_nothing_left raw

# --- the same bytes -------------------------------------------------------------------

# same_bytes GUEST OPTION...: whatever the number of threads.
same_bytes() {
	local threads

	rm -f first
	for threads in 1 2 5; do
		capture_guest "$@" --threads $threads
		[ -e first ] || cp "$image" first
		expect_identical first "$image"
		rm store/*
	done
}

same_bytes_of() { # GUEST FORMAT
	virsh_ suspend "$1"
	same_bytes "$1" --quiesce=off
	expect_report '.source.domain.state | startswith("paused")'
	guest_stop "$1"
	# A QEMU that was killed has nothing to add.
	qemu-img convert -f "$2" -O raw "$(guest_disk "$1")" disk.raw
	expect_image_equals first qcow2 disk.raw
	cp first paused
	same_bytes "$1"
	expect_report '.source | .consistency == "offline" and .domain.state == "shut off"'
	expect_identical paused first
}

same_bytes_of raw raw

# --- a disk that is qcow2 -----------------------------------------------------------------

guest_start q2
baseline_of q2
for ((n = 0; n < 3; n++)); do
	hold_once q2
done
same_bytes_of q2 qcow2
expect_valid_report reports/*
