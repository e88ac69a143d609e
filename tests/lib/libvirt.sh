# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# A private libvirtd and small real guests, for tests that have sourced lib.sh.  Nothing of the
# machine's own libvirt is used or touched, and several tests can run at a time.
#
#	session_up                          # qemu:///session, an ordinary user
#	guest_define vm --words writer
#	guest_start vm
#	ccsnap create snap --domain vm --connect "$URI"
#	check_writer_image "$image" quiesced
#
# $L is a directory with a short name that others may pass through: sockets, scratch files and
# disks lie in it.  All of it goes with what runs in it when the test ends.
#
#	session_up           as an ordinary user: uid 65534 if the test is root, else who runs it.
#	                     The XDG_* of the daemon are exported, so that what runs as that user
#	                     finds it (as_ordinary_user makes ccsnap run so); $URI
#	system_up            root, as it is on a hypervisor: QEMU runs as libvirt-qemu, and files
#	                     are given to it and back; $URI, $SYSTEM_URI
#	sshd_up              after system_up: sets $SSH_URI, by which it is reached over ssh, and
#	                     $SSH_PORT
#	sshd_down, sshd_start   nobody can come in meanwhile; ssh_pids [PATTERN]: who has
#	libvirtd_kill [SIGNAL], libvirtd_start
#	                     the guests live on meanwhile
#	as_user COMMAND...   as the one who the daemon belongs to
#	virsh_ ARGUMENT...   likewise, on $URI
#
#	guest_define NAME OPTION...
#	    --words "WORD..."    for the guest's kernel: see make-mini-guest
#	    --format raw|qcow2   of its disk, which is $(guest_disk NAME)
#	    --disk FILE          that file (in the given format) instead of a new one
#	    --deleted            free space holds deleted data
#	    --discard            the disk passes discards on
#	    --bus virtio|scsi    target vda or sda
#	    --data MIB           a second disk (vdb) with an ext4
#	    --boot-order "TARGET..."   boot order elements, in that order
#	    --no-channel         no channel for an agent
#	    --transient          created by guest_start instead of defined
#	    --xml FILE           more devices
#	guest_start NAME         and wait for its agent (or, without a real one, until it is up);
#	                         --no-wait
#	guest_stop NAME          pulls the plug
#	guest_state NAME, guest_pid NAME, guest_disk NAME
#	guest_agent NAME JSON    the agent's answer
#	guest_is_thawed NAME, guest_is_frozen NAME   by the agent
#	guest_console NAME       what it printed
#	guest_tick NAME          the time of the last tick, in ms of the guest: the word "writer"
#	guest_gaps NAME [SINCE_MS]     "START_MS END_MS LENGTH_MS" of what held its writes up
#	guest_longest_gap NAME [SINCE_MS]
#	guest_writes NAME        does it write right now?
#	guest_has_job NAME
#	guest_deny_backup NAME   from now on a backup job cannot be begun, but snapshots can
#	guest_allow_backup NAME
#
#	expect_refusal EXTENDED-REGEX   that one line, exit code 4, and nothing else
#	check_writer_image IMAGE quiesced|crashed [FORMAT]
#	                         a sound filesystem, and no pair in it is broken; sets $pairs

L=$(mktemp -d /var/tmp/ccsnap.XXXXXX)
chmod 755 "$L"
mkdir "$L/guests"
at_exit rm -rf --one-file-system "$L"

# Who has to become what: how a command runs as the daemon's user.
declare -a virt_as=()
URI='' virt_run='' holder=''
declare -A guest_words=() guest_transient=()

requires_libvirt() {
	requires libvirtd virsh qemu-system-x86_64 qemu-img
}

as_user() { # COMMAND...
	"${virt_as[@]}" "$@"
}

virsh_() { # ARGUMENT...
	as_user timeout -k 5 300 virsh -q -c "$URI" "$@"
}

# --- the daemon -----------------------------------------------------------------

# QEMU's settings that both kinds of daemon need in a place without systemd.
qemu_conf() {
	cat <<-'CONF'
		security_driver = "none"
		stdio_handler = "file"
		namespaces = []
		cgroup_controllers = []
	CONF
}

