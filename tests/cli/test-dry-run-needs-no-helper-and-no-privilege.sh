#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A dry run of a raw disk works without any program on PATH, without privilege, and
# where nothing can be written.
. "$(dirname "$0")/../lib/lib.sh"
requires mke2fs

make_disk disk.raw 4
chmod 444 disk.raw
chmod 755 . home tmp
mkdir readonly
chmod 555 readonly
as_nobody=()
if [ "$(id -u)" = 0 ]; then
	requires setpriv
	as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	"${as_nobody[@]}" "$CCSNAP" --version >/dev/null 2>&1 || as_nobody=()
fi
run "${as_nobody[@]}" env -i PATH=/nonexistent "$CCSNAP" create a --dry-run --source disk.raw \
	--to folder:readonly
expect_exit 0 4
[ "$status" = 0 ] || expect_one_line # it could not be written there, and that is said
chmod 755 readonly
run "${as_nobody[@]}" env -i PATH=/nonexistent "$CCSNAP" create a --dry-run --source disk.raw \
	--to folder:tmp
expect_exit 0 4
[ -z "${as_nobody[*]}" ] || expect_empty tmp readonly
