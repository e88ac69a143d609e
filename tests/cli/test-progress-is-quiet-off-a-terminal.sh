#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No bar and no escape sequence where the output is no terminal; --progress=json is one
# JSON object a line; on a terminal there is a bar.
. "$(dirname "$0")/../lib/lib.sh"
requires jq mke2fs script

make_disk disk.raw 16
for term in xterm dumb ''; do
	TERM=$term ccsnap create --source disk.raw --output out-"$term".qcow2
	expect_exit 0
	! grep -qE $'[\r\e\b]' "$out" "$err" || fail "control characters"
done
env -u TERM "$CCSNAP" create --source disk.raw --output out.qcow2 >"$out" 2>"$err" </dev/null
! grep -qE $'[\r\e\b]' "$out" "$err" || fail "control characters"

ccsnap create --source disk.raw --output json.qcow2 --progress json --level 12
expect_exit 0
[ "$(wc -l <"$out")" -ge 2 ] || fail "hardly any progress"
while IFS= read -r line; do
	jq -e 'type == "object"' <<<"$line" >/dev/null || fail "no object: $line"
done <"$out"

TERM=xterm script -qec "'$CCSNAP' create --source disk.raw --output bar.qcow2 --level 15" typescript \
	</dev/null >"$out"
grep -q '%' typescript || fail "no bar on a terminal: $(cat -v typescript)"
[ -e bar.qcow2 ] || fail "no image"
