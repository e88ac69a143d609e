#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Whatever becomes of a run at whatever moment (kill -9, SIGSTOP, INT, TERM, HUP; its guard killed,
# too; its terminal closed): the guest is held for no longer than --freeze-timeout, as it sees it
# itself, and once the guard is gone or the next run is over, nothing is left with it.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/libvirt.sh"
requires jq e2fsck debugfs dumpe2fs pgrep script setsid
session_up
guest_define vm --words "writer hook=1"
as_ordinary_user
seconds=3 # --freeze-timeout, of which the guest's hook takes one
longest=$((1000 * (seconds + 1)))
create=(create snap --domain vm --connect "$URI" --to folder:store --overwrite
	--report "$T/report.json" --freeze-timeout "$seconds")
at_leisure=(--quiesce=require --freeze-timeout 60)
uuid=$(guest_uuid vm)

# --- a run --------------------------------------------------------------------------

# Sets $main; see end_run.
start_run() { # OPTION...
	rm -f report.json
	since=$(guest_now vm)
	last_command="create $*"
	env --default-signal setsid "$CCSNAP" "${create[@]}" "$@" >"$out" 2>"$err" </dev/null &
	main=$!
}

end_run() {
	wait_until 120 is_no_process "$main" || fail "it does not end"
	status=0
	wait "$main" 2>/dev/null || status=$?
}

# The freeze was asked for: the guest's hook runs, and after it the freeze comes in any case.
start_freeze() { # OPTION...
	hooks=$(hooks_run freeze)
	start_run "$@"
	wait_until 60 has_hook_run freeze || fail "it does not freeze"
	guard=$(pgrep -P "$main" -f '^ccsnap-guard ') || fail "nobody guards it"
}

hooks_run() { # freeze|thaw
	guest_lines vm "hook $1" | wc -l
}

has_hook_run() { # freeze|thaw
	[ "$(hooks_run "$1")" -gt "$hooks" ]
}

# --- what it leaves -------------------------------------------------------------------

# A gap is told when it is over; one that is told late counts for the next run.
expect_held_at_most() { # MS [AT-LEAST-MS]
	local gap

	wait_until 60 guest_is_thawed vm || fail "the guest is frozen"
	wait_until 60 was_held_for "${2:-0}" || fail "the guest was never held for $2 ms"
	gap=$(guest_longest_gap vm "$since")
	[ "$gap" -le "$1" ] || fail "the guest was held for $gap ms"
	[ "$gap" -le "$worst" ] || worst=$gap
}
worst=0

was_held_for() { # MS
	[ "$(guest_longest_gap vm "$since")" -ge "$1" ]
}

is_unguarded() {
	! pgrep -f "^ccsnap-guard .*$uuid" >/dev/null
}

# Once the guard is gone.
expect_nothing_left() {
	wait_until 120 is_unguarded || fail "the guard stays"
	guest_is_thawed vm || fail "the guest is frozen"
	expect_no_traces vm
	! pgrep -f -- "$T/report.json" || fail "a process is left"
}

# What may be seen is whole.
expect_no_half_image() {
	[ ! -e store/snap.qcow2 ] || qemu-img check -q -f qcow2 store/snap.qcow2 || fail "half an image"
}

expect_next_run_to_work() {
	start_run "${at_leisure[@]}"
	end_run
	expect_exit 0
	[ "$(ls -A store)" = "$(printf '%s\n' snap.manifest.json snap.qcow2)" ] ||
		fail "in the store: $(ls -lA store)"
	check_writer_image store/snap.qcow2 quiesced
	expect_held_at_most $longest 1
	expect_nothing_left
}

# A domain that was thawed too early is not called quiesced.
expect_guard_thawed() {
	expect_report '.source.consistency == "crash-consistent" and (.quiesce |
		.quiesced == false and .thawed_by == "guard" and (.reason | contains("guard has thawed it before")))'
}

# --- stopped while it is frozen -----------------------------------------------------

stopped_while_frozen() { # HOW
	start_freeze "--quiesce=$1"
	kill -STOP "$main"
	expect_held_at_most $longest 500
	grep -q '^State:.T' "/proc/$main/status" || fail "it was not stopped"
	guest_writes vm || fail "the writer stands still"
	kill -CONT "$main"
	end_run
}

guest_start vm
wait_until 60 guest_is_past vm 1 || fail "the guest says nothing"

stopped_while_frozen require
expect_exit 1
expect_stderr 'guard has thawed it before the point in time.*--freeze-timeout'
expect_nothing_left
expect_empty store

stopped_while_frozen auto
expect_exit 3
expect_stderr 'guard has thawed it before the point in time.*--freeze-timeout'
expect_guard_thawed
expect_nothing_left
check_writer_image store/snap.qcow2 crashed

# --- the guard is told to end, or asked for nothing ---------------------------------------

start_freeze --quiesce=auto
kill -TERM "$guard"
end_run
expect_exit 3
expect_guard_thawed
expect_held_at_most $longest 1
expect_nothing_left

