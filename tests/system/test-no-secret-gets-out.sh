#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Password, application credential's secret and token stand in no argument list, environment
# of a child, log, report or core file, and no other process of the user can look at them.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/openstack.sh"
requires_root # or strace cannot look into it either
requires strace qemu-img
openstack_bed
head -c 4M /dev/urandom >disk.raw
qemu-img convert -f raw -O qcow2 disk.raw disk.qcow2
chmod 644 disk.qcow2
as_ordinary_user

# Sets $secrets, a file of them: also the tokens, as they went over the wire.
note_secrets() {
	(printf '%s\n' "${OS_PASSWORD:-}" "${OS_APPLICATION_CREDENTIAL_SECRET:-}" "${OS_TOKEN:-}"
		grep -ohE 'gAAAA[A-Za-z0-9_-]{40,}' "$1" | cut -c1-60 || true) |
		sed '/^$/d' | sort -u >run/secrets
	secrets=run/secrets
	[ -s $secrets ] || fail "no secrets to look for"
}
is_nowhere_in() { # FILE...
	local file

	for file; do
		! grep -qFf $secrets "$file" || fail "a secret in $file: $(grep -Ff $secrets "$file" | cut -c1-300)"
	done
}

# Everything that is executed, with its environment; and what is sent, to know the tokens.
tells_nothing() { # COMMAND...
	traced run/trace -v -s 100000 -e trace=execve,sendto,write -- "$CCSNAP" "$@" -vvv \
		--report report.json
	expect_exit "${expected:-0}"
	note_secrets run/trace
	# The first ones start the program itself, with what the user gave it.
	grep execve run/trace | sed '0,/"[^"]*\(program\|ccsnap\)", \[/d' >run/children
	is_nowhere_in run/children "$out" "$err" report.json
}

as_member
tells_nothing create a --source disk.qcow2 --source-format qcow2 --to=glance
grep -q qemu run/children || fail "no child was seen: $(cat run/children)"
grep -q gAAAA run/secrets || fail "no token was seen"
expect_stderr 'auth/tokens'
as_appcred
tells_nothing create b --source disk.qcow2 --source-format qcow2 --to=glance
as_nobody
export OS_AUTH_TYPE=v3token OS_AUTH_URL=$KEYSTONE_URL OS_PROJECT_ID=$PROJECT_ID
OS_TOKEN=$(new_token)
export OS_TOKEN
tells_nothing create c --source disk.qcow2 --source-format qcow2 --to=glance
OS_AUTH_URL=${KEYSTONE_URL/:\/\//:\/\/somebody:s3cr3t-in-url@} tells_nothing upload disk.raw d --to=glance
! grep -rq s3cr3t-in-url "$out" "$err" report.json || fail "userinfo is shown"
unset OS_TOKEN

# A wrong one is no less secret.
as_member
export OS_PASSWORD=a-wrong-password
expected=4 tells_nothing upload disk.raw e --to=glance
as_member

# --- a process that runs -------------------------------------------------------

ulimit -c unlimited
in_flight() {
	start_upload disk.raw "$1" --limit-rate 300K
	wait_until 20 is_saving "$1" || fail "never began: $(cat "$err")"
}
cores() {
	find "$T" -name '*core*' -type f
}
for signal in SEGV ABRT QUIT; do
	in_flight "with $signal"
	if [ $signal = SEGV ]; then
		printf '%s\n' "$OS_PASSWORD" >run/secrets
		tr '\0' '\n' <"/proc/$pid/cmdline" >run/cmdline
		is_nowhere_in run/cmdline
		tr '\0' '\n' <"/proc/$pid/environ" >run/environ
		is_nowhere_in run/environ
		grep -q OS_USERNAME run/environ || fail "that is no environment of ours"
		[ "$(stat -c %u "/proc/$pid/environ")" = 0 ] || fail "others of this user can look into it"
		grep -qE '^Max core file size +0 ' "/proc/$pid/limits" || fail "it may leave a core"
	fi
	kill -$signal "$pid"
	end_upload
	[ -z "$(cores)" ] || fail "a core file: $(cores)"
done
upload disk.raw after --limit-rate 100M
expect_uploaded
[ "$(images | jq '[.[] | select(.status != "active")] | length')" = 0 ] || fail "orphans: $(images)"
