#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# INT, TERM and HUP end a run promptly: exit 128+n, report "interrupted", nothing left.
. "$(dirname "$0")/../lib/lib.sh"
requires jq mke2fs qemu-img

make_disk disk.raw 32
qemu-img convert -f raw -O qcow2 disk.raw disk.qcow2
options=("${slow[@]}" --threads 2 --progress json --report report.json)

started() {
	[ "$(grep -c '' "$out")" -ge "$1" ]
}

# interrupted SIGNAL NUMBER LINES-OF-PROGRESS-BEFORE COMMAND...
interrupted() {
	local pid begin

	rm -f report.json
	: >"$out"
	last_command="$1: ${*:4}"
	env --default-signal "$CCSNAP" "${@:4}" "${options[@]}" >"$out" 2>"$err" </dev/null &
	pid=$!
	wait_until 60 started "$3" || fail "no progress"
	begin=$SECONDS
	kill -"$1" $pid
	[ "$1" != INT ] || kill -INT $pid 2>/dev/null || true # a second one changes nothing
	status=0
	wait $pid || status=$?
	[ $((SECONDS - begin)) -le 15 ] || fail "took $((SECONDS - begin)) s to stop"
	expect_exit $((128 + $2))
	expect_report '.status == "interrupted" and .exit_code == '$((128 + $2))
	expect_empty store
	expect_empty "$TMPDIR"
	expect_gone out.qcow2
	! pgrep -f "qemu-nbd.*$T" >/dev/null || fail "qemu-nbd is still there"
}

for lines in 1 3; do
	interrupted TERM 15 $lines create a --source disk.raw --to folder:store
	interrupted INT 2 $lines create a --source disk.qcow2 --source-format qcow2 --to folder:store
	interrupted HUP 1 $lines create a --source disk.raw --output out.qcow2
	interrupted INT 2 $lines convert disk.qcow2 out.qcow2 --source-format qcow2
done

# And what was there before is there still.
ccsnap create a --source disk.raw --output out.qcow2 --threads 2
expect_exit 0
cp out.qcow2 kept.qcow2
env --default-signal "$CCSNAP" create a --source disk.raw --output out.qcow2 --overwrite \
	"${options[@]}" >"$out" 2>"$err" </dev/null &
pid=$!
wait_until 20 started 1
kill -TERM $pid
status=0
wait $pid || status=$?
expect_exit 143
expect_identical out.qcow2 kept.qcow2
