#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every long option can stand in a configuration file; the command line wins; what is
# wrong there is told with its file and line.
. "$(dirname "$0")/../lib/lib.sh"
requires jq

head -c 1M /dev/urandom >disk.raw
mkdir configured d e
cat >ccsnap.conf <<-END
	# a comment
	compression = zlib
	cluster-size = 128K
	to = folder:$T/configured
	report = $T/report.json
END
ccsnap create a --source disk.raw --config ccsnap.conf
expect_exit 0
expect_report '.image.compression == "zlib" and .image.cluster_size == 131072'
ls configured/a.qcow2 >/dev/null || fail "not where the file says"

ccsnap create b --source disk.raw --config ccsnap.conf --compression zstd
expect_exit 0
expect_report '.image.compression == "zstd" and .image.cluster_size == 131072'

mkdir -p home/.config/ccsnap
cp ccsnap.conf home/.config/ccsnap/ccsnap.conf
ccsnap create c --source disk.raw
expect_exit 0
expect_report '.image.compression == "zlib"'
XDG_CONFIG_HOME=$T/elsewhere ccsnap create d --source disk.raw --to folder:d --report d.json
expect_exit 0
expect_report '.image.compression == "zstd"' d.json
rm home/.config/ccsnap/ccsnap.conf

wrong() { # LINE PATTERN TEXT
	printf '%s\n' "$3" >bad.conf
	ccsnap create e --source disk.raw --to folder:e --config bad.conf
	expect_exit 2
	expect_one_line "bad\.conf:$1.*($2)"
	expect_empty e
}
wrong 1 no-such 'no-such = 1'
wrong 2 compression $'level = 3\ncompression = lz4'
wrong 1 config 'config = other.conf'
wrong 3 . $'# one\n\nthis is no setting'
wrong 1 threads 'threads = many'
