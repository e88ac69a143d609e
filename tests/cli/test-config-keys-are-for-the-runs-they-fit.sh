#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A configuration file may hold keys for trees and for disks: each run takes those that
# fit it.  On the command line such an option is a mistake.
. "$(dirname "$0")/../lib/lib.sh"

cat >both.conf <<-END
	exclude-glob = *.o
	free-space = 100M
	disk-size = 2G
	no-boot = yes
	one-file-system = yes
	reset = identity
	source-format = raw
END
mkdir src
echo k >src/keep
echo o >src/x.o
head -c 1M /dev/urandom >disk.raw

ccsnap create disk --source disk.raw --to folder:store --config both.conf
expect_exit 0
ccsnap create tree --source src --to folder:store --config both.conf
expect_exit 0
unpack store/tree.qcow2
expect_inside /keep
expect_not_inside /x.o
[ "$(virtual_size store/tree.qcow2 qcow2)" = $((2 << 30)) ] || fail "not the file's size"

ccsnap create disk2 --source disk.raw --to folder:store --no-boot
expect_exit 2
expect_one_line 'no-boot.*directory tree'
