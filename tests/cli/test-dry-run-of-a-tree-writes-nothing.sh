#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# As an ordinary user: what it would do, what it could not read, and nothing is written.
. "$(dirname "$0")/../lib/lib.sh"

mkdir -p src/closed src/open
echo k >src/open/keep
echo s >src/open/secret
chmod 000 src/closed src/open/secret

before=$(find . -path ./run -prune -o -printf '%p %T@ %C@\n' | sort)
ccsnap create name -s src -d --to folder:store
expect_exit 0
expect_stdout 'Nothing was written'
expect_stdout 'data disk'
[ "$(id -u)" = 0 ] || expect_stdout '/open/secret'
[ "$(id -u)" = 0 ] || expect_stdout '/closed'
[ "$before" = "$(find . -path ./run -prune -o -printf '%p %T@ %C@\n' | sort)" ] ||
	fail "something changed"
expect_empty store
chmod 700 src/closed

# The machine itself.
ccsnap create -d
expect_exit 0 4
