#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Paths and names are used byte for byte, whatever they hold: never split, never
# seen by a shell, never taken for an option; messages show them without harm.
. "$(dirname "$0")/../lib/lib.sh"
requires jq qemu-img

names=('with space' 'quo"te' "apo'strophe" 'semi;colon$(touch pwned)`touch pwned`' 'comma,opt=1'
	'star*[a]?' 'back\slash' 'percent%s%n' $'new\nline' $'tab\there' $'esc\e[31mred'
	$'latin-\xe9\xff' 'ünïcödé-文' 'json:{"driver":"null-co"}' 'nbd:localhost:1' 'a:b' '#hash' '-dash'
	'--overwrite' '...' '~' '{}' 'x=y')

head -c 100000 /dev/urandom >content
pad_to_sectors content expected.raw
qemu-img convert -f raw -O qcow2 expected.raw content.qcow2
mkdir odd
for name in "${names[@]}"; do
	rm -rf odd/* report.json
	mkdir -p "odd/d$name"
	cp content "odd/$name"
	cp content.qcow2 "odd/d$name/$name"
	find . -maxdepth 1 ! -name report.json | sort >run/before

	# As source and as output.
	ccsnap create --source "odd/$name" --output "odd/d$name/$name.out" --report report.json
	expect_exit 0
	qemu-img compare -q --image-opts \
		"driver=qcow2,file.driver=file,file.filename=$(printf %s "odd/d$name/$name.out" |
			sed 's/,/,,/g')" driver=raw,file.driver=file,file.filename=expected.raw ||
		fail "$name"
	jq -e . report.json >/dev/null || fail "$name: no JSON"

	# Through a qemu-nbd child.
	ccsnap create --source "odd/d$name/$name" --source-format qcow2 \
		--output "odd/d$name/$name.nbd" --report report.json
	expect_exit 0
	expect_identical "odd/d$name/$name.nbd" "odd/d$name/$name.out"

	# As a directory and a report.
	ccsnap create plain --source content --to "folder:odd/d$name" --report "odd/$name.json"
	expect_exit 0
	jq -e . "odd/$name.json" >/dev/null || fail "$name: no JSON"
	ccsnap list --to "folder:odd/d$name"
	expect_stdout plain

	# In messages.
	ccsnap create --source "odd/no$name" --output out.qcow2
	expect_exit 1 4
	expect_one_line
	! grep -q $'\e' "$err" || fail "an escape sequence reached the terminal"
	find . -maxdepth 1 ! -name report.json | sort | diff run/before - || fail "$name"
done
expect_gone pwned

# As a relative path that looks like an option.
mkdir dash
cd dash || exit
cp ../content ./-v
ccsnap create --source -v --output=-x
expect_exit 0 2
[ "$status" = 2 ] || [ -e ./-x ] || fail "no -x"
cd ..

# As the image's name: taken or refused in one line, never outside of the store.
for name in "${names[@]}" ../up a/b . .. /abs '' "$(printf 'x%.0s' {1..300})"; do
	rm -rf store && mkdir store
	ccsnap create --source content --to folder:store --report report.json -- "$name"
	expect_exit 0 2 4
	if [ "$status" != 0 ]; then
		expect_one_line
		expect_empty store
		continue
	fi
	ccsnap list --to folder:store --json
	expect_exit 0
	jq -e . "$out" >/dev/null || fail "$name: list is no JSON"
	[ "$(find store -name '*.qcow2' | wc -l)" -ge 1 ] || find store | grep -q . || fail "$name"
done
expect_gone up.qcow2 a /abs.qcow2 pwned
