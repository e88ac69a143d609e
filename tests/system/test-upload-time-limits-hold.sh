#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# There is a limit for connecting, one for a transfer without progress and one for all of
# it; each ends an upload, tells so, and leaves nothing.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
requires /usr/bin/python3
as_ordinary_user
truncate -s 64M large.raw
head -c 3M /dev/urandom >disk.raw

ends_within() { # SECONDS EXIT STDERR-REGEX FILE OPTION...
	local begin=$SECONDS

	LIMIT=100 upload "$T/$4" "${@:5}"
	[ $((SECONDS - begin)) -le "$1" ] || fail "took $((SECONDS - begin)) s"
	expect_exit "$2"
	expect_stderr "$3"
}

# A listener whose queue is full: nothing ever comes back.
connecting() {
	/usr/bin/python3 -c 'if True:
		import socket, time
		listener = socket.socket()
		listener.bind(("127.0.0.1", 0))
		listener.listen(0)
		full = [socket.socket() for _ in range(4)]
		for client in full:
			client.setblocking(False)
			client.connect_ex(listener.getsockname())
		print(listener.getsockname()[1], flush=True)
		time.sleep(100)' >port &
	at_exit kill $!
	wait_until 10 test -s port
	fake=http://127.0.0.1:$(cat port)
	as_fake_user
	ends_within 80 4 'no connection in 2 seconds' disk.raw --connect-timeout 2
}

without_progress() { # FILE RULE
	fake_service "$2"
	ends_within 80 1 'no byte in either direction for 1 second' "$1" --upload-stall-timeout 1
	expect_no_fake_images
	expect_report '.upload.cleanup == "done"'
}

in_all() {
	fake_service
	ends_within 80 1 'not done in 5 seconds' disk.raw --limit-rate 100K --upload-timeout 5
	expect_no_fake_images
	expect_report '.upload.cleanup == "done"'
}

# A slow transfer is none without progress.  What the kernel takes off us at once, some
# megabytes, has to be gone in less than the limit, too.
slow() {
	fake_service 'put slow=6000000'
	upload "$T/large.raw" --upload-stall-timeout 3
	expect_uploaded
	expect_report '.upload_seconds > 8 and .upload.attempts == 1'
}

beside connecting connecting
beside a-byte-a-second without_progress large.raw 'put slow=1'
beside no-answer without_progress disk.raw 'put at=end hang'
beside no-answer-at-all without_progress disk.raw 'put hang'
beside in-all in_all
beside slow slow
all_hold
