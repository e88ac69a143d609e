#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# An exclude that hits nothing may be a secret's name misspelt.
. "$(dirname "$0")/../lib/lib.sh"

mkdir -p src/d1
echo k >src/d1/keep

for option in "--exclude src/nosuch" "--exclude-glob nosuch*"; do
	# shellcheck disable=SC2086
	ccsnap create name --source src --to folder:store $option
	expect_exit 4
	expect_one_line 'nosuch'
	expect_empty store
done
capture name src --exclude src/nosuch -f
expect_inside /d1/keep
