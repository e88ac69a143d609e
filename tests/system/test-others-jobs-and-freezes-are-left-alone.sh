#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A job, an overlay, a freeze, a file or a record that is not of this domain's dead runs: create
# goes round it or says at once what is in its way, recover has nothing to do with it, and it stays
# as it was.  Of two runs for a domain one waits or gives way; two domains have one each.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/libvirt.sh"
requires jq e2fsck debugfs dumpe2fs pgrep
requires_jsonschema
export XDG_STATE_HOME=$T/home/state
session_up
guest_define vm --words writer
guest_define neighbour --words writer
as_ordinary_user
guest_start vm --no-wait
guest_start neighbour

# --- act --------------------------------------------------------------------------

create_from() { # GUEST OPTION...
	local begun=$SECONDS

	rm -f report.json
	ccsnap create "image of $1" --domain "$1" --connect "$URI" --to "folder:$PWD/store" \
		--overwrite --report report.json "${@:2}"
	# libvirt lets those who ask for a second job wait for 30 s, and then refuses.
	[ $((SECONDS - begun)) -le 25 ] || fail "that took $((SECONDS - begun)) s"
	expect_valid_report
}

recover() { # OPTION...
	ccsnap recover --connect "$URI" "$@"
}

start_creating() { # GUEST OPTION...
	: >"run/$1.progress"
	"$CCSNAP" create "slow image of $1" --domain "$1" --connect "$URI" --limit-rate 1M \
		--to "folder:$PWD/store" --progress json --report "slow-$1.json" "${@:2}" \
		>"run/$1.progress" 2>"run/$1.err" </dev/null &
	pid=$!
	wait_until 120 grep -q '"phase":"capture","done_bytes":[1-9]' "run/$1.progress" ||
		fail "it does not begin to copy: $(cat "run/$1.err")"
}

ends_well() { # PID GUEST
	status=0 last_command="create of $2 beside others"
	wait "$1" || status=$?
	cp "run/$2.err" "$err"
	expect_exit 0
	check_writer_image "store/slow image of $2.qcow2" quiesced >/dev/null
}

# --- check ------------------------------------------------------------------------

expect_refused() { # EXTENDED-REGEX
	expect_exit 4
	expect_stderr "^ccsnap: .*($1)"
	expect_report '.status == "refused" and .image.path == null'
	expect_empty store
	expect_no_traces_but "$1"
}

