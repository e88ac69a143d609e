#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Files that grow, change, vanish or are replaced while they are captured never break
# the image, and whatever did not come to rest is named.
. "$(dirname "$0")/../lib/lib.sh"

mkdir -p src/logs src/spool
for i in $(seq 300); do
	head -c 60000 /dev/urandom >"src/still-$i"
done
(cd src && sha256sum still-*) >sums

busy() {
	local i=0

	while :; do
		date >>src/logs/log
		touch "src/spool/t$((i % 7))"
		rm -f "src/spool/t$(((i + 3) % 7))"
		head -c $((i % 5 * 10000)) /dev/urandom >src/spool/rewritten
		echo "$i" >src/spool/new && mv src/spool/new src/spool/replaced
		i=$((i + 1))
	done
}
busy 2>/dev/null &
at_exit kill -9 $!
wait_until 10 test -s src/spool/replaced

for i in 1 2 3 4 5; do
	capture name src "${slow[@]}"
	expect_report '(.exit_code == 3) == (.status == "warnings")'
	expect_report '[.tree.vanished[], .tree.changed[].path] | all(. != "/still-1")'
	expect_report 'if .exit_code == 0 then
		(.tree.vanished | length) == 0 and all(.tree.changed[]; .how == "grew") else true end'
	mkdir out
	for file in still-1 still-150 still-300; do
		look "cat /$file" >"out/$file"
	done
	(cd out && grep -E ' still-(1|150|300)$' ../sums | sha256sum -c --quiet) || fail "content"
	rm -r out
done
expect_inside /logs/log
# What it has of the log are whole lines of the log's beginning.
look "cat /logs/log" >run/log
cmp -n "$(stat -c %s run/log)" run/log src/logs/log || fail "the log's beginning differs"
