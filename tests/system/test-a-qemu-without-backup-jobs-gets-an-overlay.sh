#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Where libvirt refuses a backup job, the guest writes to an overlay while its disk is read.
# However that ends, the guest is back on its disk, all it has written is there, and the overlay
# is gone.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/libvirt.sh"
requires jq gcc e2fsck debugfs dumpe2fs
requires_jsonschema
export XDG_STATE_HOME=$T/home/state
mkdir reports
session_up

# --- a libvirt that has no backup jobs ------------------------------------------------------

# All calls reach the real one.  A disk that is not there is refused with the code that stands for
# "not supported".  A commit gets COMMIT_MIB a second, so that it can be met while it runs.
build_preload() {
	cat >run/preload.c <<-'C'
		#include <dlfcn.h>
		#include <libvirt/libvirt.h>
		#include <stdlib.h>

		int virDomainBackupBegin(virDomainPtr domain, const char *xml,
					 const char *checkpoint, unsigned int flags)
		{
			const char *none =
				"<domainbackup mode='pull'><server transport='unix' socket='/none'/>"
				"<disks><disk name='vdz' type='file'><scratch file='/none'/></disk></disks>"
				"</domainbackup>";
			int (*real)(virDomainPtr, const char *, const char *, unsigned int);

			(void)xml;
			*(void **)&real = dlsym(RTLD_NEXT, "virDomainBackupBegin");
			return real(domain, none, checkpoint, flags);
		}

		int virDomainBlockCommit(virDomainPtr domain, const char *disk, const char *base,
					 const char *top, unsigned long bandwidth,
					 unsigned int flags)
		{
			const char *mib = getenv("COMMIT_MIB");
			int (*real)(virDomainPtr, const char *, const char *, const char *,
				    unsigned long, unsigned int);

			*(void **)&real = dlsym(RTLD_NEXT, "virDomainBlockCommit");
			return real(domain, disk, base, top,
				    mib ? strtoul(mib, NULL, 10) : bandwidth, flags);
		}
	C
	gcc -shared -fPIC -D_GNU_SOURCE -o run/preload.so run/preload.c -ldl 2>"$err" ||
		skip "no libvirt to compile against: $(cat "$err")"
}
build_preload

scratch=$L/s/scratch
mkdir -m 700 "$scratch"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$scratch"
for format in raw qcow2; do
	guest_define $format --words "writer heavy=24" --format $format
done
as_ordinary_user
printf '#!/bin/sh\nLD_PRELOAD="%s" exec "%s" "$@"\n' "$T/run/preload.so" "$CCSNAP" >run/without-jobs
chmod 755 run/without-jobs
CCSNAP=$T/run/without-jobs
for format in raw qcow2; do
	guest_start $format --no-wait
done
for format in raw qcow2; do
	guest_wait $format
done

# --- act --------------------------------------------------------------------------------------

# start GUEST OPTION...: in the background.
start() {
	: >run/progress
	env --default-signal "$CCSNAP" create snap --domain "$1" --connect "$URI" \
		--to folder:store --overwrite --report report.json \
		--scratch-dir "${place:-$scratch}" --progress json "${@:2}" >run/progress 2>"$err" &
	pid=$! status='' last_command="create snap --domain $*"
}

# The same, and stop it when it has begun to read: so it is in the middle for as long as needed.
begin() { # GUEST OPTION...
	start "$@" --limit-rate 4M
	wait_until 120 is_reading_or_over || true
	is_reading || fail "it does not read: $(cat "$err")"
	kill -STOP $pid
	expect_overlay "$1"
}
is_reading() {
	grep -q '"done_bytes": *[1-9]' run/progress
}
is_reading_or_over() {
	is_reading || is_no_process "$pid"
}

end() {
	status=0
	kill -CONT $pid 2>/dev/null || true
	{ wait $pid || status=$?; } 2>/dev/null
}

guard_of() { # PID
	pgrep -P "$1" -x ccsnap-guard
}

# Both at once, as far as they can tell.
kill_both() {
	local guard

	guard=$(guard_of $pid) || fail "no guard"
	kill -STOP $pid "$guard"
	kill -KILL $pid "$guard"
	end
	wait_until 60 is_no_process "$guard"
}

kill_run() {
	local guard

	guard=$(guard_of $pid) || fail "no guard"
	kill -KILL $pid
	end
	wait_until 120 is_no_process "$guard" || fail "the guard does not end"
}

# Until its overlay is merged, which goes on slowly.
begin_slow_commit() { # GUEST
	COMMIT_MIB=1 start "$1"
	wait_until 120 is_committed "$1" || fail "no commit: $(cat "$err")"
}
is_committed() { # GUEST
	virsh_ blockjob "$1" vda 2>&1 | grep -q 'Active Block Commit'
}
hurry() { # GUEST
	is_committed "$1" || fail "the commit has ended already"
	virsh_ blockjob "$1" vda --bandwidth 0
}

# --- check ------------------------------------------------------------------------------------

# What its disk is, now and at the next start.
disk_of() { # GUEST [OPTION]
	virsh_ domblklist "$@" | awk '$1 == "vda" { print $2 }'
}

expect_overlay() { # GUEST
	[[ $(disk_of "$1") == "${place:-$scratch}"/ccsnap-* ]] ||
		fail "its disk is $(disk_of "$1"): $(cat "$err")"
}

expect_base() { # GUEST
	[ "$(disk_of "$1" --inactive)" = "$(guest_disk "$1")" ] ||
		fail "defined is $(disk_of "$1" --inactive)"
	[ "$(disk_of "$1")" = "$(guest_disk "$1")" ] || fail "its disk is $(disk_of "$1")"
	expect_empty "${place:-$scratch}"
	! grep -arE '^(frozen|patience|scratch|socket|overlay)' "$XDG_STATE_HOME" || fail "noted"
}

