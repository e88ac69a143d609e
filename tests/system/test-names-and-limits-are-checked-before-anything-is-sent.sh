#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Names, properties and tags arrive at a real Glance as they were given; what it would not
# take is refused before it hears of the image; and what its quotas cut off leaves nothing.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/openstack.sh"
openstack_bed glance:DEFAULT.image_size_cap=8388608
head -c 1M /dev/urandom >disk.raw
truncate -s 12M large.raw
as_ordinary_user
as_member
token=$(new_token)

# --- what it takes -----------------------------------------------------------

names=("two words" " blanks " "it's \"quoted\"" 'back\slash' "Bär-漢字" '50%20 of 1+1&a=b?#c' '$HOME `x`'
	'-- dashes' "$(printf 'x%.0s' {1..241})")
for name in "${names[@]}"; do
	upload disk.raw --property "k=$name" --tag "${name:0:100}" -- "$name"
	expect_uploaded
	expect_image "$(report .upload.image_id)" "$(jq -n --arg name "$name" \
		'"\($name | tojson) as $name | .name == $name and .k == $name and .tags == [$name[:100]]"' -r)"
	ccsnap list --to=glance --name "$name" --json
	expect_exit 0
	[ "$(jq -r '.[].name' "$out")" = "$name" ] || fail "not found by its name: $name"
	upload disk.raw -- "$name"
	expect_exit 4
done
expect_images "${names[@]}"
forget_images

upload disk.raw all --property os_distro=debian --property a:b.c=1 --property empty= --tag one \
	--tag "two, three" --visibility private --protected --series nightly
expect_uploaded
id=$(report .upload.image_id)
expect_image "$id" '.os_distro == "debian" and .["a:b.c"] == "1" and .visibility == "private" and
	.protected and (.tags | sort) == ["one", "two, three"] and .ccsnap_series == "nightly" and
	(.ccsnap_version | length) > 0 and .min_disk == 1 and .owner == "'"$PROJECT_ID"'"'
upload disk.raw all --overwrite
expect_exit 4
expect_one_line 'protected'
protect "$id" false
upload disk.raw all --overwrite
expect_uploaded
expect_images all
[ "$(report .upload.image_id)" != "$id" ] || fail "the same image"
forget_images

# --- what it does not --------------------------------------------------------

posts() {
	cat "$bed"/log/glance.{log,out} | grep -c '"POST /v2/images HTTP'
}

# refused STDERR-REGEX OPTION...
refused() {
	upload disk.raw "${@:2}"
	expect_exit 4
	expect_one_line "$1"
	expect_report '.status == "refused" and .exit_code == 4'
}

before=$(posts)
refused '4 bytes|four bytes|UTF-8' "camel 🐪"
refused '4 bytes|four bytes|UTF-8|tag' x --tag "🐪"
refused 'id' x --property id=00000000-0000-0000-0000-000000000001
refused 'checksum' x --property checksum=1
refused 'size' x --property size=1
refused 'os_glance' x --property os_glance_x=1
refused 'tag.*255|255.*tag' x --tag "$(printf 'x%.0s' {1..256})"
refused '255' x --property "$(printf 'x%.0s' {1..256})=1"
many=()
for ((n = 0; n < 129; n++)); do
	many+=(--property "p$n=1")
done
refused '128' x "${many[@]}"
[ "$(posts)" = "$before" ] || fail "the service has heard of it"
expect_no_images

# --- what its quotas cut off -------------------------------------------------

# The cap is nothing that it tells.
upload large.raw
expect_exit 1
expect_stderr '413|too large|larger|size'
expect_report '.upload | .cleanup == "done" and (.verified | not)'
expect_no_images
expect_empty_store
upload large.raw --upload-method import
expect_exit 1
expect_report '.upload.cleanup == "done"'
expect_no_images
expect_empty_store

openstack_down glance
openstack_up glance:DEFAULT.user_storage_quota=4MB
token=$(new_token)
upload disk.raw first
expect_uploaded
upload large.raw second
expect_exit 1
expect_stderr '413|quota|storage'
expect_report '.upload.cleanup == "done"'
expect_images first

# Keystone's limits it tells: 1000 MiB.
openstack_down glance
openstack_up --limits
token=$(new_token)
truncate -s 1100M large.raw
upload large.raw second
expect_exit 4
expect_one_line 'quota|room|limit'
expect_report '.upload.image_id == null'
upload large.raw second --dry-run
expect_exit 4
expect_images first

# An import that fails: what was declared a qcow2 is none.
openstack_down glance
openstack_up 'glance:image_import_opts.image_import_plugins=[image_conversion]' \
	glance:image_conversion.output_format=raw
token=$(new_token)
qemu-img create -q -f qcow2 disk.qcow2 1M
chmod 644 disk.qcow2
upload disk.qcow2 converted --upload-method import
expect_exit 1
expect_stderr 'convert'
expect_report '.upload.cleanup == "done"'
expect_images first
expect_no_notes
