#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --max-virtual-size is a limit with an exit code of its own; nothing is asked or made.
. "$(dirname "$0")/../lib/lib.sh"
requires jq

truncate -s 2M disk.raw
ccsnap create limit --source disk.raw --to folder:store --max-virtual-size 1M --report report.json
expect_exit 4
expect_one_line 'max-virtual-size'
expect_empty store
expect_report '.status == "refused" and .exit_code == 4'

create limit disk.raw --max-virtual-size 2M
