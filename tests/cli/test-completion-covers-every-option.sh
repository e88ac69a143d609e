#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The completion script is sound and offers commands and options.
. "$(dirname "$0")/../lib/lib.sh"

ccsnap --completion bash
expect_exit 0
cp "$out" completion.bash
bash -n completion.bash || fail "no valid script"
bash -uc '. ./completion.bash && complete -p ccsnap' >/dev/null || fail "completes nothing"
for command in create verify convert list; do
	grep -q "$command" completion.bash || fail "$command is missing"
	"$CCSNAP" $command --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' >options
	[ -s options ] || fail "$command --help names no option"
	while read -r option; do
		grep -q -e "$option" completion.bash || fail "$option is missing"
	done <options
done
