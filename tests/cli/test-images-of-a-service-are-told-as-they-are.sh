#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# list has a column for tags where there are some; what is missing or deactivated is said so.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"

head -c 1M /dev/urandom >disk.raw
fake_service
upload disk.raw plain
expect_uploaded
ccsnap list --to=glance
expect_exit 0
expect_stdout '^ID +NAME +FORMAT +SIZE +VIRTUAL +STATUS +CREATED$'
upload disk.raw tagged --tag lab
expect_uploaded
ccsnap list --to=glance
expect_exit 0
expect_stdout ' CREATED +TAGS$'
expect_stdout 'tagged .* lab$'

ccsnap fetch nosuch --to=glance
expect_exit 4
expect_one_line 'no image nosuch in .* \(of this project; an image of another one is found by its id\)'
ccsnap fetch 01234567-89ab-cdef-0123-456789abcdef --to=glance
expect_exit 4
! grep -q 'of this project' "$err" || fail "it was an id"

fake_service 'list set.status=deactivated'
upload disk.raw off
expect_uploaded
ccsnap fetch off --to=glance
expect_exit 4
expect_one_line 'off \([0-9a-f-]{36}\) is deactivated'
