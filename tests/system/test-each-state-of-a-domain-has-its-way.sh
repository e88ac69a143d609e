#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A domain that runs is frozen, one that is paused stays so, one that is shut off is read under
# QEMU's lock, one that crashed is refused; whichever way it is named, and inspect says it before.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/libvirt.sh"
requires jq strace e2fsck debugfs dumpe2fs
requires_jsonschema
export XDG_STATE_HOME=$T/home/state
mkdir reports
session_up

cdrom_xml() {
	cat <<-XML
		<controller type='sata' index='0'/>
		<disk type='file' device='cdrom'>
		  <driver name='qemu' type='raw'/>
		  <target dev='sda' bus='sata'/>
		  <readonly/>
		  <boot order='1'/>
		</disk>
	XML
}

# vm: its boot order begins with a CD-ROM drive.  The last four never run here but for a moment.
cdrom_xml >"$L/cdrom.xml"
guest_define vm --words "writer hook" --format qcow2 --deleted --discard \
	--xml "$L/cdrom.xml" --boot-order "cdrom vda"
guest_define plain --words writer --no-channel --transient
guest_define crashing --words "crash=1" --no-channel
guest_define raw
guest_define qcow2 --format qcow2
guest_define order --data 16 --boot-order "vdb vda"
as_user qemu-img create -q -f qcow2 -b "$(guest_disk raw)" -F raw "$L/guests/overlay.qcow2"
guest_define backed --format qcow2 --disk "$L/guests/overlay.qcow2"
as_ordinary_user
for each in vm plain crashing; do
	guest_start $each --no-wait
done

# --- act and check ----------------------------------------------------------------

# capture_domain NAME VM OPTION...: into the store; sets $image.
capture_domain() {
	ccsnap create "$1" --domain "$2" --connect "$URI" --to folder:store --overwrite \
		--report report.json "${@:3}"
	if [ "$status" = 0 ] || [ "$status" = 3 ]; then
		image=$(report .image.path)
	fi
}

expect_refused() { # EXTENDED-REGEX
	expect_refusal "$1"
	expect_empty store
}

inspect() { # VM [OPTION...]
	ccsnap inspect --domain "$1" --connect "$URI" "${@:2}"
	expect_exit 0
}

# expect_found VM JQ-CONDITION EXTENDED-REGEX...: by both ways to tell it.
expect_found() {
	local regex

	inspect "$1" --json
	jq -e "$2" "$out" >/dev/null || fail "inspect does not tell '$2'"
	inspect "$1"
	for regex in "${@:3}"; do
		expect_stdout "$regex"
	done
}

expect_nothing_left() { # RUNNING-VM
	local left

	! guest_has_job "$1" || fail "$1 has a job"
	left=$(find "$L" "$T" -mindepth 1 -name 'ccsnap-*')
	[ -z "$left" ] || fail "left behind: $left"
	! grep -rE '^(frozen|patience|scratch|socket|overlay)' "$XDG_STATE_HOME" || fail "noted"
}

expect_state() { # VM STATE
	[ "$(guest_state "$1")" = "$2" ] || fail "$1 is $(guest_state "$1")"
}

same_content() { # IMAGE FORMAT DISK FORMAT
	qemu-img check -q -f "$2" "$1" || fail "qemu-img check $1"
	qemu-img compare -q -U -f "$2" -F "$4" "$1" "$3" || fail "$1 does not equal $3"
}

# --- shut off: meanwhile the others boot ---------------------------------------------

# Nobody gets to start it in between; afterwards everybody does.
off_under_lock() { # VM
	: >run/progress
	"$CCSNAP" create off --domain "$1" --connect "$URI" --to folder:store --overwrite \
		--report report.json "${slow[@]}" --threads 1 --progress json \
		>run/progress 2>run/err &
	pid=$!
	wait_until 120 grep -q '"done_bytes": *[1-9]' run/progress || fail "no progress"
	kill -STOP $pid
	run virsh_ start "$1"
	[ "$status" != 0 ] || fail "$1 could be started while it was read"
	expect_stderr 'lock'
	kill -CONT $pid
	wait $pid || fail "the capture failed: $(cat run/err)"
	same_content "$(report .image.path)" qcow2 "$(guest_disk "$1")" "$1"
	expect_report '.source | .consistency == "offline" and .domain.state == "shut off"'
	expect_report '.quiesce | .method == null and .quiesced == false and .reason == null'
	cp report.json "reports/off-$1"
	virsh_ start --paused "$1" || fail "$1 cannot be started any more"
	guest_stop "$1"
}
off_under_lock raw
off_under_lock qcow2
expect_found qcow2 '.state == "shut off" and .active == false and .refusal == null and
	.agent.answers == null and (.would | contains("started"))' \
	'\(shut off\)' 'keep the domain from being started'

