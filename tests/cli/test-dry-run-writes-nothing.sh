#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A dry run opens nothing for writing, makes nothing, changes no time stamp, and says
# how big the image would be and whether it fits.
. "$(dirname "$0")/../lib/lib.sh"
requires strace jq mke2fs qemu-img

make_disk disk.raw 16
qemu-img convert -f raw -O qcow2 disk.raw disk.qcow2
create real disk.raw
size=$(report .final_size_bytes)
rm report.json
snapshot() {
	find . -path ./run -prune -o -path ./tmp -prune -o -path ./trace -prune -o -printf '%p %i %s %T@ %C@ %m\n' | sort
}
: >trace
for format in raw qcow2; do
	for where in "--to folder:store new" "--output out.qcow2"; do
		snapshot >run/before
		# shellcheck disable=SC2086
		traced trace -e trace=file,desc,network -- "$CCSNAP" create --dry-run \
			--source disk.$format --source-format $format $where
		expect_exit 0
		expect_stdout '[0-9.]+ (B|KiB|MiB)'
		snapshot >run/after
		diff run/before run/after || fail "something changed"
		if grep -E 'open[a-z0-9]*\(.*O_(WRONLY|RDWR|CREAT|TRUNC)' trace | grep -vE '"/dev/(null|tty)"|= -1 '; then
			fail "opened for writing"
		fi
		# A child's socket comes and goes in a directory of its own.
		if [ $format = raw ] && grep -E '(mkdir|unlink|rename|link|chmod|chown|truncate|utimens)[a-z0-9]*\(' trace |
			grep -vE '(readlink|= -1 )'; then
			fail "changed something"
		fi
		! grep -E 'connect\(.*AF_INET' trace || fail "connected"
	done
done

# The estimate is near what it became.
ccsnap create --dry-run --source disk.raw --to folder:store new --json --report report.json
expect_exit 0
jq -e . "$out" >/dev/null || fail "--json printed no JSON"
estimate=$(jq '[.. | objects | .image_bytes? // empty] | first' report.json)
[ "$estimate" -gt $((size / 2)) ] && [ "$estimate" -lt $((size * 2)) ] ||
	fail "estimated $estimate, became $size"

# What a real run would refuse, a dry run refuses.
ccsnap create --dry-run real --source disk.raw --to folder:store
expect_exit 4
ccsnap create --dry-run x --source disk.raw --to folder:store --max-virtual-size 1M
expect_exit 4
