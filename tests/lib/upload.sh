# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What tests of uploads share, whatever the service is; sourced by openstack.sh and fake.sh.

# upload FILE OPTION...: to the service that OS_* name, with ./report.json.
upload() {
	rm -f report.json
	ccsnap upload "$1" --to=glance --report report.json "${@:2}"
}

# The same in the background; sets $pid.
start_upload() { # FILE OPTION...
	last_command="upload $* (in the background)"
	rm -f report.json
	env --default-signal "$CCSNAP" upload "$1" --to=glance --report report.json "${@:2}" \
		>"$out" 2>"$err" </dev/null &
	pid=$!
}

# Sets $status to how it ended, which it has to do in 60 seconds.
end_upload() { # [PID]
	wait_until 60 has_ended "${1:-$pid}" || fail "it does not end"
	status=0
	wait "${1:-$pid}" || status=$?
}

has_ended() { # PID
	! [ -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null
}

# All well, and proven.
expect_uploaded() {
	expect_exit 0
	expect_report '.status == "ok" and .upload.verified and .upload.cleanup == null
		and (.upload.image_id | test("^[0-9a-f-]{36}$")) and .upload.attempts >= 1
		and .upload_seconds > 0'
}

# It went wrong, and what it had made at the service is gone.
expect_cleaned_up() {
	expect_exit 1
	expect_report '.status == "failed" and (.upload.verified | not)
		and .upload.cleanup == "done"'
}

# Nothing is noted as begun: all of it is proven or deleted.
expect_no_notes() {
	[ -z "$(find "$HOME/.local/state/ccsnap" -name '*.json' 2>/dev/null)" ] ||
		fail "notes of uploads: $(ls -A "$HOME"/.local/state/ccsnap/*)"
}

# --- cases side by side, where each takes its time ------------------------------

declare -a cases=()

# beside NAME COMMAND...: in the background, in a directory and with servers of its own.
beside() {
	[ -d "$T/case" ] || { mkdir -m 755 "$T/case" && at_exit end_cases; }
	mkdir -m 777 "$T/case/$1"
	(
		cleanups=()
		trap 'for each in "${cleanups[@]}"; do eval "$each"; done 2>/dev/null' EXIT
		cd "$T/case/$1" || exit
		out=$T/run/$1.out err=$T/run/$1.err
		"${@:2}"
	) >"$T/run/$1.log" 2>&1 &
	cases+=("$! $1")
}

# When the test ends before they do.
end_cases() {
	local each

	for each in "${cases[@]}"; do
		pkill -TERM -P "${each%% *}"
		wait "${each%% *}"
	done
}

# Wait for them; each has to hold.
all_hold() {
	local each failed=

	for each in "${cases[@]}"; do
		wait "${each%% *}" && continue
		failed+=" ${each#* }"
		sed "s/^/${each#* }: /" "$T/run/${each#* }.log"
	done
	cases=()
	status=
	[ -z "$failed" ] || fail "see above:$failed"
}
