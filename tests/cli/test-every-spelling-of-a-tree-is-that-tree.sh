#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# However the source is spelt, it is that tree.
. "$(dirname "$0")/../lib/lib.sh"

mkdir -p src/d
echo k >src/d/keep
ln -s src link
for source in src src/ src/. ./src// "$PWD/src" "$PWD/./src/../src" link link/; do
	capture name "$source"
	expect_content /d/keep k
	expect_report '.tree.files == 1 and .tree.directories == 2 and .source.kind == "tree"'
done