# Neither is asked for what is not there.
capture_domain off raw --quiesce=require
expect_exit 0
expect_report '.source.consistency == "offline"'
rm store/*

# What it is based on is read only if that is wanted.
capture_domain off backed
expect_refused 'allow-backing'
capture_domain off backed --allow-backing
expect_exit 0
same_content "$image" qcow2 "$(guest_disk raw)" raw
rm store/*

# --- which disk ------------------------------------------------------------------------

chosen() { # VM [OPTION...]
	inspect "$@" --json
	jq -r '.disks[] | select(.chosen) | .target' "$out"
}

[ "$(chosen order)" = vdb ] || fail "not the first in the boot order"
capture_domain disk order
expect_exit 0
expect_report '.source | .domain.disk == "vdb" and .size_bytes == 16 * 1048576'
expect_image_equals "$image" qcow2 "$L/guests/order/data.raw"
for each in vda "$(guest_disk order)"; do
	[ "$(chosen order --disk "$each")" = vda ] || fail "$each is not vda"
	capture_domain disk order --disk "$each" --dry-run
	expect_exit 0
	expect_report '.source | .domain.disk == "vda" and .size_bytes == 512 * 1048576'
done
rm store/*
capture_domain disk order --disk vdc
expect_refused "vdc.* vda \($(guest_disk order)\), vdb \($L/guests/order/data.raw\)"
[ "$(chosen vm)" = vda ] || fail "the CD-ROM drive was not passed over"
capture_domain disk vm --disk sda
expect_refused 'CD-ROM'
capture_domain disk nobody
expect_refused 'nobody'

# --- never onto the domain's own files -----------------------------------------------------

# refuses_to_replace VM FILE
refuses_to_replace() {
	local before

	before=$(stat -c %i "$2")
	ccsnap create own --domain "$1" --connect "$URI" --output "$2" --overwrite
	expect_refusal "$2"
	[ "$(stat -c %i "$2")" = "$before" ] || fail "$2 was replaced"
}
refuses_to_replace vm "$(guest_disk vm)"
refuses_to_replace plain "$(guest_disk plain)"
refuses_to_replace raw "$(guest_disk raw)"
refuses_to_replace order "$(guest_disk order)"
refuses_to_replace backed "$(guest_disk raw)"
ccsnap create disk --domain vm --connect "$URI" --to "folder:$L/guests/vm" --overwrite
expect_refusal "$(guest_disk vm)"

# --- running: whichever way it is named -------------------------------------------------

guest_wait vm
expect_found vm '.state == "running" and .active and .refusal == null and .left == null and
	(.would | contains("freeze")) and .machine != null and .firmware == "bios" and
	(.disks | map(.target) == ["vda", "sda"]) and
	(.disks[0] | .kind == "file" and .format == "qcow2" and .size_bytes == 512 * 1048576 and
		.allocated_bytes > 64 * 1048576 and .why_not == null) and
	(.disks[1].why_not | contains("CD-ROM")) and
	(.agent | .channel and .connected and .answers and .can_freeze and .can_trim and
		.frozen == false and .filesystems == [{mountpoint: "/data", type: "ext4"}])' \
	"^domain  *vm \(running\)" 'vda \(chosen\): file .*/disk\.qcow2 \(qcow2, 512 MiB' \
	'CD-ROM' '^agent .*freeze and trim' '^filesystem  */data \(ext4\)' 'would freeze'
uuid=$(virsh_ domuuid vm)
id=$(virsh_ domid vm)
socket_uri="qemu+unix:///session?socket=$virt_run/libvirt-sock"
for each in "vm $URI" "$uuid $URI" "$id $URI" "vm $socket_uri"; do
	read -r name uri <<<"$each"
	ccsnap create dry --domain "$name" --connect "$uri" --to folder:store --dry-run \
		--report report.json
	expect_exit 0
	expect_report ".source.domain | .name == \"vm\" and .uuid == \"$uuid\""
	expect_empty store
done

# --- a dry run does nothing at all --------------------------------------------------------

# What libvirtd and QEMU have by their own is no matter of ours.
all_files() {
	find "$T" "$L" \( -path "$T/run" -o -path "$L/s" \) -prune -o -printf '%p %i %m\n' | sort
}

all_files >run/before
# By the socket: libvirt itself locks something before it starts a session's daemon.
traced run/trace -e trace=file,desc,network,process -- "$CCSNAP" create dry --domain vm \
	--connect "$socket_uri" --to folder:store --dry-run
expect_exit 0
expect_stdout 'vm \(running\)'
all_files >run/after
diff run/before run/after || fail "a dry run changed something"
if grep -E 'open[a-z0-9]*\(.*O_(WRONLY|RDWR|CREAT|TRUNC)' run/trace |
	grep -vE '"/dev/(null|tty)"|= -1 '; then
	fail "opened for writing"
fi
! grep -E '(mkdir|mknod|bind|unlink|rename|link|flock)[a-z0-9]*\(' run/trace |
	grep -vE '(readlink|= -1 )' || fail "made, locked or removed something"
[ "$(grep -c 'execve(.*= 0$' run/trace)" -le 3 ] || fail "started a process"
expect_nothing_left vm

# --- running: frozen once, by way of the guest's own hook -----------------------------------

hooks() { # freeze|thaw
	guest_lines vm hook | grep -c "^hook $1 " || true
}
hooks_ran() { # COUNT
	[ "$(hooks freeze) $(hooks thaw)" = "$1 $1" ]
}

[ "$(hooks freeze)" = 0 ] || fail "frozen by a dry run, an inspection or a refusal"
capture_domain running vm --connect "$socket_uri" --quiesce=require
expect_exit 0
expect_report '.quiesce | .quiesced and .method == "backup-job" and .trimmed == false'
wait_until 60 hooks_ran 1 || fail "hooks: $(hooks freeze) freezes, $(hooks thaw) thaws"
check_writer_image "$image" quiesced
read_before=$(report .capture.bytes_read) size_before=$(report .image.size_bytes)

# What was deleted need not be read.
capture_domain trimmed vm --trim
expect_exit 0
expect_report '.quiesce | .quiesced and .trimmed'
check_writer_image "$image" quiesced
wait_until 60 hooks_ran 2 || fail "hooks: $(hooks freeze) freezes, $(hooks thaw) thaws"
for each in "$read_before $(report .capture.bytes_read)" "$size_before $(report .image.size_bytes)"; do
	read -r before after <<<"$each"
	[ "$after" -lt $((before - 48 * 1048576)) ] || fail "with --trim $after, without $before"
done
expect_nothing_left vm
rm store/*

# --- paused by a user: not woken for that -------------------------------------------------------

virsh_ suspend vm
expect_found vm '.state == "paused by a user" and .active and .agent.answers == null and
	(.would | contains("without freezing"))' '\(paused by a user\)' 'without freezing'
capture_domain paused vm --quiesce=require
expect_refused 'paused by a user'
expect_state vm paused
capture_domain paused vm
expect_exit 3
expect_report '.source | .consistency == "crash-consistent" and .domain.state == "paused by a user"'
expect_report '.quiesce | .quiesced == false and (.reason | contains("paused"))'
cp report.json reports/paused
expect_state vm paused
same_content "$image" qcow2 "$(guest_disk vm)" qcow2
expect_nothing_left vm
hooks_ran 2 || fail "frozen while it was paused"
virsh_ resume vm
guest_writes vm || fail "it does not write any more"
rm store/*

# --- nobody to freeze it, and no definition that stays ---------------------------------------------

guest_wait plain
expect_found plain '.state == "running" and (.agent | .channel == false and .answers == null and
	.filesystems == []) and (.would | contains("no channel"))' \
	'^agent .*no channel' 'without freezing.*no channel'
inspect plain --quiesce=require
expect_stdout 'would refuse: .*channel'
capture_domain plain plain --quiesce=require
expect_refused 'channel'
capture_domain plain plain --trim
expect_exit 3
expect_stderr 'not trimmed'
expect_report '.source.consistency == "crash-consistent" and
	(.quiesce | .quiesced == false and .trimmed == false and (.reason | contains("channel")))'
check_writer_image "$image" crashed
guest_writes plain || fail "it does not write any more"
expect_nothing_left plain
[ "$(virsh_ dominfo plain | grep Persistent)" = "Persistent:     no" ] || fail "it is defined now"
rm store/*

# --- crashed: its disk may be in any state, and QEMU still has it -------------------------------------

is_crashed() {
	[ "$(guest_state crashing)" = crashed ]
}
wait_until 120 is_crashed || fail "it does not crash"
expect_found crashing '(.state | startswith("crashed")) and .would == null and .refusal != null' \
	'would refuse'
capture_domain crashed crashing
expect_refused 'crashed'
expect_state crashing crashed

# --- prune: of one domain ---------------------------------------------------------------------------

# made NAME SECOND VM: an image of the series as if it had been made in that second.
made() {
	capture_domain "$1" "$3" --series nightly
	expect_exit 0
	rm report.json
	jq --arg time "2026-01-31T23:59:$2Z" '.created_at = $time' "store/$1.manifest.json" >run/new
	cat run/new >"store/$1.manifest.json"
}
expect_images() { # NAME...
	ccsnap list --to folder:store --json
	[ "$(jq -r 'map(.name) | sort | join(" ")' "$out")" = "$*" ] || fail "not $*"
}

made a1 10 raw
made a2 11 qcow2
made b1 12 raw
made b2 13 qcow2
made c1 14 raw
prune=(prune --to folder:store --series nightly --connect "$URI" --keep-last)
ccsnap "${prune[@]}" 1 --domain qcow2 --dry-run
expect_stdout 'would remove a2 '
expect_images a1 a2 b1 b2 c1
ccsnap "${prune[@]}" 1 --domain qcow2
expect_exit 0
expect_images a1 b1 b2 c1
ccsnap "${prune[@]}" 1 --domain vm
expect_exit 0
expect_images a1 b1 b2 c1

# Of a domain that is gone only the UUID is left.
uuid=$(virsh_ domuuid raw)
virsh_ undefine raw
ccsnap "${prune[@]}" 2 --domain raw
expect_exit 4
ccsnap "${prune[@]}" 2 --domain "$uuid"
expect_exit 0
expect_images b1 b2 c1
expect_valid_report reports/*
