#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A source that stops answering fails the run after --stall-timeout, with the place, and
# a signal still ends it meanwhile.
. "$(dirname "$0")/../lib/lib.sh"
requires_root
requires jq qemu-img

head -c 16M /dev/urandom >disk.raw
falls_silent="[ \$4 -lt 8388608 ] || [ ! -e '$T/silent' ] || sleep 25"
serve_file disk.raw file "$falls_silent"

create whole file --stall-timeout 20
expect_image_equals "$image" qcow2 disk.raw
stop_serving file
rm -rf store && mkdir store
touch silent

stalls() { # FILE FORMAT
	local begin=$SECONDS

	ccsnap create a --source "$1" --source-format "$2" --to folder:store --stall-timeout 2 \
		--report report.json
	[ $((SECONDS - begin)) -le 15 ] || fail "took $((SECONDS - begin)) s"
	expect_exit 1
	expect_one_line '[0-9]{5,}|stall'
	expect_empty store
	expect_report '.status == "failed"'
}
serve_file disk.raw silent.raw "$falls_silent"
stalls silent.raw raw

# The same through qemu-nbd.
rm silent
qemu-img convert -f raw -O qcow2 disk.raw disk.qcow2
serve_file disk.qcow2 silent.qcow2 "$falls_silent"
touch silent
stalls silent.qcow2 qcow2

# A signal does not wait for the source.
serve_file disk.raw other.raw "$falls_silent"
begin=$SECONDS
"$CCSNAP" create a --source other.raw --to folder:store --stall-timeout 0 >"$out" 2>"$err" \
	</dev/null &
pid=$!
sleep 1
kill -TERM $pid
status=0
wait $pid || status=$?
last_command="create, with a signal"
expect_exit 143
[ $((SECONDS - begin)) -le 15 ] || fail "took $((SECONDS - begin)) s"
expect_empty store
