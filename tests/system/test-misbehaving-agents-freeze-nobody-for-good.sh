#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# An agent that is silent, slow, lies or talks nonsense costs the freeze and never the guest: it
# is told to thaw whenever it may have frozen, and the run ends: with an image and the reason, or
# with --quiesce=require without either.  Who was frozen by somebody else stays frozen.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/libvirt.sh"
. "$test_lib/upload.sh"
requires jq e2fsck debugfs dumpe2fs
requires_jsonschema
export XDG_STATE_HOME=$T/home/state
freeze_seconds=3
reports=$T/reports
session_up

# The agent's mode is a disk of its guest: see fake-agent.c.
define() { # NAME
	truncate -s 512 "$L/guests/$1.mode"
	cat >"$L/$1.xml" <<-XML
		<disk type='file' device='disk'>
		  <driver name='qemu' type='raw'/>
		  <source file='$L/guests/$1.mode'/>
		  <target dev='vdb' bus='virtio'/>
		</disk>
	XML
	[ "$(id -u)" != 0 ] || chown 65534:65534 "$L/guests/$1.mode"
	guest_define "$1" --words "writer fakeagent=honest" --xml "$L/$1.xml"
	as_user mkdir "$L/guests/$1.scratch"
}

for guest in red green blue; do
	define $guest
done
as_ordinary_user
for guest in red green blue; do
	guest_start $guest --no-wait
done

# --- act --------------------------------------------------------------------------

# A guest that is frozen says nothing behind them.
agent_lines() {
	guest_console "$guest" | grep '^agent ' || true
}

becomes() { # MODE
	printf '%s\n' "$1" | dd of="$L/guests/$guest.mode" bs=512 conv=sync,notrunc status=none
	wait_until 120 is "$1" || fail "the agent of $guest does not become $1"
}

is() { # MODE
	[ "$(agent_lines | sed -n 's/.* is //p' | tail -n 1)" = "$1" ]
}

try() { # WISH
	mark=$(agent_lines | wc -l)
	rm -rf store report.json
	as_user mkdir store
	ccsnap create snap --domain "$guest" --connect "$URI" --to "folder:$PWD/store" \
		--report report.json --scratch-dir "$L/guests/$guest.scratch" \
		--freeze-timeout $freeze_seconds --quiesce="$1"
}

# What the agent was told and did meanwhile: "agent TIME_MS COMMAND", "agent TIME_MS thawed 1".
agent_story() {
	agent_lines | sed "1,${mark}d"
}

# --- check ------------------------------------------------------------------------

expect_never_asked() {
	! agent_story | grep -E 'fsfreeze-(freeze|thaw)' || fail "the agent was told to"
}

expect_told_to_thaw() {
	agent_story | awk '/fsfreeze-freeze/ { asked = 1 } /fsfreeze-thaw/ { thawed = asked }
		END { exit !thawed }' || fail "nobody has thawed what may be frozen: $(agent_story)"
}

# The longest time, by the guest's clock; one that goes on counts as an hour.
frozen_ms() {
	agent_story | awk '
		function ends(now) { if (since && now - since > most) most = now - since; since = 0 }
		$3 == "frozen" && $4 == 1 { since = $2 }
		$3 == "thawed" && $4 == 1 { ends($2) }
		END { if (since) most = 3600000; print most + 0 }'
}

is_let_go() { # LONGEST_MS
	[ "$(frozen_ms)" -le "$1" ]
}

# The deadline, what the agent itself adds to it, and what a busy host does.
expect_let_go() { # MODE
	local seconds=${1#*:}

	[ "$seconds" != "$1" ] || seconds=0
	wait_until 30 is_let_go $(((freeze_seconds + seconds + 15) * 1000)) ||
		fail "frozen for $(frozen_ms) ms: $(agent_story)"
	guest_writes "$guest" || fail "the guest stands still"
}

expect_published() { # quiesced|crashed
	local consistency=crash-consistent

	[ "$1" = crashed ] || consistency=quiesced
	expect_report '.source.consistency == "'$consistency'"'
	if [ "$1" = quiesced ]; then
		check_writer_image "$(report .image.path)" quiesced >/dev/null
	else
		qemu-img check -q "$(report .image.path)" || fail "the image is not sound"
	fi
}

expect_nothing_published() {
	expect_empty store
	expect_report '.image.path == null and .quiesce.quiesced == false'
}

# In words, without the bytes that came instead of an answer.
expect_reason() { # EXTENDED-REGEX
	expect_stderr "$1"
	! grep -qP '[^\n\x20-\x7e]' "$err" || fail "no words"
	[ "$status" != 3 ] || report .quiesce.reason | grep -qE "$1" || fail "the report lacks: $1"
}

expect_usual() { # NAME
	expect_no_traces "$guest" "$L/guests/$guest.scratch"
	cp report.json "$reports/$1.json"
}

# --- what becomes of it -------------------------------------------------------------

# It is frozen, though not as fast as it might be.
works() { # WISH
	expect_exit 0
	expect_report '.quiesce | .quiesced and .reason == null and .frozen_ms > 0 and .filesystems > 0'
	[ -z "$reason" ] || expect_stderr "$reason"
	expect_told_to_thaw
	expect_let_go "$mode"
	expect_published quiesced
}

# That shows before anything is done.
cannot() { # WISH
	expect_reason "$reason"
	expect_never_asked
	if [ "$1" = require ]; then
		expect_exit 4
		expect_report '.status == "refused"'
		expect_nothing_published
	else
		expect_exit 3
		expect_report '.status == "warnings" and (.quiesce |
			.quiesced == false and .frozen_ms == null and .thawed_by == null)'
		expect_published crashed
	fi
}