session_up() {
	local name

	requires_libvirt
	virt_as=()
	if [ "$(id -u)" = 0 ]; then
		requires setpriv
		virt_as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	fi
	# Short: libvirt puts sockets deep below the configuration.
	mkdir -p "$L"/s/{run,c/libvirt,cache,data}
	qemu_conf >"$L/s/c/libvirt/qemu.conf"
	[ "$(id -u)" != 0 ] || chown -R 65534:65534 "$L/s" "$L/guests"
	chmod 700 "$L/s/run"
	export XDG_RUNTIME_DIR=$L/s/run XDG_CONFIG_HOME=$L/s/c
	export XDG_CACHE_HOME=$L/s/cache XDG_DATA_HOME=$L/s/data
	URI=qemu:///session
	virt_kind=session virt_run=$L/s/run/libvirt virt_pidfile=$virt_run/libvirtd.pid
	virt_qemu_pids=$virt_run/qemu/run
	at_exit virt_down "$virt_pidfile" "$virt_qemu_pids"
	libvirtd_start
}

# A mount namespace in which the directories that are compiled into libvirt are ours.  It lives
# as long as the process $holder or any other in it.  What is mounted below $L is seen in it.
hold_mounts() {
	local each

	requires_root
	requires unshare nsenter
	[ -z "$holder" ] || return 0
	mkdir -p "$L"/private/{etc,lib,log,cache,run}
	unshare --mount true 2>/dev/null || skip "no mount namespaces to be had here"
	mount --bind "$L" "$L"
	at_exit umount -R -l "$L"
	mount --make-private "$L"
	mount --make-shared "$L"
	for each in /etc/libvirt /var/lib/libvirt /var/log/libvirt /var/cache/libvirt; do
		[ -d $each ] || skip "$each is missing: is libvirt-daemon-system installed?"
	done
	# shellcheck disable=SC2016
	unshare --mount --propagation slave bash -ec '
		mount --bind "$1/etc" /etc/libvirt
		mount --bind "$1/lib" /var/lib/libvirt
		mount --bind "$1/log" /var/log/libvirt
		mount --bind "$1/cache" /var/cache/libvirt
		mount -t tmpfs -o mode=755 run /run
		mkdir -m 755 /run/libvirt /run/sshd
		mount --bind "$1/run" /run/libvirt
		: >"$1/ready"
		exec sleep infinity' hold "$L/private" >/dev/null 2>"$L/private/mounts" &
	holder=$!
	wait_until 30 test -e "$L/private/ready" || skip "no private mounts: $(cat "$L/private/mounts")"
}

in_private_mounts() { # COMMAND...
	nsenter --mount --target "$holder" -- "$@"
}

system_up() {
	requires_root
	requires_libvirt
	getent passwd libvirt-qemu >/dev/null || skip "no user libvirt-qemu here"
	hold_mounts
	virt_as=()
	{ qemu_conf && printf '%s\n' 'user = "libvirt-qemu"' 'group = "libvirt-qemu"'; } \
		>"$L/private/etc/qemu.conf"
	cat >"$L/private/etc/libvirtd.conf" <<-CONF
		unix_sock_rw_perms = "0700"
		auth_unix_rw = "none"
		auth_unix_ro = "none"
		log_outputs = "3:file:$L/private/log/libvirtd.log"
	CONF
	SYSTEM_URI="qemu+unix:///system?socket=$L/private/run/libvirt-sock"
	URI=$SYSTEM_URI
	virt_kind=system virt_run=$L/private/run virt_pidfile=$L/private/libvirtd.pid
	virt_qemu_pids=$virt_run/qemu
	at_exit virt_down "$virt_pidfile" "$virt_qemu_pids"
	libvirtd_start
}

libvirtd_start() {
	case $virt_kind in
	session) (cd / && as_user libvirtd -d -p "$virt_pidfile") >"$L/libvirtd" 2>&1 ;;
	system)
		in_private_mounts libvirtd -d -p "$virt_pidfile" \
			-f /etc/libvirt/libvirtd.conf >"$L/libvirtd" 2>&1
		;;
	# A client of qemu:///session that missed it may have been faster.
	esac || virt_answers || fail "libvirtd does not start: $(cat "$L/libvirtd")"
	wait_until 60 virt_answers || fail "libvirtd does not answer"
}

virt_answers() {
	as_user timeout 30 virsh -q -c "$URI" list >/dev/null 2>&1
}

