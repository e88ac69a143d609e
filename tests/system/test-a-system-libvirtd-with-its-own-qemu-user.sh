#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# On a hypervisor as it is: root runs ccsnap, and QEMU is somebody else, who has to get at the
# scratch file.  Where it cannot, that is found out before the guest is touched.  The same from
# afar, over ssh, also when that breaks.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/libvirt.sh"
requires jq e2fsck debugfs dumpe2fs
requires_root
requires_jsonschema
umask 000
system_up

# --- ccsnap with a /var/lib/ccsnap of its own ------------------------------------------

own=$L/private/own
mkdir -m 700 "$own"
if [ ! -d /var/lib/ccsnap ]; then
	mkdir -m 700 /var/lib/ccsnap
	at_exit rmdir /var/lib/ccsnap
fi
in_private_mounts mount --bind "$own" /var/lib/ccsnap
# shellcheck disable=SC2016
printf '#!/bin/sh\nexec nsenter --mount --target %s -- sh -c '\''cd "$0" && exec "$@"'\'' "$PWD" "%s" "$@"\n' \
	"$holder" "$CCSNAP" >run/program
chmod 755 run/program
CCSNAP=$T/run/program
mkdir reports
mkdir -m 700 "$HOME/run"
export XDG_RUNTIME_DIR=$HOME/run

guest_define vm --words "writer heavy=32 hook"
guest_start vm
[ "$(stat -c %U "/proc/$(guest_pid vm)")" = libvirt-qemu ] || fail "QEMU runs as root"

# --- act and check ----------------------------------------------------------------------

# capture_vm NAME URI OPTION...
capture_vm() {
	ccsnap create "$1" --domain vm --connect "$2" --to folder:store --report report.json \
		--overwrite "${@:3}"
}