start_freeze "${at_leisure[@]}"
for signal in HUP INT QUIT PIPE; do
	kill -$signal "$guard"
done
end_run
expect_exit 0
expect_report '.quiesce | .quiesced and .thawed_by == "ccsnap"'
expect_held_at_most $longest 1
expect_nothing_left

# --- killed while it is frozen --------------------------------------------------------

find store -mindepth 1 -delete
start_freeze
kill -9 "$main"
end_run
expect_held_at_most $longest 1
expect_nothing_left

# All that belongs to it in its terminal.
start_freeze
kill -9 -- "-$main"
end_run
expect_held_at_most $longest 1
expect_nothing_left

# The terminal goes.
hooks=$(hooks_run freeze) since=$(guest_now vm)
SHELL=/bin/sh env --default-signal script -qec "exec $CCSNAP $(printf '%q ' "${create[@]}")" /dev/null \
	>"$out" 2>&1 </dev/null &
main=$!
wait_until 60 has_hook_run freeze || fail "it does not freeze"
kill -9 "$main"
end_run
expect_held_at_most $longest 1
expect_nothing_left
expect_next_run_to_work

# The guard alone: the image would be what was asked for, but nobody could have been sure.
find store -mindepth 1 -delete
start_freeze --quiesce=auto
kill -9 "$guard"
end_run
expect_exit 1
expect_stderr 'guard was killed by signal 9'
expect_report '.status == "failed" and .quiesce.quiesced == false'
expect_held_at_most $longest 1
expect_nothing_left
expect_empty store

# Later it is no longer needed.
is_reading() {
	grep -q '"done_bytes": *[1-9]' "$out"
}
start_freeze "${at_leisure[@]}" --limit-rate 4M --progress json
wait_until 60 is_reading || fail "it does not read"
kill -9 "$guard"
end_run
expect_exit 0
expect_nothing_left
check_writer_image store/snap.qcow2 quiesced

# --- nobody is left to thaw it ----------------------------------------------------------

both_killed_while_frozen() {
	start_freeze
	kill -9 "$guard" "$main"
	end_run
	wait_until 60 guest_is_frozen vm || fail "who thawed it?"
}

both_killed_while_frozen
ccsnap recover --domain vm --connect "$URI"
expect_exit 0
expect_stdout 'thawed 1 '
expect_nothing_left

both_killed_while_frozen
start_run "${at_leisure[@]}"
end_run
expect_exit 0
expect_stderr 'left by an earlier run: thawed 1 '
check_writer_image store/snap.qcow2 quiesced
expect_nothing_left

# --- at any moment -------------------------------------------------------------------------

count=20
! is_full || count=200
seed=${SEED:-$RANDOM}
echo "SEED=$seed"
RANDOM=$seed

# In ms.
begin=${EPOCHREALTIME/./}
start_run "${at_leisure[@]}"
end_run
expect_exit 0
whole=$(((${EPOCHREALTIME/./} - begin) / 1000))

pause_ms() { # MS
	sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"
}

send() { # SIGNAL
	kill "-$1" "$main" 2>/dev/null || true
}

beyond_the_deadline() {
	send STOP
	pause_ms $((1000 * seconds + 500))
	send "$1"
}

# On a busy host the time may be too short, which is told then.
ended_by() { # SIGNAL
	case $1 in
	KILL) expect_exit 0 3 137 ;;
	CONT) expect_exit 0 3 ;;
	*)
		expect_exit 0 3 $((128 + $(kill -l "$1")))
		[ $status -le 3 ] || expect_empty store
		;;
	esac
	case $status in
	0) expect_report '.quiesce | .quiesced and .thawed_by == "ccsnap"' ;;
	3) expect_report '.source.consistency == "crash-consistent" and .quiesce.quiesced == false' ;;
	esac
}

at_a_moment() { # SIGNAL [WHILE-STOPPED]
	local moment=$((RANDOM * (whole + 100) / 32768))

	find store -mindepth 1 -delete
	start_run
	pause_ms $moment
	guard=$(pgrep -P "$main" -f '^ccsnap-guard ') || guard=
	! is_noted_frozen || hit=$((hit + 1))
	"${2:-send}" "$1"
	end_run
	echo "$* after $moment of $whole ms: exit $status"
	ended_by "$1"
	expect_no_half_image
	expect_held_at_most $longest
	wait_until 120 is_unguarded || fail "the guard stays"
	# What was made before there was a guard is for the next run.
	[ "$1" != KILL ] || [ -n "$guard" ] || expect_next_run_to_work
	expect_nothing_left
}

is_noted_frozen() {
	grep -rq '^frozen' "$HOME/.local/state/ccsnap/domains"
}

hit=0
for ((n = 0; n < count; n += 10)); do
	for signal in KILL INT KILL TERM KILL HUP KILL KILL; do
		at_a_moment $signal
	done
	at_a_moment KILL beyond_the_deadline
	at_a_moment CONT beyond_the_deadline
	expect_next_run_to_work
done
echo "$hit of $count while it was frozen; the guest was held for $worst ms at most"
