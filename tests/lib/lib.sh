# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What every shell test begins with:
#
#	. "$(dirname "$0")/../lib/lib.sh"
#
# The test then stands in a directory of its own ($T) with an empty store/, which goes with
# all that was mounted and started in it when the test ends.  It tests
# $CCSNAP, by default the program in $TEST_BUILD (default: build/).  Exit 77
# means skipped, with the reason on the last line.
set -eEuo pipefail

test_lib=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$test_lib/../.." && pwd)
TEST_BUILD=${TEST_BUILD:-$top/build}
CCSNAP=${CCSNAP:-$TEST_BUILD/ccsnap}
CCSNAP_CACHE=${CCSNAP_CACHE:-$TEST_BUILD/cache}
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export LC_ALL=C.UTF-8

T=$(mktemp -d "${TMPDIR:-/tmp}/ccsnap-test.XXXXXX")
cd "$T"
mkdir home tmp run store
export HOME=$T/home TMPDIR=$T/tmp
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME XDG_RUNTIME_DIR
out=$T/run/out err=$T/run/err status=

# --- the end of a test -------------------------------------------------------

declare -a cleanups=()

at_exit() { # COMMAND...
	cleanups+=("$(printf '%q ' "$@")")
}

finish() {
	local verdict=$? i

	trap - ERR
	set +e
	if [ $verdict = 0 ] && [ -n "$(ls -A "$TMPDIR")" ]; then
		echo "FAIL: left behind in TMPDIR:"
		ls -lA "$TMPDIR"
		verdict=1
	fi
	cd /
	for ((i = ${#cleanups[@]} - 1; i >= 0; i--)); do
		eval "${cleanups[i]}"
	done >/dev/null 2>&1
	# shellcheck disable=SC2046
	{ kill -9 $(jobs -p) && wait; } 2>/dev/null
	rm -rf --one-file-system "$T"
	exit $verdict
}
trap finish EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
trap 'echo "FAIL: ${BASH_SOURCE[0]}:$LINENO: $BASH_COMMAND"' ERR

skip() {
	echo "$*"
	exit 77
}

fail() {
	echo "FAIL: $*"
	if [ -n "$status" ]; then
		echo "last command: ${last_command:-}"
		echo "exit: $status"
		[ ! -s "$out" ] || head -n 20 "$out" | sed 's/^/stdout: /'
		[ ! -s "$err" ] || head -n 20 "$err" | sed 's/^/stderr: /'
	fi
	exit 1
}

requires() { # PROGRAM...
	local program

	for program; do
		command -v "$program" >/dev/null || skip "$program is not installed"
	done
}

requires_root() {
	[ "$(id -u)" = 0 ] || skip "needs root"
}

is_full() {
	[ "${CCSNAP_TEST_TIER:-default}" = full ]
}

# --- act ---------------------------------------------------------------------

# Run to the end whatever the outcome; then see $status, $out, $err.
run() { # COMMAND...
	last_command=$*
	status=0
	"$@" >"$out" 2>"$err" </dev/null || status=$?
}

# The program under test, never for longer than a hang would deserve.
ccsnap() {
	run timeout -k 5 "${LIMIT:-240}" "$CCSNAP" "$@"
}

# From now on the program runs as an ordinary user, who then owns all that is here.
as_ordinary_user() {
	[ "$(id -u)" = 0 ] || return 0
	requires setpriv
	cp "$CCSNAP" run/program
	printf '#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups "%s" "$@"\n' \
		"$T/run/program" >run/as-user
	chmod 755 run/as-user run/program
	chown -hR 65534:65534 "$T"
	CCSNAP=$T/run/as-user
}

# create NAME SOURCE OPTION...: into ./store, with ./report.json, successfully;
# the image's path is then in $image.
create() {
	mkdir -p store
	ccsnap create "$1" --source "$2" --to folder:store --report report.json "${@:3}"
	expect_exit 0
	# shellcheck disable=SC2034 # for the test
	image=$(report .image.path)
}

# capture NAME TREE OPTION...: the same from a tree, which may also end with warnings; the
# disk is then in ./disk.raw, sound in every view, and its root filesystem in $fs.
capture() {
	mkdir -p store
	ccsnap create "$1" --source "$2" --to folder:store --overwrite --report report.json "${@:3}"
	expect_exit 0 3
	image=$(report .image.path)
	unpack "$image"
}

# unpack IMAGE: into ./disk.raw; sets $fs to what e2fsprogs call its root filesystem.
unpack() {
	requires sfdisk sgdisk e2fsck debugfs qemu-img
	rm -f disk.raw
	qemu-img convert -O raw "$1" disk.raw || fail "cannot unpack $1"
	fs="$PWD/disk.raw?offset=$(partition_offset disk.raw 1)"
	sgdisk -v disk.raw >run/sgdisk 2>&1 || fail "sgdisk -v: $(cat run/sgdisk)"
	grep -q 'No problems found' run/sgdisk || fail "sgdisk -v: $(cat run/sgdisk)"
	e2fsck -fn "$fs" >run/e2fsck 2>&1 || fail "e2fsck -fn: $(cat run/e2fsck)"
}

# In bytes, of the partition with that number.
partition_offset() { # DISK NUMBER
	sfdisk -J "$1" | jq --arg number "$2" '.partitiontable | .sectorsize as $unit |
		.partitions[] | select(.node | endswith("raw" + $number)) | .start * $unit'
}

# Under strace, which LeakSanitizer cannot be.
traced() { # TRACE-FILE STRACE-OPTION... -- COMMAND...
	local trace=$1 options=()

	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 run timeout -k 5 240 \
		strace -f -qq -o "$trace" "${options[@]}" -- "$@"
}

# Wait until COMMAND succeeds, at most SECONDS.
wait_until() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))

	until "${@:2}"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

# Options that make a run of a few megabytes last for seconds.
slow=(--compression zstd --cluster-size 4K --level 19)

# --- check -------------------------------------------------------------------

expect_exit() { # STATUS...
	local wanted

	for wanted; do
		[ "$status" != "$wanted" ] || return 0
	done
	fail "expected exit $*"
}

expect_stderr() { # EXTENDED-REGEX
	grep -qE -- "$1" "$err" || fail "stderr lacks: $1"
}

expect_stdout() { # EXTENDED-REGEX
	grep -qE -- "$1" "$out" || fail "stdout lacks: $1"
}

# A refusal is one line and no more.
expect_one_line() { # [EXTENDED-REGEX]
	[ "$(wc -l <"$err")" = 1 ] || fail "expected one line on stderr"
	expect_stderr "${1:-.}"
}

expect_gone() { # PATH...
	local path

	for path; do
		[ ! -e "$path" ] && [ ! -L "$path" ] || fail "$path is there"
	done
}

# A directory that is missing or holds nothing, hidden names included.
expect_empty() { # DIRECTORY...
	local dir

	for dir; do
		[ ! -e "$dir" ] || [ -z "$(ls -A "$dir")" ] || fail "left behind: $(ls -lA "$dir")"
	done
}

expect_identical() { # FILE FILE
	cmp -- "$1" "$2" || fail "$1 and $2 differ"
}

virtual_size() { # IMAGE FORMAT
	qemu-img info -f "$2" --output=json "$1" | jq '.["virtual-size"]'
}

# qemu's view: sound, and equal to the disk (raw), size included.
expect_image_equals() { # IMAGE FORMAT DISK
	[ "$2" = raw ] || qemu-img check -q -f "$2" "$1" || fail "qemu-img check $1"
	[ "$(virtual_size "$1" "$2")" = "$(stat -L -c %s "$3")" ] || fail "$1: wrong virtual size"
	qemu-img compare -q -f "$2" -F raw "$1" "$3" || fail "$1 does not equal $3"
}

# Our own, independent decoder of qcow2: strict about the format, cmp about the content.
expect_decoded_equals() { # IMAGE DISK
	"$TEST_BUILD/tests/lib/qcow2-decode" "$1" "$T/run/decoded" || fail "qcow2-decode $1"
	expect_identical "$T/run/decoded" "$2"
	rm "$T/run/decoded"
}

report() { # JQ-FILTER [FILE]
	jq -r "$1" "${2:-report.json}"
}

expect_report() { # JQ-CONDITION [FILE]
	jq -e "$1" "${2:-report.json}" >/dev/null ||
		fail "report does not hold '$1': $(cat "${2:-report.json}")"
}

# Sets $python to one that has jsonschema.
requires_jsonschema() {
	for python in python3 /usr/bin/python3; do
		"$python" -c 'import jsonschema' 2>/dev/null && return
	done
	skip "python3-jsonschema is not installed"
}

expect_valid_report() { # [FILE...]
	[ $# -gt 0 ] || set -- report.json
	"$python" - "$top/docs/report.schema.json" "$@" <<-'END' || fail "not valid"
	import json, sys, jsonschema
	schema, *reports = (json.load(open(path, "rb")) for path in sys.argv[1:])
	jsonschema.Draft7Validator.check_schema(schema) if "draft-07" in schema.get("$schema", "") else None
	for report in reports: jsonschema.validate(report, schema)
	END
}

# debugfs, on the image that was unpacked last.
look() { # COMMAND
	debugfs -R "$1" "$fs" 2>/dev/null
}

is_inside() { # PATH
	look "stat \"$1\"" | grep -q '^Inode:'
}

expect_inside() { # PATH...
	local path

	for path; do
		is_inside "$path" || fail "$path is not in the image"
	done
}

expect_not_inside() { # PATH...
	local path

	for path; do
		! is_inside "$path" || fail "$path is in the image"
	done
}

expect_content() { # PATH TEXT
	[ "$(look "cat \"$1\"")" = "$2" ] || fail "$1 in the image holds: $(look "cat \"$1\"")"
}

# --- set up ------------------------------------------------------------------

# The smallest multiple of 512 that holds the file: what a disk of it looks like.
pad_to_sectors() { # FROM TO
	cp --sparse=always -- "$1" "$2"
	truncate -s $((($(stat -c %s "$1") + 511) / 512 * 512)) "$2"
}

# Copies of real files of this machine, about as many bytes as asked for.
fill_tree() { # DIRECTORY MEBIBYTES
	local round=0 have=0

	while [ "$have" -lt $(($2 * 1024 * 95 / 100)) ] && [ $round -lt 8 ]; do
		mkdir -p "$1/$round"
		# An ordinary user may not look everywhere.
		(find /usr/share /usr/lib /usr/bin /usr/include -xdev -type f -readable \
			-size -16M -printf '%s\t%p\n' 2>/dev/null || true) | LC_ALL=C sort |
			shuf --random-source=<(yes) |
			awk -F '\t' -v left=$((($2 * 1024 - have) * 1024)) \
				'left >= $1 { left -= $1; print $2 }' |
			tr '\n' '\0' | xargs -0 cp --parents -t "$1/$round" --
		have=$(du -s --apparent-size -k "$1" | cut -f1)
		round=$((round + 1))
	done
}

# A file system of real files with free space in it, made once and kept.
make_disk() { # FILE [MEBIBYTES-OF-FILES]
	local mib=${2:-16} kept

	requires mke2fs
	kept=$CCSNAP_CACHE/disk-$mib.raw
	mkdir -p "$CCSNAP_CACHE"
	(
		flock 9
		[ -e "$kept" ] && exit
		fill_tree "$T/run/tree" "$mib"
		# Twice the size: half of the disk is free space, as on most disks.
		truncate -s $((mib * 2 + 16))M "$kept.new"
		mke2fs -q -F -t ext4 -d "$T/run/tree" "$kept.new"
		rm -rf "$T/run/tree"
		mv "$kept.new" "$kept"
	) 9>"$CCSNAP_CACHE/lock"
	cp --sparse=always --reflink=auto -- "$kept" "$1"
}

# All that a cluster can be, a MiB each in turn: text, noise, zeros, a hole.
make_mixed_disk() { # FILE MEBIBYTES
	local i

	truncate -s "$2M" "$1"
	for ((i = 0; i < $2; i += 4)); do
		(yes "block $i" || true) |
			dd of="$1" bs=1M seek=$i count=1 conv=notrunc iflag=fullblock status=none
		dd if=/dev/urandom of="$1" bs=1M seek=$((i + 1)) count=1 conv=notrunc status=none
		dd if=/dev/zero of="$1" bs=1M seek=$((i + 2)) count=1 conv=notrunc status=none
	done
}

mount_tmpfs() { # DIRECTORY SIZE
	mkdir -p "$1"
	mount -t tmpfs -o "size=$2" ccsnap-test "$1" || skip "tmpfs cannot be mounted here"
	at_exit umount -l "$PWD/$1"
}

# serve_file DISK FILE SHELL-TEXT: FILE (FUSE, through nbdkit) reads as DISK does, except
# that SHELL-TEXT runs before each read, with $3 bytes at offset $4.
serve_file() {
	requires nbdkit nbdfuse fusermount3
	[ -w /dev/fuse ] || skip "no /dev/fuse here"
	cat >"run/plugin.$2" <<-END
		#!/bin/sh
		case "\$1" in
		get_size) stat -c %s "$PWD/$1" ;;
		pread)
			$3
			dd if="$PWD/$1" iflag=skip_bytes,count_bytes skip=\$4 count=\$3 bs=64k status=none
			;;
		*) exit 2 ;;
		esac
	END
	chmod +x "run/plugin.$2"
	rm -f "$2"
	: >"$2"
	nbdfuse -r "$2" --command nbdkit -s --exit-with-parent sh "$PWD/run/plugin.$2" 2>run/nbdkit.log &
	at_exit fusermount3 -u -z "$PWD/$2"
	wait_until 10 has_size_of "$1" "$2" || skip "nbdfuse does not work here"
}

has_size_of() { # FILE FILE
	[ "$(stat -c %s "$1")" = "$(stat -c %s "$2" 2>/dev/null)" ]
}

stop_serving() { # FILE
	fusermount3 -u -z "$1"
}

# attach_loop FILE OPTION...: sets $loop.
attach_loop() {
	loop=$(losetup --find --show "${@:2}" "$1") || skip "no loop device to be had here"
	at_exit losetup -d "$loop"
}
