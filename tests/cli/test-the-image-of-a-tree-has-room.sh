#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Room to live: as much free space and as many inodes as asked for, at no cost.
. "$(dirname "$0")/../lib/lib.sh"

header() { # NAME
	dumpe2fs -h "$fs" 2>/dev/null | sed -n "s/^$1:[[:space:]]*//p"
}
free_for_users() {
	echo $((($(header 'Free blocks') - $(header 'Reserved block count')) * 4096))
}

mkdir -p src/many
(cd src/many && seq 20000 | xargs touch)
capture name src
[ "$(free_for_users)" -ge $((1500 << 20)) ] || fail "$(free_for_users) free"
[ "$(header 'Inode count')" -ge 40000 ] || fail "$(header 'Inode count') inodes"
[ $(($(virtual_size "$image" qcow2) % (1 << 30))) = 0 ] || fail "no whole GiB"
[ "$(stat -c %s "$image")" -lt $((4 << 20)) ] || fail "free space is in the file"

capture name src --free-space 5G
[ "$(free_for_users)" -ge $((5 << 30)) ] || fail "$(free_for_users) free"
capture name src --disk-size 3G
[ "$(virtual_size "$image" qcow2)" = $((3 << 30)) ] || fail "not the size"
expect_report ".tree.free_bytes <= $((3 << 30))"
ccsnap create small --source src --to folder:store --disk-size 100M
expect_exit 4
expect_stderr 'too small'

# Features that old kernels and old GRUB know, whatever this machine's defaults.
printf '[defaults]\nbase_features = sparse_super\n' >mke2fs.conf
export MKE2FS_CONFIG=$PWD/mke2fs.conf
capture name src
for feature in has_journal ext_attr resize_inode dir_index filetype extent 64bit flex_bg \
	sparse_super large_file huge_file dir_nlink extra_isize metadata_csum; do
	[[ " $(header 'Filesystem features') " == *" $feature "* ]] || fail "no $feature"
done
for feature in metadata_csum_seed orphan_file; do
	[[ " $(header 'Filesystem features') " != *" $feature "* ]] || fail "has $feature"
done
[ "$(header 'Inode size')" = 256 ] || fail "inode size"
