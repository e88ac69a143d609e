#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# An exclude is a path: it covers that path and what is below, whatever bytes it has, and
# nothing of the same name elsewhere.  Patterns are an option of their own.
. "$(dirname "$0")/../lib/lib.sh"

mkdir -p src/{tmp,proc,a,zz/a,d1,'d[1]'} src/home/u/proj/tmp src/usr/src/linux/fs/proc
echo k >src/home/u/proj/tmp/keep
echo b >src/usr/src/linux/fs/proc/base.c
echo 1 >src/a/x
echo 2 >src/zz/a/y
echo t >src/tmp/file
echo s >'src/d[1]/secret'
echo k >src/d1/keep

# As the user sees it, and relative to the source: the same.
for exclude in src/a a /a "$PWD/src/a" src/a/ a//; do
	capture one src --exclude "$exclude"
	expect_not_inside /a /a/x
	expect_content /zz/a/y 2
	expect_content /home/u/proj/tmp/keep k
	expect_content /usr/src/linux/fs/proc/base.c b
	expect_report '.tree.excluded | length == 1 and .[0].path == "/a"'
done

capture literal src -e 'src/d[1]'
expect_not_inside '/d[1]/secret'
expect_content /d1/keep k

capture pattern src --exclude-glob '/d[1]'
expect_content '/d[1]/secret' s
expect_not_inside /d1/keep

capture depth src --exclude-glob tmp
expect_not_inside /tmp/file /home/u/proj/tmp
expect_inside /tmp # which every system needs
capture anchored src --exclude-glob /tmp
expect_inside /home/u/proj/tmp/keep

# Both readings exist and differ.
mkdir -p src/src/a
ccsnap create both --source src --to folder:store --exclude src/a
expect_exit 2
expect_one_line 'src/a'
