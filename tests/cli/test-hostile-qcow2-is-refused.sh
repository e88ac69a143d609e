#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A damaged or hostile qcow2 is refused in a moment: no crash, no hang, nothing left.
. "$(dirname "$0")/../lib/lib.sh"
requires qemu-img qemu-io jq xxd

qemu-img create -q -f qcow2 good.qcow2 4M
qemu-io -f qcow2 -c 'write -P 0x41 0 1M' -c 'write -P 0x42 3M 64k' good.qcow2 >/dev/null

# Start again from the good one, with bytes (as printf writes them) at an offset.
damaged() { # [OFFSET BYTES]...
	cp good.qcow2 bad.qcow2
	while [ $# -gt 0 ]; do
		# shellcheck disable=SC2059
		printf "$2" | dd of=bad.qcow2 bs=1 seek="$1" conv=notrunc status=none
		shift 2
	done
}

attempt() { # NAME
	LIMIT=30 ccsnap create bad --source bad.qcow2 --source-format qcow2 --to folder:store \
		--stall-timeout 10
	case $status in
	0 | 1 | 4) ;;
	*) fail "$1" ;;
	esac
	[ $status = 0 ] && rm -rf store && return
	[ -s "$err" ] || fail "$1: no message"
	expect_empty store
}

refused() { # NAME
	attempt "$1"
	[ $status != 0 ] || fail "$1 was accepted"
}

for length in 0 3 4 8 71 72 103 104 111; do
	head -c $length good.qcow2 >bad.qcow2
	refused "header cut at $length"
done
damaged 0 'QFJ\xfb' && refused "wrong magic"
damaged 4 '\0\0\0\7' && refused "version 7"
damaged 4 '\xff\xff\xff\xff' && refused "version -1"
damaged 8 '\xff\xff\xff\xff\xff\xff\xff\xff' 16 '\0\0\0\20' && refused "backing name far away"
damaged 8 '\0\0\0\0\0\0\0\160' 16 '\x7f\xff\xff\xff' && refused "backing name of 2 GiB"
for bits in '\0' '\1' '\10' '\77' '\xff'; do
	damaged 20 "\0\0\0$bits" && refused "cluster_bits $bits"
done
damaged 20 '\xff\xff\xff\xff' && refused "cluster_bits -1"
damaged 24 '\xff\xff\xff\xff\xff\xff\xff\xff' && refused "virtual size -1"
damaged 24 '\x7f\xff\xff\xff\xff\xff\xfe\0' && refused "virtual size 2^63"
damaged 32 '\0\0\0\1' && refused "encrypted"
damaged 36 '\xff\xff\xff\xff' && refused "L1 of 2^32 entries"
damaged 36 '\0\0\0\0' && refused "L1 of no entries"
damaged 40 '\x7f\xff\xff\xff\xff\xff\0\0' && refused "L1 past the end"
damaged 40 '\0\0\0\0\0\3\0\1' && refused "L1 not aligned"
damaged 48 '\xff\xff\xff\xff\xff\xff\0\0' && refused "refcount table past the end"
damaged 56 '\xff\xff\xff\xff' && refused "refcount table of 2^32 clusters"
damaged 60 '\xff\xff\xff\xff' && refused "2^32 snapshots"
damaged 72 '\x80\0\0\0\0\0\0\0' && refused "unknown incompatible feature"
damaged 79 '\2' && refused "marked corrupt"
damaged 79 '\4' && refused "data file without a name"
damaged 96 '\0\0\0\77' && refused "refcount order 63"
damaged 100 '\xff\xff\xff\xff' && refused "header of 4 GiB"
damaged 100 '\0\0\0\0' && refused "header of no length"
damaged 104 '\7' && refused "unknown compression"
damaged 112 '\x12\x34\x56\x78\xff\xff\xff\xff' && refused "header extension of 4 GiB"

# Tables: the first L2 and the first data cluster.
l1=$((0x$(xxd -s 40 -l 8 -p good.qcow2)))
l2=$((0x$(xxd -s $l1 -l 8 -p good.qcow2) & 0x00fffffffffffe00))
damaged $l1 '\x80\xff\xff\xff\xff\xff\0\0' && refused "L2 past the end"
damaged $l1 '\x80\0\0\0\0\1\2\0' && refused "L2 not aligned"
damaged $l2 '\x80\0\x7f\xff\xff\xff\0\0' && refused "data past the end"
damaged $l2 '\x80\0\0\0\0\5\2\0' && refused "data not aligned"
damaged $l2 '\x40\0\0\0\0\5\0\0' && refused "packed cluster of other bytes"
damaged $l2 '\x7f\xff\xff\xff\xff\xff\xff\xff' && refused "packed cluster past the end"
cp good.qcow2 bad.qcow2 && truncate -s $((l2 + 4096)) bad.qcow2 && refused "cut in a table"

# Chance finds what nobody thought of.  Each file can be made again from its number.
count=15
! is_full || count=400
for ((n = 1; n <= count; n++)); do
	RANDOM=$n
	damaged
	for ((i = 0; i < 1 + n % 4; i++)); do
		places=($((RANDOM % 160)) $((l1 + RANDOM % 16)) $((l2 + RANDOM % 128)) $((RANDOM * 8)))
		printf '%b' "\\x$(printf %x $((RANDOM % 256)))" |
			dd of=bad.qcow2 bs=1 seek="${places[RANDOM % 4]}" conv=notrunc status=none
	done
	attempt "random damage $n"
done
