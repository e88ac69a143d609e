#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scripts/check-layers passes the tree and stops each kind of offence.
. "$(dirname "$0")/../lib/lib.sh"

run "$top/scripts/check-layers"
expect_exit 0

offence() { # FILE TEXT
	rm -rf src
	mkdir -p src/base src/source src/image src/compress
	touch src/base/err.h src/source/source.h src/options.h
	printf '%s\n' '#include "base/err.h"' '#include <stdio.h>' "$2" >"src/$1"
	run "$top/scripts/check-layers" src
	expect_exit 1
	expect_one_line "$1:3"
}
offence image/raw.c '#include "source/source.h"'
offence base/io.c '#include "source/source.h"'
offence source/disk.c '#include "options.h"'
offence source/disk.c '#include "err.h"'
offence source/disk.c '#include <zstd.h>'
offence image/raw.c '  #  include <libnbd.h>'
offence compress/zstd.c '#include <openssl/evp.h>'
offence compress/zstd.c '#include <curl/curl.h>'
