#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# In the middle of a capture something happens to libvirtd, to the guest, to its agent, to the job,
# or to the room for it.  There is a good image then, or one line that says why there is none; the
# guest works on where it lives, its disk is sound, and nothing of the run is left.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/libvirt.sh"
. "$test_lib/upload.sh"
requires_root
requires jq e2fsck debugfs dumpe2fs fallocate
requires_jsonschema
# As on a hypervisor, where no client starts a daemon.
export LIBVIRT_AUTOSTART=0
reports=$T/reports
mkdir "$reports"
as_ordinary_user

# --- act ------------------------------------------------------------------------------

# Beside others, with a libvirtd of our own: one event of libvirt 9 can hold up all others.
settle_in() { # GUEST OPTION...
	guest=$1 T=$PWD store=$PWD/store
	export XDG_STATE_HOME=$PWD/state
	mkdir run
	mkdir -m 777 state "$store"
	L=$(mktemp -d /var/tmp/ccsnap.XXXXXX)
	chmod 755 "$L"
	mkdir "$L/guests"
	session_up
	at_exit rm -rf --one-file-system "$L"
	guest_define "$@"
	guest_start "$guest"
}

# So that it is not over before that has come to pass which ends it.
for_long=(--limit-rate 500K)

# Returns when some of it is copied, and more is not.
begin() { # OPTION...
	since=$(guest_now "$guest")
	find "$store" -mindepth 1 -delete
	rm -f report.json
	: >"$out"
	"$CCSNAP" create snap --domain "$guest" --connect "$URI" --to "folder:$store" \
		--report report.json --limit-rate 4M --progress json "$@" >"$out" 2>"$err" </dev/null &
	pid=$!
	wait_until 120 is_copying || fail "it does not begin to copy"
}

is_copying() {
	grep -q '"phase":"capture","done_bytes":[1-9]' "$out"
}

# midway DEED OPTION...: what comes of a run in the middle of which that is done.
midway() {
	deed=$1
	status='' last_command="create, and in mid-copy: $1"
	begin "${@:2}"
	$1
	wait_until 400 is_no_process $pid || fail "it does not end"
	status=0
	wait $pid || status=$?
	echo "$1: exit $status"
	cp report.json "$reports/$1.json"
}

# --- what is done to it ------------------------------------------------------------------

libvirtd_dies() {
	libvirtd_kill
	libvirtd_start
}

libvirtd_restarts() {
	libvirtd_kill TERM
	libvirtd_start
}

guest_pauses() {
	virsh_ suspend "$guest" >/dev/null
	sleep 1
	virsh_ resume "$guest" >/dev/null
}

job_is_aborted() {
	virsh_ domjobabort "$guest"
}

# It cannot answer: it goes down, or its agent does.
tell_agent() { # JSON
	guest_agent "$guest" "$1" >/dev/null 2>&1 || true
}

in_guest() { # SHELL-TEXT
	tell_agent "$(jq -nc --arg text "$1" '{execute: "guest-exec",
		arguments: {path: "/bin/sh", arg: ["-c", $text]}}')"
}

agent_hangs() {
	in_guest "killall -STOP qemu-ga; sleep 15; killall -CONT qemu-ga"
}

agent_dies() {
	in_guest "killall -KILL qemu-ga"
}

guest_reboots() {
	tell_agent '{"execute":"guest-shutdown","arguments":{"mode":"reboot"}}'
}

guest_is_reset() {
	virsh_ reset "$guest" >/dev/null
}

guest_shuts_down() {
	tell_agent '{"execute":"guest-shutdown"}'
}

guest_is_destroyed() {
	guest_stop "$guest"
}

qemu_dies() {
	kill -KILL "$(guest_pid "$guest")"
}

store_is_full() {
	fallocate -l 96M "$store/full" 2>/dev/null || head -c 96M /dev/zero >"$store/full" 2>/dev/null ||
		true
}

guest_resumes() {
	virsh_ resume "$guest" >/dev/null
}

# --- check ---------------------------------------------------------------------------------

expect_good_image() {
	expect_exit 0
	expect_report '.status == "ok" and .source.consistency == "quiesced"'
	qemu-img check -q "$store/snap.qcow2" || fail "qemu-img check"
	check_writer_image "$store/snap.qcow2" quiesced >/dev/null
}

# But for what is told of every guest that boots a kernel of its host.
expect_failed() { # EXTENDED-REGEX
	expect_exit 1
	sed -i '/boots a kernel of its host/d' "$err"
	expect_one_line "$1"
	expect_report '.status == "failed" and .image.path == null and .error.message != null'
	rm -f "$store/full"
	expect_empty "$store"
}