# That shows when it is asked to freeze.
fails() { # WISH
	expect_reason "$reason"
	expect_told_to_thaw
	expect_let_go "$mode"
	if [ "$1" = require ]; then
		expect_exit 1
		expect_report '.status == "failed"'
		expect_nothing_published
	else
		expect_exit 3
		expect_report '.status == "warnings" and .quiesce.quiesced == false'
		expect_published crashed
	fi
}

# meets KIND MODE REASON WISH...: and is as before each time.
meets() {
	kind=$1 mode=$2 reason=$3
	local wish

	becomes "$mode"
	for wish in "${@:4}"; do
		try "$wish"
		$kind "$wish"
		expect_usual "$mode-$wish"
		echo "$mode $wish: exit $status, frozen for $(frozen_ms) ms"
	done
}

# --- whom it meets -------------------------------------------------------------------

# Beside others, in a directory of our own.
begin() { # GUEST
	guest=$1 T=$PWD
	mkdir run
	guest_wait "$1"
}

# Who takes his time inside of the deadline has frozen, who does so behind it has not.
slow_ones() {
	begin red
	meets works honest '' require
	meets works slow:1 '' auto
	meets fails slow:6 'agent' auto require
	meets fails late:6 'agent' auto
	meets works slow-thaw:2 '' auto
	! is_full || meets works late:1 '' require
	! is_full || meets fails late:6 'agent' require
	! is_full || meets works late-thaw:5 '' auto require
	meets fails mute-freeze 'agent' auto require
	meets fails silent-freeze 'agent' auto require
}

liars() {
	begin green
	meets fails refuse-freeze 'not in the mood' auto require
	meets works refuse-thaw '' auto
	meets fails freezes-nothing 'no filesystem' auto require
	meets works lies 'thawed 1 of the 3 filesystems' auto
	meets fails negative 'nonsense' auto require
	meets fails text 'nonsense' auto
	meets fails flood 'nonsense|agent' auto require
	! is_full || meets fails text 'nonsense' require
	! is_full || meets fails huge 'nonsense' auto require
	meets cannot disabled 'not allow|disabled' auto require
	meets fails half 'agent' auto
}

# Frozen by somebody else: it is not ours to thaw.
foreign() { # WISH
	cannot "$1"
	[[ $(guest_fsfreeze_status $guest) == *'"frozen"'* ]] || fail "it was thawed"
}

others() {
	begin blue
	meets foreign frozen-already 'frozen.* by somebody else' auto require
	virsh_ domfsthaw $guest >/dev/null
	meets cannot silent 'agent' auto require
	meets cannot babble 'agent' auto
}

mkdir "$reports"
beside slow slow_ones
beside liars liars
beside others others
all_hold

# --- who cannot be told to thaw ---------------------------------------------------------

# After such an answer libvirt 9 has no word with an agent any more, until it connects to it
# anew; as long as it does not, the guard goes on.
is_frozen() {
	[ "$(frozen_ms)" = 3600000 ]
}

reconnect() {
	libvirtd_kill
	libvirtd_start
	wait_until 60 guest_has_agent $guest || fail "the agent of $guest does not come back"
}

# Everybody in the middle of it.
unreachable() { # MODE
	becomes honest
	becomes "$1"
	mark=$(agent_lines | wc -l)
	"$CCSNAP" create snap --domain $guest --connect "$URI" --to "folder:$PWD/store" \
		--report report.json --scratch-dir "$L/guests/$guest.scratch" \
		--freeze-timeout $freeze_seconds --quiesce=require >"$out" 2>"$err" </dev/null &
	pid=$!
	last_command="create while the agent is $1"
	wait_until 60 is_frozen || fail "it was not frozen"
	sleep $((freeze_seconds + 1))
}

expect_thawed_after_all() {
	wait_until 120 is_let_go 120000 || fail "it stays frozen: $(agent_story)"
	expect_told_to_thaw
	wait_until 120 has_no_traces || fail "left with $guest: $(guest_traces $guest)"
	guest_writes $guest || fail "the guest stands still"
	expect_empty store
}

has_no_traces() {
	[ -z "$(guest_traces $guest)" ]
}

expect_ended() {
	status=0
	wait $pid || status=$?
	expect_exit 1
	expect_report '.status == "failed" and .quiesce.quiesced == false'
	cp report.json "$reports/$1.json"
}

reconnects_in_time() { # MODE
	unreachable "$1"
	is_frozen || fail "it was thawed"
	reconnect
	expect_ended "$1"
	expect_thawed_after_all
}

reconnects_too_late() { # MODE
	unreachable "$1"
	expect_ended "$1-for-long"
	expect_stderr 'libvirtd|qemu-guest-agent'
	[ -n "$(guest_guards $guest)" ] || fail "nobody watches over $guest"
	is_frozen || fail "it was thawed"
	reconnect
	expect_thawed_after_all
}

guest=blue
reconnect
reconnects_in_time zeros
! is_full || reconnects_in_time garbage
! is_full || reconnects_too_late garbage

expect_valid_report "$reports"/*
