#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# However a run ends, its report is one valid JSON object that tells how.
. "$(dirname "$0")/../lib/lib.sh"
requires jq mke2fs qemu-img
requires_jsonschema

ended() { # STATUS EXIT
	expect_exit "$2"
	expect_valid_report
	expect_report ".status == \"$1\" and .exit_code == $2 and .schema == \"ccsnap.report/1\""
	[ "$1" = ok ] || [ "$1" = warnings ] || [ "$1" = dry_run ] ||
		expect_report '.error | tostring | length > 5'
	rm -f report.json
}

make_disk disk.raw 4
options=(--to folder:store --report report.json)

ccsnap create fine --source disk.raw "${options[@]}" --property color=blau
expect_report '.creation_seconds > 0 and .upload_seconds >= 0 and .boot_seconds == null'
expect_report '.final_size_bytes == .image.size_bytes and (.phases | length) >= 3'
expect_report '.started_at | test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")'
expect_report '.capture.virtual_size_bytes == '"$(stat -c %s disk.raw)"
expect_report '.capture.data_bytes + .capture.zero_bytes == .capture.virtual_size_bytes'
ended ok 0

# Beside the image, when no other place was named.
ccsnap create default --source disk.raw --to folder:store
expect_exit 0
cp store/default*report*.json report.json || fail "no report beside the image: $(ls -la store)"
ended ok 0

ccsnap create fine --source disk.raw "${options[@]}"
ended refused 4
ccsnap create missing --source nosuch.raw "${options[@]}"
expect_exit 1 4
ended "$(report .status)" "$(report .exit_code)"
ccsnap create limit --source disk.raw "${options[@]}" --max-virtual-size 1M
ended refused 4
ccsnap create dry --source disk.raw "${options[@]}" --dry-run
ended dry_run 0
(head -c 513 /dev/urandom >odd.raw)
ccsnap create odd --source odd.raw "${options[@]}"
expect_report '.warnings | length == 1'
ended "$(report .status)" 0

ccsnap create raw --source disk.raw "${options[@]}" --format raw
ended ok 0
qemu-img convert -f raw -O qcow2 disk.raw disk.qcow2
ccsnap create other --source disk.qcow2 --source-format qcow2 "${options[@]}"
ended ok 0
ccsnap convert disk.qcow2 out.qcow2 --source-format qcow2 --report report.json
ended ok 0
head -c 200 disk.qcow2 >bad.qcow2
ccsnap create bad --source bad.qcow2 --source-format qcow2 "${options[@]}"
expect_exit 1 4
ended "$(report .status)" "$(report .exit_code)"

# Interrupted, and busy meanwhile.
make_disk larger.raw 16
env --default-signal "$CCSNAP" create slow --source larger.raw "${options[@]}" "${slow[@]}" \
	--progress json >progress 2>"$err" </dev/null &
pid=$!
wait_until 20 test -s progress || fail "no progress"
ccsnap create slow --source disk.raw --to folder:store --report busy.json
kill -TERM $pid
expect_exit 75
expect_valid_report busy.json
expect_report '.status == "busy" and .exit_code == 75' busy.json
status=0
wait $pid || status=$?
ended interrupted 143

# No report for a wrong command line.
ccsnap create --no-such-option "${options[@]}"
expect_exit 2
expect_gone report.json
