#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whatever way an image names another file, it is refused without --allow-backing,
# and no byte of that file gets out.
. "$(dirname "$0")/../lib/lib.sh"
requires qemu-img jq

(echo "the secret" && head -c 1M /dev/zero) >victim
truncate -s 1M victim

refused() { # FILE FORMAT
	ccsnap create evil --source "$1" --source-format "$2" --to folder:store --report report.json
	expect_exit 4
	expect_one_line
	expect_empty store
	expect_report '.status == "refused"'
	rm -f report.json
}

# backing NAME: a backing file of just that spelling, whether it exists or not.
backing() {
	qemu-img create -q -f qcow2 base.qcow2 1M
	qemu-img create -q -f qcow2 -u -b "$1" -F "${2:-raw}" evil.qcow2 1M
	refused evil.qcow2 qcow2
}

backing "$PWD/victim"
backing victim
backing ./victim
backing "../$(basename "$PWD")/victim"
backing "file:$PWD/victim"
backing "nbd://localhost:1/x"
backing "nbd+unix:///?socket=$PWD/socket"
backing "https://localhost:1/disk"
backing "fat:rw:$PWD/run"
backing /does/not/exist
backing 'json:{"driver":"raw","file":{"driver":"file","filename":"'"$PWD"'/victim"}}'
backing base.qcow2 qcow2

# No recorded format: what older tools would probe.
qemu-img create -q -f qcow2 -o backing_file=victim,backing_fmt=raw evil.qcow2 1M
qemu-img rebase -q -u -f qcow2 -b victim -F '' evil.qcow2 2>/dev/null || true
refused evil.qcow2 qcow2

# An external data file.
qemu-img create -q -f qcow2 -o data_file=victim.data,data_file_raw=on evil.qcow2 1M
cp victim victim.data
refused evil.qcow2 qcow2

# vmdk: extents in files of their own; vhdx and vdi have no such thing, a differencing vpc does.
qemu-img create -q -f vmdk -o subformat=monolithicFlat evil.vmdk 1M
refused evil.vmdk vmdk
qemu-img create -q -f vmdk -o subformat=twoGbMaxExtentSparse evil.vmdk 1M
refused evil.vmdk vmdk
cat >evil.vmdk <<-END
	# Disk DescriptorFile
	version=1
	CID=7a3e1f3b
	parentCID=ffffffff
	createType="monolithicFlat"

	# Extent description
	RW 2048 FLAT "$PWD/victim" 0

	ddb.virtualHWVersion = "4"
	ddb.geometry.cylinders = "2"
	ddb.geometry.heads = "16"
	ddb.geometry.sectors = "63"
	ddb.adapterType = "ide"
END
refused evil.vmdk vmdk
qemu-img create -q -f vmdk base.vmdk 1M
qemu-img create -q -f vmdk -b base.vmdk -F vmdk evil.vmdk 1M
refused evil.vmdk vmdk
