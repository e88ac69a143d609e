#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Against a real Keystone and Glance: password, token, application credential and the
# metadata service, from OS_*, clouds.yaml with its profile and secure.yaml; and messages
# that say what to do when they are not enough.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
. "$test_lib/openstack.sh"
openstack_bed
head -c 1M /dev/urandom >disk.raw
mkdir -p home/.config/openstack
as_ordinary_user

# uploads OPTION...: as the environment and ./clouds.yaml say; the project is the member's.
uploads() {
	local name=image-$EPOCHREALTIME

	ccsnap upload disk.raw "$name" --report report.json "${@:---to=glance}"
	expect_uploaded
	expect_image "$(report .upload.image_id)" ".name == \"$name\" and
		.status == \"active\" and .owner == \"$PROJECT_ID\" and .size == 1048576"
	echo "$name" >>run/uploads
}

# refused EXIT STDERR-REGEX OPTION...
refused() {
	local to=("${@:3}")

	ccsnap upload disk.raw refused "${to[@]:---to=glance}"
	expect_exit "$1"
	expect_stderr "$2"
	[ "$(wc -l <"$err")" -le 3 ] || fail "not told shortly"
}

# --- OS_* --------------------------------------------------------------------

as_member
uploads
for url in "${KEYSTONE_URL%/v3}" "${KEYSTONE_URL%/v3}/" "$KEYSTONE_URL/"; do
	OS_AUTH_URL=$url uploads
done
OS_INTERFACE=internal uploads
OS_PROJECT_ID=$PROJECT_ID uploads
(unset OS_AUTH_TYPE OS_IDENTITY_API_VERSION OS_REGION_NAME && uploads)
(unset OS_USERNAME && OS_USER_ID=$USER_ID uploads)
OS_PASSWORD=wrong refused 4 'OS_|401|password|member'
OS_PROJECT_NAME=nothing refused 4 'OS_|401|nothing|project'
OS_REGION_NAME=Nowhere refused 4 'Nowhere.*RegionOne|RegionOne.*Nowhere'
OS_AUTH_URL=ftp://x refused 4 'AUTH_URL|auth URL'
(unset OS_AUTH_URL && refused 2 'OS_AUTH_URL')
(unset OS_PASSWORD && refused 2 'OS_PASSWORD')

as_nobody
export OS_AUTH_TYPE=v3token OS_AUTH_URL=$KEYSTONE_URL OS_REGION_NAME=RegionOne
OS_TOKEN=$(new_token) OS_PROJECT_ID=$PROJECT_ID uploads
OS_TOKEN=not-a-token OS_PROJECT_ID=$PROJECT_ID refused 4 'OS_TOKEN|token'

as_appcred
uploads
OS_APPLICATION_CREDENTIAL_SECRET=wrong refused 4 'OS_|401|credential'
(
	unset OS_APPLICATION_CREDENTIAL_ID
	export OS_APPLICATION_CREDENTIAL_NAME=lab OS_USERNAME=member OS_USER_DOMAIN_NAME=Default
	uploads
)

# Who may look but not write.
as_reader
ccsnap upload disk.raw refused --to=glance
expect_exit 1
expect_stderr '403|role|allowed|authorized|permission'

# --- clouds.yaml -------------------------------------------------------------

as_nobody
install -m 644 "$bed/clouds.yaml" clouds.yaml
uploads --to=glance:lab
uploads --to=glance:lab-appcred
uploads --to=glance --os-cloud lab
OS_CLOUD=lab uploads
refused 2 'nosuch' --to=glance:nosuch
mv clouds.yaml home/.config/openstack/clouds.yaml
uploads --to=glance:lab
mv home/.config/openstack/clouds.yaml other.yaml
OS_CLIENT_CONFIG_FILE=$T/other.yaml uploads --to=glance:lab

# In parts, each in its place; a broken cloud beside it does no harm.
printf 'clouds:\n  mine:\n  broken: [1, {]}\n' >clouds.yaml
refused 4 'clouds.yaml.*(line 3|:3)' --to=glance:mine
cat >clouds.yaml <<-END
	clouds:
	  broken:
	    regions: 7
	    auth: [a, list]
	  mine:
	    profile: site
	    auth:
	      username: member
	      project_name: lab
	      user_domain_name: Default
	      project_domain_name: Default
END
cat >clouds-public.yaml <<-END
	public-clouds:
	  site:
	    auth:
	      auth_url: $KEYSTONE_URL
	    region_name: RegionOne
END
password=$(jq -r .clouds.lab.auth.password "$bed/clouds.yaml")
printf 'clouds:\n  mine:\n    auth:\n      password: "%s"\n' "$password" >secure.yaml
uploads --to=glance:mine

# What looks like a number stays the very string.
set_password() {
	curl -sS --fail-with-body -o /dev/null -X PATCH "$KEYSTONE_URL/users/$USER_ID" \
		-H "X-Auth-Token: $(new_token admin)" -H 'Content-Type: application/json' \
		-d "{\"user\": {\"password\": \"$1\"}}"
	# A token of the same second would be taken for an older one.
	sleep 1.1
}
odd=0012_34.50
set_password $odd
printf 'clouds:\n  mine:\n    auth:\n      password: %s\n' $odd >secure.yaml
ccsnap upload disk.raw odd --to=glance:mine
set_password "$password"
expect_exit 0
echo odd >>run/uploads
rm clouds.yaml clouds-public.yaml secure.yaml

# --- the metadata service ----------------------------------------------------

# What it answers at path $1, with a new token each time.
cat >run/metadata <<-END
	[ "\${1##*/}" = "\$WANTED" ] || exit 0
	bed='$bed'
	. "\$bed/env"
	$(declare -f new_token)
	jq -n --arg token "\$(new_token)" --arg member "\$MEMBER" --arg url "$KEYSTONE_URL" '
		{site: "a site", region: "RegionOne", project_id: "$PROJECT_ID",
		 service_token: \$token, auth_url_v3: \$url} |
		if \$member == "" then . else {(\$member): .} end'
END
WANTED=vendor_data2.json MEMBER=chameleon fake_server --metadata ". '$T/run/metadata'"
CCSNAP_METADATA_URL=$fake uploads
WANTED=vendor_data.json MEMBER='' fake_server --metadata ". '$T/run/metadata'"
CCSNAP_METADATA_URL=$fake uploads
fake_server
CCSNAP_METADATA_URL=$fake refused 2 'OS_|cloud'
# OS_* are asked first.
as_member
fake_server
CCSNAP_METADATA_URL=$fake uploads
expect_requests metadata 0

[ "$(images | jq -r '.[].name')" = "$(cat run/uploads)" ] || fail "other images: $(images)"
expect_no_notes
