#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A file with several names that is replaced under all of them while the tree is
# captured, as a package manager does, is in the image under all of them; one that is
# gone is named with all of its names.
. "$(dirname "$0")/../lib/lib.sh"

mkdir -p src/z src/gone aside
head -c 12M /dev/urandom >src/a-noise
make_names() { # DIRECTORY TEXT
	echo "$2" >"$1/n1"
	for i in 2 3 4 5; do
		ln "$1/n1" "$1/n$i"
	done
}
make_names src/z old
make_names src/gone old
make_names aside new

unfinished() {
	[ -n "$(find store -name '*.ccsnap-tmp' -size +0 2>/dev/null)" ]
}
timeout 200 "$CCSNAP" create name --source src --to folder:store --report report.json --quiet \
	"${slow[@]}" --threads 1 &
pid=$!
wait_until 60 unfinished || fail "it never began"
for i in 1 2 3 4 5; do
	mv aside/n$i src/z/n$i
	rm src/gone/n$i
done
status=0
wait $pid || status=$?
expect_exit 3
unpack store/name.qcow2
for i in 1 2 3 4 5; do
	expect_content /z/n$i new
	expect_not_inside /gone/n$i
done
[ "$(look 'stat /z/n1' | sed -n 's/.*Links: \([0-9]*\).*/\1/p')" = 5 ] || fail "links"
expect_report '[.tree.vanished[].path] | sort == ["/gone/n1", "/gone/n2", "/gone/n3", "/gone/n4", "/gone/n5"]'