expect_guest_works() {
	[ "$(guest_state "$guest")" = running ] || fail "the guest is $(guest_state "$guest")"
	guest_writes "$guest" || fail "the guest does not write"
	held_ms=$(guest_longest_gap "$guest" "$since")
	[ "$held_ms" -le 15000 ] || fail "the guest stood still for $held_ms ms"
	expect_no_traces "$guest"
}

is_off() {
	[ "$(guest_state "$guest")" = "shut off" ]
}

expect_guest_off() {
	wait_until 120 is_off || fail "the guest is $(guest_state "$guest")"
	expect_no_traces "$guest"
	expect_sound_disk
}

expect_sound_disk() {
	check_writer_image "$(guest_disk "$guest")" crashed raw >/dev/null
}

# The next one is as good as if nothing had happened.
expect_next_is_good() {
	midway true
	expect_good_image
	expect_guest_works
}

# --- libvirt, the job, the store, a guest that stands still -----------------------------------

stays_up() {
	settle_in vm --words writer
	midway libvirtd_dies
	expect_good_image
	expect_guest_works
	midway libvirtd_restarts
	expect_good_image
	expect_guest_works
	midway job_is_aborted "${for_long[@]}"
	expect_failed 'backup job .* ended'
	expect_guest_works
	store_runs_full
	midway guest_pauses
	expect_good_image
	expect_guest_works
	midway agent_hangs
	expect_good_image
	expect_guest_works
	! is_full || libvirtd_stays_away
	wait_until 120 guest_answers vm || fail "the agent does not come back"
	expect_next_is_good
	guest_stop vm
	expect_sound_disk
}

store_runs_full() {
	mount_tmpfs little 96m
	store=$PWD/little
	midway store_is_full "${for_long[@]}"
	expect_failed 'space'
	expect_guest_works
	store=$PWD/store
}

# Nothing but the record and what it names may be there until libvirtd is back.
libvirtd_stays_away() {
	midway libvirtd_kill
	expect_failed 'libvirt'
	libvirtd_start
	midway true
	expect_good_image
	expect_guest_works
}

# --- the guest or its agent begins anew -----------------------------------------------------

# libvirt 9 knows of the agent what it knew before, and of the end of the job nothing for a
# minute: both are no fault of the run.
restarts() {
	settle_in vm --words writer
	restarts_by guest_is_reset
	! is_full || restarts_by guest_reboots
	! is_full || restarts_by agent_dies
	expect_next_is_good
	guest_stop vm
	expect_sound_disk
}

count_boots() {
	guest_console vm | grep -c '^mini guest is up' || true
}

# And its writer is at work.
has_booted() {
	guest_console vm | awk -v boots="$boots" '/^mini guest is up/ { n++; works = 0 }
		/^tick / { works = 1 } END { exit !(n > boots && works) }'
}

restarts_by() { # DEED
	boots=$(count_boots)
	midway "$1"
	expect_good_image
	[ "$1" = agent_dies ] || wait_until 240 has_booted || fail "the guest does not come up"
	expect_guest_works
	libvirtd_restarts
	[ "$1" != agent_dies ] || virsh_ reset vm >/dev/null
	guest_wait vm
}

# --- the guest ends ------------------------------------------------------------------------------

ends() {
	settle_in vm --words writer
	midway guest_shuts_down "${for_long[@]}"
	expect_failed 'shut(ting)? down'
	expect_guest_off
	for deed in guest_is_destroyed qemu_dies; do
		guest_start vm --no-wait
		midway $deed --quiesce=off "${for_long[@]}"
		expect_failed 'shut(ting)? down|crashed|ended'
		expect_guest_off
	done
}

# --- the scratch space runs full -------------------------------------------------------------------

# Who is overwritten all the time shows whether the image is of the one instant.
overwrites() {
	settle_in vm --words "writer heavy=48"
	wait_until 120 is_overwriting || fail "the guest does not write"
	midway_from_pause big 400m
	expect_exit 0
	expect_same_instant
	midway_from_pause small 30m
	if [ "$status" = 0 ]; then
		expect_same_instant
	else
		expect_failed 'scratch .*(full|room|space)'
	fi
	expect_guest_works
	guest_stop vm
	expect_sound_disk
}

is_overwriting() {
	[ "$(guest_lines vm heavy | wc -l)" -ge 2 ]
}

# While it is paused, its disk is what the image has to be.
midway_from_pause() { # SCRATCH-NAME SIZE
	mount_tmpfs "$1" "$2"
	virsh_ suspend vm >/dev/null
	cp --sparse=always "$(guest_disk vm)" instant.raw
	midway guest_resumes --quiesce=off --limit-rate 8M --scratch-dir "$PWD/$1"
}

expect_same_instant() {
	expect_report '.quiesce.scratch_bytes > 10000000'
	expect_image_equals "$store/snap.qcow2" qcow2 instant.raw
}

for each in stays_up restarts ends overwrites; do
	beside $each $each
done
all_hold
expect_valid_report "$reports"/*
