#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A server is believed when a CA of the system or of OS_CACERT/cacert vouches for its name
# or address, now; unless the user says that it need not be.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
requires openssl
mkdir "the ca" cas
make_ca ca
make_ca other
cp ca.pem "the ca/ca of ours.pem"
cp ca.pem cas/
openssl rehash cas
make_certificate ca good IP:127.0.0.1,DNS:localhost
make_certificate ca elsewhere DNS:cloud.example.org
make_certificate ca old IP:127.0.0.1,DNS:localhost -1
as_ordinary_user
chmod 644 ./*.key
head -c 1M /dev/urandom >disk.raw

good() { # CACERT
	OS_CACERT=$1 upload disk.raw --overwrite
	expect_uploaded
}

bad() { # CACERT STDERR-REGEX
	local before

	before=$(requests auth)
	OS_CACERT=$1 upload disk.raw
	expect_exit 4
	expect_stderr "$2"
	[ "$(wc -l <"$err")" -le 2 ] || fail "not told shortly"
	expect_requests auth "$before"
}

fake_service --tls good.pem good.key
good "$T/ca.pem"
good "$T/the ca/ca of ours.pem"
good "$T/cas"
good cas
bad "$T/other.pem" 'certificate|issuer'
bad "" 'certificate|issuer'
bad "$T/missing.pem" 'missing.pem'
bad "$T/disk.raw" 'disk.raw|certificate'
[ "$(requests handshake)" -ge 2 ] || fail "$(request_lines)"
expect_requests sni 0 '.name != null'

# By name: it is told to the server, and looked for in the certificate.
OS_AUTH_URL=${OS_AUTH_URL/127.0.0.1/localhost} good "$T/ca.pem"
[ "$(requests sni '.name == "localhost"')" -ge 1 ] || fail "no name was told"

clouds() { # MEMBERS
	cat >clouds.yaml <<-END
		clouds:
		  x:
		    auth: {auth_url: $fake/identity, username: fake, password: $fake_password,
		           project_name: fake, user_domain_name: Default, project_domain_name: Default}
		$1
	END
}
as_cloud_x() {
	unset "${!OS_@}"
	ccsnap upload disk.raw --to=glance:x --report report.json --overwrite
}
clouds "    cacert: $T/the ca/ca of ours.pem"
as_cloud_x
expect_uploaded
clouds ""
as_cloud_x
expect_exit 4

for name in elsewhere old; do
	fake_service --tls $name.pem $name.key
	bad "$T/ca.pem" 'certificate|name|expired'
	clouds "    verify: false"
	as_cloud_x
	expect_exit 0
	expect_stderr 'verif|certificate|insecure'
	expect_report '.upload.verified'
done
