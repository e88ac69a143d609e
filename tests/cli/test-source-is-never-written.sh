#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The source keeps its bytes and times; a source that is no disk is refused.
. "$(dirname "$0")/../lib/lib.sh"
requires jq mke2fs mkfifo strace

make_disk disk.raw 4
chmod 400 disk.raw
before=$(stat -c '%Y %Z %s' disk.raw && sha256sum disk.raw)
traced trace -e trace=openat,open -- "$CCSNAP" create a --source disk.raw --to folder:store
expect_exit 0
[ "$before" = "$(stat -c '%Y %Z %s' disk.raw && sha256sum disk.raw)" ] || fail "changed"
! grep 'disk\.raw' trace | grep -E 'O_WRONLY|O_RDWR|O_TRUNC|O_CREAT' || fail "opened for writing"

# Not as the output either, by whatever name, nor as the report.
before=$(sha256sum <disk.raw)
ln disk.raw hardlink.raw
ln -s disk.raw symlink.raw
mkdir images
ln disk.raw images/disk.raw
for output in "--output disk.raw" "--output ./disk.raw" "--output hardlink.raw" \
	"--output symlink.raw" "--to folder:images"; do
	ccsnap create disk --source disk.raw --format raw --overwrite $output
	expect_exit 4
	expect_one_line
done
ccsnap create --source symlink.raw --output disk.raw --overwrite
expect_exit 4
ccsnap create c --source disk.raw --to folder:store --report disk.raw
expect_exit 1 2 4
ccsnap convert disk.raw disk.raw --source-format raw --overwrite
expect_exit 2 4
[ "$(sha256sum <disk.raw)" = "$before" ] || fail "the source was replaced"

mkdir store2
mkfifo pipe
for source in pipe nosuch /dev/null /dev/zero; do
	LIMIT=20 ccsnap create b --source $source --to folder:store2
	expect_exit 1 4
	expect_one_line
	expect_empty store2
done
ccsnap create b --source '' --to folder:store2
expect_exit 1 2 4
expect_one_line
