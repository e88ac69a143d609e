#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Properties are set by themselves: what the system in the tree is, ccsnap's own notes, the
# provenance of a testbed's image, and above all of these what the user says.
. "$(dirname "$0")/../lib/lib.sh"

property() { # NAME-OF-IMAGE KEY
	jq -r --arg key "$2" '.properties[$key]' "store/$1.manifest.json"
}

expect_property() { # NAME-OF-IMAGE KEY VALUE
	[ "$(property "$1" "$2")" = "$3" ] || fail "$1: $2 is $(property "$1" "$2"), not $3"
}

expect_no_property() { # NAME-OF-IMAGE KEY...
	local key

	for key in "${@:2}"; do
		expect_property "$1" "$key" null
	done
}

mkdir -p src/etc src/opt/chameleon src/usr/bin
cat >src/etc/os-release <<-END
	PRETTY_NAME="Mine 12"
	ID="mine"
	VERSION_ID='12.5'
END
printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\267\0' >src/usr/bin/env # EM_AARCH64
cat >src/opt/chameleon/provenance.json <<-END
	{"build-os": "ubuntu 22", "n": 7, "chameleon-supported": true, "bad": "a\\u001bb", "no": null}
END
create known src --property purpose=test --property os_version=13 --property provenance-n=
expect_property known os_distro mine
expect_property known os_version 13
expect_property known architecture aarch64
expect_property known provenance-build-os 'ubuntu 22'
expect_property known provenance-bad ab
expect_property known purpose test
expect_property known ccsnap_version "$("$CCSNAP" --version | awk '{ print $2; exit }')"
expect_no_property known provenance-n provenance-no provenance-chameleon-supported hw_firmware_type
source=$(property known ccsnap_source)
[[ $source =~ ^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$ ]] || fail "ccsnap_source: $source"

ln -s src other-way
cp -r src another
create same other-way
expect_property same ccsnap_source "$source"
expect_property same provenance-n 7
create copy another
[ "$(property copy ccsnap_source)" != "$source" ] || fail "two trees are one source"

# What is outside of the tree is not in the image, and not told.
echo '{"secret": "outside"}' >outside.json
rm src/opt/chameleon/provenance.json src/etc/os-release
ln -s "$PWD/outside.json" src/opt/chameleon/provenance.json
ln -s ../../../../../../../../etc/os-release src/etc/os-release
create linked src
expect_no_property linked provenance-secret os_distro os_version
rm -r src/opt/chameleon
mkdir elsewhere
mv outside.json elsewhere/provenance.json
ln -s "$PWD/elsewhere" src/opt/chameleon
create linked-directory src
expect_no_property linked-directory provenance-secret

# What is left out of the image is not told, either.
create excluded another --exclude /opt/chameleon --exclude /usr
expect_no_property excluded provenance-build-os architecture
expect_property excluded os_distro mine

# Broken ones cost a warning and nothing else.
echo '{"a" "b"}' >another/opt/chameleon/provenance.json
printf 'ID=m\xffne\nVERSION_ID=1\n' >another/etc/os-release
create broken another
expect_stderr 'provenance.json: line 1'
expect_stderr 'os_distro'
expect_no_property broken provenance-a os_distro
expect_property broken os_version 1

# A disk is not looked into.
truncate -s 1M disk.raw
create disk disk.raw --property purpose=disk
[ "$(jq -r '.properties | keys | join(" ")' store/disk.manifest.json)" = \
	"ccsnap_source ccsnap_version purpose" ] || fail "$(jq .properties store/disk.manifest.json)"

# ccsnap's own are not to be had.
ccsnap create refused --source src --to folder:store --property ccsnap_source="$source"
expect_exit 2
expect_stderr '--property: ccsnap_source'
expect_gone store/refused.qcow2