expect_captured() { # [GUEST]
	expect_exit 0
	expect_report '.source.consistency == "quiesced"'
	check_writer_image "$(report .image.path)" quiesced >/dev/null
	rm store/*
}

# Theirs is a job as well.
expect_no_traces_but() { # EXTENDED-REGEX
	local traces

	traces=$(guest_traces vm | grep -vx "a job" || true)
	[ -z "$traces" ] || fail "left: $traces"
}

expect_nothing_to_recover() {
	recover --domain vm
	expect_exit 0
	expect_stdout 'nothing'
	recover
	expect_exit 0
	expect_stdout 'nothing'
}

# stands_in_the_way REGEX COMMAND...: what COMMAND tells of it is the same before and after.
stands_in_the_way() {
	local before

	before=$("${@:2}") || fail "$2: there is nothing"
	create_from vm
	expect_refused "$1"
	create_from vm --quiesce=off
	expect_refused "$1"
	expect_nothing_to_recover
	ccsnap inspect --domain vm --connect "$URI"
	expect_exit 0
	expect_stdout "$1"
	[ "$("${@:2}")" = "$before" ] || fail "it is not as it was: $("${@:2}")"
	guest_writes vm || fail "the guest stands still"
}

# --- jobs -----------------------------------------------------------------------------

their_backup() {
	virsh_ backup-dumpxml vm
	ls "$L/guests/their.scratch" "$L/guests/their.socket"
}

cat >"$L/backup.xml" <<-XML
	<domainbackup mode='pull'>
	  <server transport='unix' socket='$L/guests/their.socket'/>
	  <disks>
	    <disk name='vda' backup='yes' type='file'><scratch file='$L/guests/their.scratch'/></disk>
	  </disks>
	</domainbackup>
XML
guest_wait vm
virsh_ backup-begin vm "$L/backup.xml" >/dev/null
stands_in_the_way 'backup job' their_backup
virsh_ domjobabort vm

# How far it has come is no matter.
block_job() {
	virsh_ dumpxml vm | grep -E '<mirror |<source file=' | sed "s/ ready='yes'//"
	virsh_ blockjob vm vda 2>&1 | grep -oE 'Block (Copy|Commit)'
}

virsh_ blockcopy vm vda "$L/guests/copy.raw" --bandwidth 1 --transient-job >/dev/null
stands_in_the_way 'copy' block_job
virsh_ blockjob vm vda --abort

# An overlay is what the disk is, and all of it is captured.
layers() {
	virsh_ dumpxml vm | grep -E "<source file=.*(overlay|disk)"
	ls "$L/guests/overlay"
}

virsh_ snapshot-create-as vm theirs --disk-only --no-metadata \
	--diskspec "vda,file=$L/guests/overlay" >/dev/null
before=$(layers)
create_from vm
expect_captured
expect_nothing_to_recover
expect_no_traces vm
[ "$(layers)" = "$before" ] || fail "the overlay is not as it was: $(layers)"

virsh_ blockcommit vm vda --active --bandwidth 1 >/dev/null
stands_in_the_way 'commit' block_job
virsh_ blockjob vm vda --abort
virsh_ blockcommit vm vda --active --pivot >/dev/null
create_from vm
expect_captured

# --- a freeze ---------------------------------------------------------------------------

virsh_ domfsfreeze vm >/dev/null
create_from vm
expect_exit 3 4
expect_stderr 'frozen .*by somebody else'
[ "$status" = 4 ] || expect_report '.source.consistency == "crash-consistent" and
	(.quiesce.reason | test("somebody else")) and .quiesce.thawed_by == null'
guest_is_frozen vm || fail "create has thawed it"
rm -f store/*
create_from vm --quiesce=require
expect_refused 'frozen .*by somebody else'
expect_nothing_to_recover
guest_is_frozen vm || fail "recover has thawed it"
expect_no_traces vm
virsh_ domfsthaw vm >/dev/null
guest_writes vm || fail "the guest stands still"

# --- files and records --------------------------------------------------------------------

# Names like ours, but open to others, with a file that we never make, or no directory.
their_files() {
	find "$L/guests/files" -mindepth 1 -printf '%p %y %m %u %i %s\n' | sort
}

as_user mkdir -p "$L"/guests/files/{ccsnap-open22,ccsnap-filled}
as_user chmod 700 "$L/guests/files/ccsnap-filled"
as_user touch "$L"/guests/files/{scratch,socket,ccsnap-afile2,ccsnap-open22/scratch} \
	"$L"/guests/files/ccsnap-filled/{scratch,socket,letter}
as_user ln -s "$L/guests" "$L/guests/files/ccsnap-linked"
before=$(their_files)
create_from vm --scratch-dir "$L/guests/files"
expect_captured
[ "$(their_files)" = "$before" ] || fail "files are not as they were: $(their_files)"
rm -r "$L/guests/files"

# A run for another domain dies with its guard, so that all that it began is there.
start_creating neighbour
pkill -KILL -f "^ccsnap-guard .*$(guest_uuid neighbour)"
kill -KILL $pid
wait $pid 2>/dev/null || true
before=$(guest_traces neighbour)
grep -q '^a job$' <<<"$before" || fail "there is nothing of it: $before"
create_from vm
expect_captured
recover --domain vm
expect_exit 0
expect_stdout 'nothing'
[ "$(guest_traces neighbour)" = "$before" ] || fail "what is left of it is not as it was"
recover
expect_exit 0
expect_no_traces neighbour
guest_writes neighbour || fail "the neighbour stands still"

# --- two at a time ----------------------------------------------------------------------

start_creating vm
slow=$pid
create_from vm
expect_exit 75
expect_one_line 'vm|domain|instance'
create_from neighbour
expect_captured
start_creating neighbour
kill -0 $slow || fail "it was over before"
ends_well $slow vm
ends_well $pid neighbour
rm store/*

start_creating vm
slow=$pid
ccsnap create waits --domain vm --connect "$URI" --to "folder:$PWD/store" --lock-wait 200 \
	--report report.json
! kill -0 $slow 2>/dev/null || fail "it has not waited"
ends_well $slow vm
expect_exit 0
check_writer_image store/waits.qcow2 quiesced >/dev/null
expect_no_traces vm
expect_no_traces neighbour
