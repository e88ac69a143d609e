#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A wrong option, value, unit or combination: one line that names it, exit 2, no file.
. "$(dirname "$0")/../lib/lib.sh"

head -c 1M /dev/urandom >disk.raw
ls -A . home tmp >before
wrong() { # PATTERN ARGUMENT...
	ccsnap "${@:2}"
	expect_exit 2
	expect_one_line "$1"
	[ ! -s "$out" ] || fail "something on stdout"
	ls -A . home tmp | diff before - || fail "something was made"
}
create=(create a --source disk.raw --to folder:store --report report.json)

wrong no-such "${create[@]}" --no-such
wrong sorce "${create[@]}" --sorce=x
wrong Z "${create[@]}" -Z
for option in --exclude=x --exclude-glob=x --exclude-from=x --include-mount=x --one-file-system \
	--disk-size=1G --free-space=1G --no-boot --reset=identity; do
	wrong "${option%%=*} .*directory tree" "${create[@]}" $option
done
mkdir run/tree
wrong 'source-format.*disk' create a --source run/tree --to folder:store --source-format raw
wrong 'reset.*identity.*machine-id' create a --source run/tree --to folder:store --reset bogus
rmdir run/tree
wrong source create --source
wrong 'format.*qcow2.*raw' "${create[@]}" --format vhd
wrong 'format.*qcow2' "${create[@]}" --format=
wrong 'compression.*zstd.*zlib.*none' "${create[@]}" --compression lz4
wrong compression "${create[@]}" --format raw --compression zstd
wrong level "${create[@]}" --level fast
wrong level "${create[@]}" --level 1000
wrong level "${create[@]}" --level 3.5
wrong level "${create[@]}" --level ''
wrong level "${create[@]}" --compression none --level 3
wrong level "${create[@]}" --compression zlib --level 10
wrong 'cluster-size.*4K.*2M' "${create[@]}" --cluster-size 3K
wrong cluster-size "${create[@]}" --cluster-size 64KB
wrong cluster-size "${create[@]}" --cluster-size -64K
wrong cluster-size "${create[@]}" --cluster-size '64 K'
wrong cluster-size "${create[@]}" --cluster-size 99999999999999999999
wrong cluster-size "${create[@]}" --cluster-size 18446744073709551616K
wrong threads "${create[@]}" --threads 0
wrong threads "${create[@]}" --threads -1
wrong threads "${create[@]}" --threads 2x
wrong threads "${create[@]}" --threads 100000
wrong 'source-format.*raw.*qcow2' "${create[@]}" --source-format auto
wrong max-virtual-size "${create[@]}" --max-virtual-size lots
wrong max-virtual-size "${create[@]}" --max-virtual-size 1.5G
wrong sector-size "${create[@]}" --sector-size 1000
wrong stall-timeout "${create[@]}" --stall-timeout -5
wrong stall-timeout "${create[@]}" --stall-timeout 5s
wrong lock-wait "${create[@]}" --lock-wait soon
wrong 'progress.*auto.*bar.*json.*none' "${create[@]}" --progress loud
wrong property "${create[@]}" --property novalue
wrong property "${create[@]}" --property =x
wrong property "${create[@]}" --property $'a=\x01'
wrong to "${create[@]}" --to nowhere
wrong output "${create[@]}" --output out.qcow2
wrong overwrite "${create[@]}" --overwrite=yes
wrong 'against|verify|create' "${create[@]}" --against x
wrong . create a b --source disk.raw --to folder:store
wrong . verify
wrong . convert onlyone
wrong . list extra
wrong . frobnicate --source disk.raw extra
wrong config "${create[@]}" --config nosuch.conf
wrong completion --completion fish

# What is asked for on purpose is no error, and goes to stdout.
for help in --help "create --help" "verify -h" "convert --help" "list --help" --version; do
	# shellcheck disable=SC2086
	ccsnap $help
	expect_exit 0
	expect_stdout .
	[ ! -s "$err" ] || fail "something on stderr"
done