expect_at_work() { # GUEST
	expect_base "$1"
	guest_is_thawed "$1" || fail "it is frozen"
	guest_writes "$1" || fail "it does not write any more"
	! is_committed "$1" || fail "it has a job"
}

# All that the guest was told is on its disk.
expect_all_written() { # GUEST
	local told newest

	told=$(guest_lines "$1" tick | tail -n 1 | cut -d ' ' -f 2)
	qemu-img convert -q -U -f "$1" -O raw "$(guest_disk "$1")" run/base
	check_writer_image run/base crashed raw
	e2fsck -p run/base >/dev/null 2>&1 || true
	newest=$(debugfs -R 'ls -p /pairs' run/base 2>/dev/null | sed -n 's,.*/b-0*\([0-9]*\)/.*,\1,p' |
		sort -n | tail -n 1)
	[ "$newest" -ge "$told" ] || fail "the disk has $newest transactions, $told were done"
}

# Nothing that is on its way then changes it.
expect_all_written_by_now() { # GUEST
	virsh_ suspend "$1"
	expect_all_written "$1"
	virsh_ resume "$1"
}

# --- as it should be ----------------------------------------------------------------------------

for format in raw qcow2; do
	begin $format
	guest_writes $format || fail "it does not write while it is read"
	end
	expect_exit 0
	expect_report '.source.consistency == "quiesced" and (.quiesce | .quiesced and
		.method == "snapshot" and .filesystems == 1 and .thawed_by == "ccsnap")'
	cp report.json "reports/$format"
	expect_at_work $format
	expect_all_written_by_now $format
	qemu-img check -q "$(report .image.path)" || fail "the image is not sound"
	check_writer_image "$(report .image.path)" quiesced
	rm store/*
done

# --- killed while it reads: the guard puts all right, or else who comes next -----------------------

begin raw
kill_run
expect_at_work raw

begin raw
kill_both
expect_overlay raw
guest_writes raw || fail "it does not write any more"
ccsnap recover --domain raw --connect "$URI"
expect_exit 0
expect_stdout 'overlay'
expect_at_work raw

# --- killed while it commits ---------------------------------------------------------------------------

begin_slow_commit raw
kill -KILL $pid
end
hurry raw
ccsnap recover --domain raw --connect "$URI" --lock-wait 120
expect_exit 0
expect_at_work raw

begin_slow_commit qcow2
kill_both
hurry qcow2
ccsnap create snap --domain qcow2 --connect "$URI" --to folder:store --overwrite \
	--report report.json --scratch-dir "$scratch"
expect_exit 0
expect_stderr 'left by an earlier run: .*overlay'
expect_report '.quiesce | .quiesced and .method == "snapshot"'
expect_at_work qcow2
expect_all_written_by_now qcow2
check_writer_image "$(report .image.path)" quiesced
rm store/*

# --- interrupted ---------------------------------------------------------------------------------------

begin qcow2
kill -INT $pid
end
expect_exit 130
expect_report '.status == "interrupted"'
cp report.json reports/interrupted
expect_at_work qcow2
expect_empty store

# --- it cannot be merged: the user is told what to type -----------------------------------------------------

begin raw
guard=$(guard_of $pid) || fail "no guard"
chmod 444 "$(guest_disk raw)"
end
wait_until 120 is_no_process "$guard" || fail "the guard does not end"
chmod 644 "$(guest_disk raw)"
expect_exit 1
expect_stderr "do not remove it.*by hand: virsh -c .* blockcommit $(virsh_ domuuid raw) vda"
expect_overlay raw
guest_writes raw || fail "it does not write any more"
by_hand=$(sed -n 's/.*by hand: //p' "$err" | head -n 1)
overlay=$(disk_of raw)
as_user sh -c "$by_hand" >"$out" 2>&1 || fail "$by_hand: $(cat "$out")"
# Nobody but the user knows whether it was all done.
ccsnap recover --domain raw --connect "$URI"
expect_exit 1
expect_stderr "$overlay .*remove it"
rm "$overlay"
ccsnap recover --domain raw --connect "$URI"
expect_exit 0
expect_at_work raw
rm -f store/*

# --- no room for what the guest writes -----------------------------------------------------------------------

is_stopped() { # GUEST
	virsh_ domstate --reason "$1" | grep -q 'paused (I/O error)'
}

if [ "$(id -u)" = 0 ]; then
	place=$L/small
	mkdir "$place"
	mount -t tmpfs -o size=48m,mode=700,uid=65534,gid=65534 ccsnap-test "$place" ||
		skip "tmpfs cannot be mounted here"
	at_exit umount -l "$place"
	begin raw
	! head -c 64M /dev/zero 2>/dev/null >"$place/filler" || fail "$place is not full"
	wait_until 120 is_stopped raw || fail "the guest still writes: $(guest_state raw)"
	end
	rm "$place/filler"
	expect_exit 1
	expect_stderr "$place.* ran out"
	expect_at_work raw
	expect_empty store
	expect_all_written_by_now raw
	unset place
fi

# --- the guest goes down meanwhile ---------------------------------------------------------------------------

is_off() { # GUEST
	[ "$(guest_state "$1")" = "shut off" ]
}

begin raw
guest_stop raw
end
expect_exit 1
expect_stderr 'shut down'
is_off raw || fail "it runs again"
expect_base raw
expect_all_written raw

begin qcow2
virsh_ shutdown qcow2 --mode agent >/dev/null
wait_until 120 is_off qcow2 || fail "it does not go down"
end
expect_exit 1
expect_stderr 'shut down'
is_off qcow2 || fail "it runs again"
expect_base qcow2
expect_all_written qcow2
expect_empty store
expect_valid_report reports/*
