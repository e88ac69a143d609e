#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The completion script is sound and offers commands and options.
. "$(dirname "$0")/../lib/lib.sh"

ccsnap --completion bash
expect_exit 0
cp "$out" completion.bash
bash -n completion.bash || fail "no valid script"
bash -uc '. ./completion.bash && complete -p ccsnap' >/dev/null || fail "completes nothing"
for command in create verify convert upload fetch list prune; do
	grep -q "$command" completion.bash || fail "$command is missing"
	"$CCSNAP" $command --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' >options
	[ -s options ] || fail "$command --help names no option"
	while read -r option; do
		grep -q -e "$option" completion.bash || fail "$option is missing"
	done <options
done

# completes EXPECTED WORD...: what is offered for the last word, cut as bash cuts it.
completes() {
	local expected=$1 got

	shift
	got=$(bash -uc '
		compopt() { :; }
		. ./completion.bash
		COMP_WORDS=(ccsnap "$@") COMP_CWORD=$# COMPREPLY=()
		_ccsnap
		echo "${COMPREPLY[*]-}"' - "$@")
	[ "$got" = "$expected" ] || fail "$*: offered '$got', not '$expected'"
}
mkdir only && touch only/file
completes "create convert" c
completes "folder: file:" upload x --to = f
completes "folder: glance:" fetch x --to =
completes "https:// http://" create --to htt
completes "only/file" upload x --to = folder : only/
completes "" fetch x --to = glance : o
completes "" fetch onl
completes "" list --os-cloud onl
completes "only" upload onl
completes "only" upload --manifest = onl
completes "--threads" verify x --thr