expect_quiesced() {
	expect_exit 0
	expect_report '.source.consistency == "quiesced" and
		(.quiesce | .quiesced and .method == "backup-job" and .filesystems == 1)'
	cp report.json "reports/$SECONDS"
	check_writer_image "$(report .image.path)" quiesced
	expect_hooks $((hooks + 1))
	rm store/*
}

# So often was it frozen and thawed by now.
hooks=0
expect_hooks() { # COUNT
	hooks=$1
	wait_until 60 hooks_ran || fail "frozen and thawed, not $hooks times: $(guest_lines vm hook)"
}
hooks_ran() {
	[ "$(count_hooks freeze) $(count_hooks thaw)" = "$hooks $hooks" ]
}
count_hooks() { # freeze|thaw
	guest_console vm | grep -c "^hook $1 " || true
}

# Before the guest was touched.
expect_refused() { # EXTENDED-REGEX
	expect_refusal "$1"
	expect_empty store
	hooks_ran || fail "the guest was frozen for that: $(guest_lines vm hook)"
	expect_nothing_left
}

expect_nothing_left() {
	local left

	guest_is_thawed vm || fail "it is frozen"
	! guest_has_job vm || fail "it has a job"
	left=$(find "$L" "$T" -mindepth 1 -name 'ccsnap-*')
	[ -z "$left" ] || fail "left behind: $left"
	! grep -arE '^(frozen|patience|scratch|socket|overlay)' "$own" || fail "noted"
}

# --- the default place, and another one --------------------------------------------------

capture_vm snap "$URI"
[ "$(stat -c '%a %u' store/* | sort -u)" = "600 0" ] || fail "not private: $(ls -l store)"
expect_quiesced
[ -d "$own/scratch" ] || fail "the default place is another one"
expect_nothing_left

# In the middle of it, nobody but QEMU and root may see what the guest writes.
mkdir -m 711 "$L/scratch"
scratch_is_there() {
	scratch=$(find "$L/scratch" -mindepth 2 -name scratch) && [ -n "$scratch" ]
}
ccsnap_in_background() { # URI OPTION...
	: >run/progress
	"$CCSNAP" create slow --domain vm --connect "$1" --to folder:store --report report.json \
		--overwrite --limit-rate 6M --progress json "${@:2}" >run/progress 2>"$err" &
	pid=$! last_command="create slow --connect $*"
	wait_until 120 is_reading_or_over
	is_reading || fail "it does not read: $(cat "$err")"
}
is_reading() {
	grep -q '"done_bytes": *[1-9]' run/progress
}
is_reading_or_over() {
	is_reading || is_no_process "$pid"
}
ccsnap_in_background "$URI" --scratch-dir "$L/scratch"
scratch_is_there || fail "no scratch file in $(find "$L/scratch" -ls)"
[ "$(stat -c '%a %U' "$(dirname "$scratch")")" = "700 libvirt-qemu" ] ||
	fail "not private: $(find "$L/scratch" -ls)"
status=0
wait $pid || status=$?
expect_quiesced
expect_empty "$L/scratch"
expect_nothing_left

# --- where QEMU cannot be served ------------------------------------------------------------

mkdir -p "$L/closed/in/it"
chmod 700 "$L/closed/in"
capture_vm refused "$URI" --scratch-dir "$L/closed/in/it"
expect_refused "$L/closed/in cannot be entered .* runs as"
capture_vm refused "$URI" --scratch-dir "$L/closed/in"
expect_refused "$L/closed/in cannot be entered .* runs as"

mkdir "$L/small"
mount -t tmpfs -o size=8m,mode=711 ccsnap-test "$L/small" || skip "tmpfs cannot be mounted here"
at_exit umount -l "$L/small"
capture_vm refused "$URI" --scratch-dir "$L/small"
expect_refused "$L/small has [0-9.]+ MiB free"

long=$L/$(printf 'x%.0s' {1..80})
mkdir -m 711 "$long"
capture_vm refused "$URI" --scratch-dir "$long"
expect_refused 'socket.* 107 bytes'
capture_vm refused "$URI" --scratch-dir "$L/none"
expect_refused "$L/none"
capture_vm refused "$URI" --scratch-dir "$L/guests/vm/domain.xml"
expect_refused 'domain.xml is no directory'

# --- who may only look ------------------------------------------------------------------------

look_only="qemu+unix:///system?socket=$virt_run/libvirt-sock-ro"
capture_vm look "$look_only" --dry-run
expect_exit 0
expect_report '.status == "dry_run" and .source.domain.name == "vm"'
hooks_ran || fail "a dry run froze the guest"
capture_vm look "$look_only"
expect_refused 'read.only'

# --- over ssh ------------------------------------------------------------------------------------

sshd_up
capture_vm refused "$SSH_URI"
expect_refused 'scratch-dir'
capture_vm refused "$SSH_URI" --scratch-dir "$long"
expect_refused 'socket.* 107 bytes'

mkdir -m 1777 "$L/there"
there=(--scratch-dir "$L/there")
capture_vm far "$SSH_URI" "${there[@]}"
expect_quiesced
expect_report '.source.domain.uri | startswith("qemu+ssh:")'
expect_nothing_left

# --- over an ssh that breaks --------------------------------------------------------------------

expect_private_forward() {
	local dir

	dir=$(find "$XDG_RUNTIME_DIR" -mindepth 1 -maxdepth 1 -name 'ccsnap-ssh-*')
	[ "$(stat -c '%a %u' "$dir")" = "700 0" ] || fail "others may enter: $(ls -ld "$dir")"
	[ "$(stat -c '%F %a' "$dir"/*)" = "socket 600" ] || fail "not private: $(ls -l "$dir")"
}
expect_failed() { # EXTENDED-REGEX
	status=0
	wait $pid || status=$?
	expect_exit 1
	expect_stderr "$1"
	expect_hooks $((hooks + 1))
	expect_report '.status == "failed" and .image.path == null'
	cp report.json "reports/$SECONDS"
	expect_empty store
}

# The way to the data only: the rest is put right at once.
ccsnap_in_background "$SSH_URI" "${there[@]}"
expect_private_forward
# shellcheck disable=SC2046
kill $(ssh_pids ' -L ')
expect_failed 'ssh|connection|disk'
expect_nothing_left
expect_empty "$L/there"

# All of it, and the host stays out of reach for the rest of the run.
ccsnap_in_background "$SSH_URI" "${there[@]}"
sshd_down
# shellcheck disable=SC2046
kill $(ssh_pids)
expect_failed 'may still have our backup job: .*ssh'
guest_writes vm || fail "it does not write any more"
sshd_start
capture_vm again "$SSH_URI" "${there[@]}"
expect_quiesced
expect_nothing_left
expect_empty "$L/there"
expect_valid_report reports/*
