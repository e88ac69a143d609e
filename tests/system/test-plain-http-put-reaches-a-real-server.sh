#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An image goes by PUT to a real server (nginx with its WebDAV module) whole or not at all,
# whatever its name, also when the server is restarted meanwhile; what the server refuses
# is told before or at once.
. "$(dirname "$0")/../lib/lib.sh"
requires nginx curl jq qemu-img
. "$test_lib/upload.sh"
as_ordinary_user

head -c 5M /dev/urandom >disk.raw
password='s3cret p@ss/word'

write_config() { # PORT
	cat >web/nginx.conf <<-END
		daemon off;
		master_process off;
		pid $T/web/pid;
		error_log $T/web/error.log info;
		events { }
		http {
			access_log $T/web/access.log;
			client_body_temp_path $T/web/body;
			proxy_temp_path $T/web/proxy;
			fastcgi_temp_path $T/web/fastcgi;
			uwsgi_temp_path $T/web/uwsgi;
			scgi_temp_path $T/web/scgi;
			server {
				listen 127.0.0.1:$1;
				root $T/web/files;
				client_max_body_size 0;
				location / { dav_methods PUT DELETE; }
				location /readonly/ { }
				location /small/ { dav_methods PUT; client_max_body_size 1m; }
				location /old/ { return 307 http://\$host:$1/dir/new.raw; }
				location /locked/ {
					auth_basic files;
					auth_basic_user_file $T/web/users;
					dav_methods PUT;
				}
			}
		}
	END
}

answers() {
	curl -s -o /dev/null "$web/" || [ ! -e "/proc/$web_pid" ]
}

# Sets $web_pid.
start_nginx() {
	local as=()

	[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	"${as[@]}" nginx -p "$T/web" -e "$T/web/error.log" -c "$T/web/nginx.conf" \
		>>web/output 2>&1 </dev/null &
	web_pid=$!
	wait_until 10 answers && [ -e "/proc/$web_pid" ]
}

# On a port that nobody has; sets $web.
start_web() {
	local port tries

	mkdir -p web/files/dir web/files/small web/files/locked web/files/readonly
	printf 'user:{PLAIN}%s\n' "$password" >web/users
	chmod -R a+rwX web
	for tries in 1 2 3 4 5; do
		port=$((20000 + RANDOM % 12000))
		web=http://127.0.0.1:$port
		write_config $port
		start_nginx && return
	done
	fail "nginx does not start: $(tail -n 5 web/error.log web/output)"
}

stop_nginx() {
	kill "$web_pid"
	wait "$web_pid" 2>/dev/null || true
}

put() { # FILE NAME URL OPTION...
	rm -f report.json
	ccsnap upload "$1" "$2" --to="$3" --report report.json "${@:4}"
}

expect_arrived() { # FILE AT-THE-SERVER [ATTEMPTS]
	expect_exit 0
	expect_identical "$1" "web/files/$2"
	expect_report ".status == \"ok\" and .upload.verified_by == \"size\"
		and (.upload.verified | not) and .upload.cleanup == null
		and .upload.image_id == null and .upload.attempts == ${3:-1}"
	expect_empty web/body
}

expect_refused() { # STDERR-REGEX
	expect_exit 4
	expect_one_line "$1"
	expect_report '.status == "refused"'
}

start_web

# --- arrival -----------------------------------------------------------------

for name in plain "two words" "quotes'\"" "größe & 100% #?"; do
	put disk.raw "$name" "$web/dir/"
	expect_arrived disk.raw "dir/$name.raw"
done
put disk.raw whatever "$web/dir/of-its-own-name"
expect_arrived disk.raw dir/of-its-own-name
expect_report ".image.sha256 == \"$(sha256sum disk.raw | cut -d' ' -f1)\""
truncate -s 300M large.raw
put large.raw large "$web/dir/"
expect_arrived large.raw dir/large.raw
put disk.raw redirected "$web/old/"
expect_arrived disk.raw dir/new.raw

# A capture needs no file here, or leaves the one that is asked for.
ccsnap create made --source disk.raw --to="$web/dir/" --report report.json
expect_exit 0
expect_image_equals web/files/dir/made.qcow2 qcow2 disk.raw
expect_report '.image.path == null and .upload.verified_by == "size"'
ccsnap create kept --source disk.raw --to="$web/dir/" --output kept.qcow2 --report report.json
expect_arrived kept.qcow2 dir/kept.qcow2
expect_report ".image.path | endswith(\"kept.qcow2\")"

# --- what is there already ---------------------------------------------------

head -c 2M /dev/urandom >other.raw
put other.raw plain "$web/dir/"
expect_refused "$web/dir/plain.raw exists; use --overwrite"
expect_identical disk.raw web/files/dir/plain.raw
put other.raw plain "$web/dir/" --overwrite
expect_arrived other.raw dir/plain.raw
put other.raw dry "$web/dir/" --dry-run
expect_exit 0
expect_gone web/files/dir/dry.raw

# --- what the server refuses -------------------------------------------------

put disk.raw a "$web/readonly/"
expect_refused '405'
put disk.raw a "$web/small/"
expect_refused '413'
expect_empty web/files/readonly web/files/small web/body

# --- who may -----------------------------------------------------------------

hidden=s3cret
put disk.raw a "$web/locked/"
expect_refused '401'
put disk.raw a "${web/\/\////user:s3cret%20p%40ss%2Fwor@}/locked/" -vv
expect_exit 4
expect_stderr '401'
put disk.raw a "${web/\/\////user:s3cret%20p%40ss%2Fword@}/locked/" -vv
expect_arrived disk.raw locked/a.raw
! grep -rqF "$hidden" "$out" "$err" report.json web/access.log || fail "the password is shown"
expect_report ".upload.destination == \"$web/locked/\""

# --- interrupted -------------------------------------------------------------

start_put() { # URL OPTION...
	last_command="upload $* (in the background)"
	rm -f report.json
	env --default-signal "$CCSNAP" upload large.raw --to="$1" --report report.json "${@:2}" \
		>"$out" 2>"$err" </dev/null &
	pid=$!
}

has_begun() {
	[ -n "$(ls -A web/body)" ]
}

start_put "$web/dir/interrupted.raw" --limit-rate 10M
wait_until 20 has_begun || fail "nothing is sent"
kill -TERM $pid
end_upload
expect_exit 143
expect_report '.status == "interrupted" and .upload.sent_bytes > 0 and .upload.cleanup == null'
expect_gone web/files/dir/interrupted.raw
wait_until 10 [ -z "$(ls -A web/body)" ] || fail "left at the server: $(ls -A web/body)"

# The server ends in the middle, and is there again after a while.
start_put "$web/dir/restarted.raw" --limit-rate 50M
wait_until 20 has_begun || fail "nothing is sent"
stop_nginx
sleep 1
start_nginx || fail "nginx does not start again: $(tail -n 5 web/error.log)"
end_upload
expect_exit 0
expect_identical large.raw web/files/dir/restarted.raw
expect_report '.upload.attempts >= 2 and .upload.sent_bytes > 314572800'

# Nobody is there any more.
stop_nginx
put disk.raw late "$web/dir/"
expect_exit 4
expect_stderr 'Connection refused'
expect_report '.status == "refused"'