libvirtd_kill() { # [SIGNAL]
	local pid

	pid=$(cat "$virt_pidfile")
	kill -"${1:-KILL}" "$pid"
	wait_until 60 is_no_process "$pid" || fail "libvirtd does not end"
}

is_no_process() { # PID
	! [ -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null
}

# Only what is still the program that wrote its number there.
kill_by_file() { # PIDFILE PROGRAM
	local pid

	pid=$(cat "$1" 2>/dev/null) && [ -n "$pid" ] || return 0
	[[ $(readlink "/proc/$pid/exe") == */"$2"* ]] || return 0
	kill -CONT "$pid"
	kill -KILL "$pid"
	wait_until 20 is_no_process "$pid"
}

# The daemon first: it would report and tidy up after each guest.
virt_down() { # PIDFILE DIRECTORY-OF-QEMU'S
	local file

	kill_by_file "$1" libvirtd
	for file in "$2"/*.pid; do
		kill_by_file "$file" qemu-system
	done
}

# --- over ssh -------------------------------------------------------------------

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# From now on, ssh knows nothing of the machine's own keys and known hosts.
sshd_up() {
	local locked

	requires ssh sshd ssh-keygen
	hold_mounts
	mkdir -m 700 "$L/ssh"
	ssh-keygen -q -t ed25519 -N '' -f "$L/ssh/host_key"
	ssh-keygen -q -t ed25519 -N '' -f "$L/ssh/key"
	cp "$L/ssh/key.pub" "$L/ssh/authorized_keys"
	# Without PAM, an account that is locked cannot log in.
	locked=$(getent shadow root | grep -q '^root:!' && echo yes || echo no)
	SSH_PORT=$(free_port)
	cat >"$L/ssh/sshd_config" <<-CONF
		ListenAddress 127.0.0.1:$SSH_PORT
		HostKey $L/ssh/host_key
		AuthorizedKeysFile $L/ssh/authorized_keys
		PidFile $L/ssh/sshd.pid
		PermitRootLogin prohibit-password
		PasswordAuthentication no
		UsePAM $locked
		StrictModes no
	CONF
	mkdir -p "$L/bin"
	printf '#!/bin/sh\nexec %s -o UserKnownHostsFile=%s -F none "$@"\n' \
		"$(command -v ssh)" "$L/ssh/known_hosts" >"$L/bin/ssh"
	chmod 755 "$L/bin/ssh"
	PATH=$L/bin:$PATH
	at_exit sshd_down
	sshd_start
	SSH_URI="qemu+ssh://root@127.0.0.1:$SSH_PORT/system"
	SSH_URI+="?keyfile=$L/ssh/key&no_verify=1"
}

sshd_start() {
	rm -f "$L/ssh/sshd.pid"
	in_private_mounts "$(command -v sshd)" -f "$L/ssh/sshd_config" -E "$L/ssh/log" &&
		wait_until 30 test -s "$L/ssh/sshd.pid" ||
		fail "sshd does not start: $(cat "$L/ssh/log")"
}

# Nobody comes in any more; who is there stays.
sshd_down() {
	kill_by_file "$L/ssh/sshd.pid" sshd
}

# Of the clients on this side; the pattern is one of pgrep.
ssh_pids() { # [PATTERN]
	pgrep -f -- "UserKnownHostsFile=$L/ssh/known_hosts.*${1:-}"
}

# --- guests ---------------------------------------------------------------------

mini_guest() {
	mini=$L/mini
	[ -d "$mini" ] || make_mini_guest
}

make_mini_guest() {
	CCSNAP_CACHE=$CCSNAP_CACHE "$test_lib/make-mini-guest" "$mini" >"$L/make-mini-guest" 2>&1 ||
		skip "no mini guest: $(tail -n 1 "$L/make-mini-guest")"
	# Where QEMU's user can read them, whatever the cache's directory is like.
	cp --remove-destination -L "$mini/vmlinuz" "$mini/initrd" "$L/guests/"
}

guest_dir() { # NAME
	echo "$L/guests/$1"
}

# What it said when it was defined; after a blockcopy or a snapshot libvirt knows better.
guest_disk() { # NAME
	cat "$(guest_dir "$1")/disk"
}

put_disk() { # FROM FORMAT FILE
	case $2 in
	raw) cp --sparse=always --reflink=auto "$(readlink -f "$1")" "$3" ;;
	*) qemu-img convert -q -f raw -O "$2" "$1" "$3" ;;
	esac
}

guest_define() { # NAME OPTION...
	local name=$1 words='' format=raw disk='' template=disk bus=virtio target=vda data=''
	local discard='' order='' channel=yes transient=no more='' dir

	mini_guest
	shift
	while [ $# -gt 0 ]; do
		case $1 in
		--words) words=$2 && shift ;;
		--format) format=$2 && shift ;;
		--disk) disk=$2 && shift ;;
		--deleted) template="disk-deleted" ;;
		--discard) discard=" discard='unmap'" ;;
		--bus) bus=$2 && shift ;;
		--data) data=$2 && shift ;;
		--boot-order) order=$2 && shift ;;
		--no-channel) channel=no ;;
		--transient) transient=yes ;;
		--xml) more=$2 && shift ;;
		*) fail "guest_define: $1" ;;
		esac
		shift
	done
	[ "$bus" = virtio ] || target=sda
	dir=$(guest_dir "$name")
	mkdir -p "$dir"
	rm -f "$dir/console"
	: >"$dir/console"
	if [ -z "$disk" ]; then
		disk=$dir/disk.$format
		put_disk "$mini/$template.raw" "$format" "$disk"
	fi
	echo "$disk" >"$dir/disk"
	[ -z "$data" ] || put_data_disk "$dir/data.raw" "$data"
	guest_xml >"$dir/domain.xml"
	[ "$virt_kind" = system ] || [ "$(id -u)" != 0 ] || chown -R 65534:65534 "$dir"
	guest_words[$name]=$words guest_transient[$name]=$transient
	[ $channel = yes ] || guest_words[$name]+=" noagent"
	[ $transient = yes ] || virsh_ define "$dir/domain.xml" >/dev/null
}

put_data_disk() { # FILE MIB
	truncate -s "$2M" "$1"
	mke2fs -q -F -t ext4 -b 4096 -L data "$1"
}

# The rest belongs to guest_define, whose variables these use.
order_xml() { # TARGET
	local each number=0

	for each in $order; do
		number=$((number + 1))
		[ "$each" != "$1" ] || echo "<boot order='$number'/>"
	done
}

disk_xml() { # FILE FORMAT TARGET BUS
	cat <<-XML
		<disk type='file' device='disk'>
		  <driver name='qemu' type='$2'$discard/>
		  <source file='$1'/>
		  <target dev='$3' bus='$4'/>
		  $(order_xml "$3")
		</disk>
	XML
}

channel_xml() {
	[ $channel = yes ] || return 0
	cat <<-XML
		<channel type='unix'>
		  <target type='virtio' name='org.qemu.guest_agent.0'/>
		</channel>
	XML
}

guest_xml() {
	cat <<-XML
		<domain type='qemu'>
		  <name>$name</name>
		  <memory unit='MiB'>192</memory>
		  <vcpu>1</vcpu>
		  <os>
		    <type arch='x86_64' machine='pc'>hvm</type>
		    <kernel>$L/guests/vmlinuz</kernel>
		    <initrd>$L/guests/initrd</initrd>
		    <cmdline>console=ttyS0 quiet panic=0 $words</cmdline>
		  </os>
		  <features><acpi/></features>
		  <cpu mode='custom'><model>qemu64</model></cpu>
		  <on_poweroff>destroy</on_poweroff>
		  <on_reboot>restart</on_reboot>
		  <on_crash>preserve</on_crash>
		  <devices>
		    <emulator>$(command -v qemu-system-x86_64)</emulator>
		    $(disk_xml "$disk" "$format" "$target" "$bus")
		    $([ -z "$data" ] || disk_xml "$dir/data.raw" raw vdb virtio)
		    $([ "$bus" = virtio ] || echo "<controller type='scsi' model='virtio-scsi'/>")
		    <controller type='usb' model='none'/>
		    <serial type='file'><source path='$dir/console' append='on'/></serial>
		    $(channel_xml)
		    <memballoon model='none'/>
		    <panic model='isa'/>
		    $([ -z "$more" ] || cat "$more")
		  </devices>
		</domain>
	XML
}

guest_start() { # NAME [--no-wait]
	local up

	if [ "${guest_transient[$1]}" = yes ]; then
		virsh_ create "$(guest_dir "$1")/domain.xml" >"$L/start" 2>&1
	else
		virsh_ start "$1" >"$L/start" 2>&1
	fi || fail "guest $1 does not start: $(cat "$L/start")"
	[ "${2:-}" != --no-wait ] || return 0
	guest_wait "$1"
}

# Until the agent answers; where there is no real one, until it is up.
guest_wait() { # NAME
	case " ${guest_words[$1]}" in
	*' noagent'*) wait_until 240 guest_is_up "$1" ;;
	*' fakeagent='*) wait_until 240 guest_has_agent "$1" ;;
	*) wait_until 240 guest_answers "$1" ;;
	esac || fail "guest $1 does not come up: $(guest_console "$1" | tail -n 20)"
}

guest_is_up() { # NAME
	guest_console "$1" | grep -q '^mini guest is up'
}

# The port is open, whatever listens there.
guest_has_agent() { # NAME
	virsh_ dumpxml "$1" | grep -q "name='org.qemu.guest_agent.0' state='connected'"
}

guest_answers() { # NAME
	guest_agent "$1" '{"execute":"guest-ping"}' >/dev/null 2>&1
}

guest_agent() { # NAME JSON
	virsh_ qemu-agent-command --timeout 10 "$1" "$2"
}

guest_fsfreeze_status() { # NAME
	guest_agent "$1" '{"execute":"guest-fsfreeze-status"}'
}

guest_is_thawed() { # NAME
	[[ $(guest_fsfreeze_status "$1") == *'"thawed"'* ]]
}

guest_is_frozen() { # NAME
	[[ $(guest_fsfreeze_status "$1") == *'"frozen"'* ]]
}

guest_stop() { # NAME
	virsh_ destroy "$1" >/dev/null
}

guest_state() { # NAME
	virsh_ domstate "$1"
}

guest_pid() { # NAME
	echo "$(<"$virt_qemu_pids/$1.pid")"
}

guest_console() { # NAME
	tr -d '\r\0' <"$(guest_dir "$1")/console"
}

# Whole lines only: the last one may be on its way.
guest_lines() { # NAME WORD
	guest_console "$1" | sed '$d' | grep "^$2 " || true
}

guest_tick() { # NAME
	guest_lines "$1" tick | tail -n 1 | cut -d ' ' -f 3
}

guest_gaps() { # NAME [SINCE_MS]
	guest_lines "$1" gap | awk -v since="${2:-0}" '$4 >= since { print $3, $4, $5 }'
}

guest_longest_gap() { # NAME [SINCE_MS]
	guest_gaps "$@" | awk '$3 > most { most = $3 } END { print most + 0 }'
}

guest_writes() { # NAME
	local tick

	tick=$(guest_lines "$1" tick | tail -n 1)
	wait_until 30 guest_ticks_beyond "$1" "$(cut -d ' ' -f 2 <<<"$tick")"
}

guest_ticks_beyond() { # NAME TRANSACTIONS
	guest_lines "$1" tick | tail -n 1 | awk -v seen="${2:-0}" '$2 > seen { n = 1 } END { exit !n }'
}

guest_has_job() { # NAME
	[[ $(virsh_ domjobinfo "$1" 2>/dev/null) =~ Operation: ]]
}

# QEMU has one NBD server, and now it is somebody else's.
guest_deny_backup() { # NAME
	as_user mkdir -p -m 777 "$(guest_nbd_dir)"
	virsh_ qemu-monitor-command "$1" "$(jq -nc --arg path "$(guest_nbd_dir)/$1" '{
		execute: "nbd-server-start",
		arguments: {addr: {type: "unix", data: {path: $path}}}}')" >/dev/null
}

guest_allow_backup() { # NAME
	virsh_ qemu-monitor-command "$1" '{"execute":"nbd-server-stop"}' >/dev/null
}

guest_nbd_dir() {
	[ "$virt_kind" = system ] && echo "$L/nbd" || echo "$L/s/nbd"
}

# A refusal is one line, beside the warning that all mini guests get.
expect_refusal() { # EXTENDED-REGEX
	expect_exit 4
	sed -i '/^ccsnap: warning: domain .* boots a kernel of its host/d' "$err"
	expect_one_line "$1"
}

# --- images ---------------------------------------------------------------------

# A copy of what the guest's disk held; a replay of its journal is part of crashing.
check_writer_image() { # IMAGE quiesced|crashed [FORMAT]
	local disk=$T/run/writer.raw seen=$T/run/writer

	rm -rf "$disk" "$seen"
	mkdir "$seen"
	qemu-img convert -q ${3:+-f "$3"} -O raw "$1" "$disk" || fail "cannot unpack $1"
	case $2 in
	quiesced) expect_clean_journal "$disk" ;;
	crashed) e2fsck -p "$disk" >"$T/run/e2fsck" 2>&1 || [ $? = 1 ] ||
		fail "journal of $1: $(cat "$T/run/e2fsck")" ;;
	esac
	e2fsck -fn "$disk" >"$T/run/e2fsck" 2>&1 || fail "e2fsck -fn $1: $(cat "$T/run/e2fsck")"
	debugfs -R "rdump /pairs $seen" "$disk" >/dev/null 2>&1
	expect_whole_pairs "$seen/pairs"
	rm -rf "$disk" "$seen"
}

expect_clean_journal() { # DISK
	dumpe2fs -h "$1" >"$T/run/dumpe2fs" 2>/dev/null || fail "no ext4"
	! grep -q needs_recovery "$T/run/dumpe2fs" || fail "the journal is not clean"
}

# A b-* is the line of a list that sha256sum checks.
expect_whole_pairs() { # DIRECTORY
	pairs=$(find "$1" -name 'b-????????' 2>/dev/null | wc -l)
	[ "$pairs" -gt 0 ] || fail "the writer has written nothing"
	(cd "$1" && cat b-????????) >"$T/run/pairs"
	[ "$(wc -l <"$T/run/pairs")" = "$pairs" ] || fail "an unfinished b-* in the image"
	(cd "$1" && sha256sum --check --strict --quiet "$T/run/pairs") >"$T/run/sums" 2>&1 ||
		fail "a broken pair: $(cat "$T/run/sums")"
	echo "$pairs whole pairs"
}

# --- what a run leaves ------------------------------------------------------------

guest_uuid() { # NAME
	virsh_ domuuid "$1" | sed '/^$/d'
}

# How long libvirt waits for its agent, in seconds; -2 is the default: for ever.
guest_patience() { # NAME
	sed -n 's,.*<agentTimeout>\(.*\)</agentTimeout>.*,\1,p' "$virt_qemu_pids/$1.xml"
}

# Processes of ccsnap that watch over it, one a line.
guest_guards() { # NAME
	local uuid

	uuid=$(guest_uuid "$1")
	[ -n "$uuid" ] || fail "$1 has no UUID"
	pgrep -a -f "^ccsnap-guard .*$uuid" || true
}

# All that ccsnap has with it right now, one a line; DIRECTORY is where its scratch files may be.
guest_traces() { # NAME [DIRECTORY]
	guest_guards "$1"
	! guest_has_job "$1" || echo "a job"
	find "${2:-$L}" -name 'ccsnap-??????'
	grep -E '^(frozen|patience|run-id|target|scratch|socket|overlay)' \
		"${XDG_STATE_HOME:-$HOME/.local/state}/ccsnap/domains/$(guest_uuid "$1")" 2>/dev/null ||
		true
	[ ! -e "$virt_qemu_pids/$1.xml" ] || [ "$(guest_patience "$1")" = -2 ] ||
		echo "libvirt waits $(guest_patience "$1") s for its agent"
}

expect_no_traces() { # NAME [DIRECTORY]
	local traces

	traces=$(guest_traces "$@")
	[ -z "$traces" ] || fail "left with $1: $traces"
}

# --- the guest's clock --------------------------------------------------------------

# Later than all that its pinger has told, in ms; 1 before that.
guest_now() { # NAME
	guest_console "$1" | sed '$d' | awk '
		$1 == "tick" && $3 > now { now = $3 }
		$1 == "gap" && $4 > now { now = $4 }
		END { print now + 1 }'
}

guest_is_past() { # NAME MS
	[ "$(guest_now "$1")" -gt "$2" ]
}
