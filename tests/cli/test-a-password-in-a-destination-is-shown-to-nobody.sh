#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# User, password and signature of a URL stand in argv only until it is read.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"

mkdir a:
head -c 4M /dev/urandom >a://b:c@disk.raw
fake_server
is_hidden() {
	grep -qF '://*' "/proc/$pid/cmdline" && ! grep -q hidden "/proc/$pid/cmdline"
}
for to in "--to=${fake/:\/\//:\/\/user:hidden-word@}/dav/a?sig=hidden-sig" \
	"--to ${fake/:\/\//:\/\/hidden-token@}/dav/b"; do
	# shellcheck disable=SC2086 # one word or two
	"$CCSNAP" upload a://b:c@disk.raw $to --limit-rate 1M >"$out" 2>"$err" </dev/null &
	pid=$!
	wait_until 3 is_hidden 2>/dev/null || fail "$(tr '\0' ' ' <"/proc/$pid/cmdline")$(cat "$err")"
	tr '\0' '\n' <"/proc/$pid/cmdline" | grep -qxF a://b:c@disk.raw || fail "too much is hidden"
	kill $pid
	wait $pid || true
done

# What is no destination, or another one than was meant, is not told back either.
for to in ftp://user:hidden-word@host/x folder:http://user:hidden-word@host/x; do
	ccsnap list --to="$to"
	! grep -q hidden "$out" "$err" || fail "told back: $to"
done
echo "to = folder:http://user:hidden%2Dword@host/x" >c.conf
ccsnap upload a://b:c@disk.raw hidden-word --config c.conf
! grep -q hidden "$err" || fail "told back: $(cat "$err")"
