// SPDX-License-Identifier: Apache-2.0
//
// Connections, domains and what libvirt says, on the hypervisor that its library pretends to have:
// test:///.  No daemon and no network take part.
#include "base/err.h"
#include "base/interrupt.h"
#include "base/str.h"
#include "virt/domain.h"
#include "virt/errand.h"
#include "virt/hardware.h"
#include "virt/virt.h"
#include "virt/virt_inner.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static struct err err;

static struct virt *open_or_fail(const char *uri, enum virt_access access)
{
	struct virt *v = virt_open(uri, access, &err);

	if (!v)
		fail_msg("%s", err.text);
	return v;
}

/* --- connections --------------------------------------------------------------------- */

static void a_connection_is_what_was_asked_for(void **state)
{
	autovirt struct virt *v = open_or_fail("test:///default", VIRT_MANAGE);

	(void)state;
	assert_string_equal(virt_uri(v), "test:///default");
	assert_int_equal(virt_access(v), VIRT_MANAGE);
	assert_int_equal(virt_place(v), VIRT_HERE);
	assert_true(virt_is_alive(v));
}

static void who_looks_cannot_change_anything(void **state)
{
	autovirt struct virt *v = open_or_fail("test:///default", VIRT_LOOK);
	autodomain struct domain *d = domain_find(v, "test", &err);

	(void)state;
	assert_int_equal(virt_access(v), VIRT_LOOK);
	assert_non_null(d);
	assert_int_equal(virDomainDestroy(d->dom), -1);
	assert_int_equal(virt_last_code(), VIR_ERR_OPERATION_DENIED);
	assert_true(domain_is_active(d));
}

static void without_a_uri_the_environment_decides(void **state)
{
	static const char *const nothing[] = { NULL, "" };

	(void)state;
	setenv("LIBVIRT_DEFAULT_URI", "test:///default", 1);
	for (size_t i = 0; i < LENGTH(nothing); i++) {
		autovirt struct virt *v = open_or_fail(nothing[i], VIRT_LOOK);

		assert_string_equal(virt_uri(v), "test:///default");
	}
	unsetenv("LIBVIRT_DEFAULT_URI");
}

static void another_connection_leads_to_the_same_place(void **state)
{
	autovirt struct virt *v = open_or_fail("test:///default", VIRT_LOOK);
	autovirt struct virt *other = virt_reopen(v, &err);

	(void)state;
	assert_non_null(other);
	assert_string_equal(virt_uri(other), "test:///default");
	assert_int_equal(virt_access(other), VIRT_LOOK);
}

static void where_no_daemon_is_it_is_said_what_to_do(void **state)
{
	(void)state;
	assert_null(virt_open("qemu+unix:///system?socket=/nowhere/sock", VIRT_MANAGE, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_string_equal(err.text,
			    "cannot connect to qemu+unix:///system?socket=/nowhere/sock: failed to "
			    "connect socket to '/nowhere/sock': No such file or directory; is "
			    "libvirtd running? say with --connect where it is");
}

static void what_is_no_uri_is_refused_with_the_form_of_one(void **state)
{
	static const char *const uris[] = { "nonsense", ":///", "qemu+pigeon:///system" };

	(void)state;
	for (size_t i = 0; i < LENGTH(uris); i++) {
		assert_null(virt_open(uris[i], VIRT_MANAGE, &err));
		assert_int_equal(err.kind, ERR_REFUSED);
		assert_non_null(strstr(err.text, "; a URI looks like qemu:///system"));
	}
}

static void a_uri_tells_where_the_files_are(void **state)
{
	static const struct {
		const char *uri;
		enum virt_place place;
	} cases[] = {
		{ "qemu:///system", VIRT_HERE },
		{ "qemu:///session", VIRT_HERE },
		{ "QEMU+UNIX:///system", VIRT_HERE },
		{ "qemu+unix:///system?socket=/run/a@b/sock", VIRT_HERE },
		{ "qemu:///system?socket=//host/x", VIRT_HERE },
		{ "qemu://user@/system", VIRT_HERE },
		{ "qemu:///embed?root=/tmp/x", VIRT_HERE },
		{ "test:///default", VIRT_HERE },
		{ "test+tcp://host/default", VIRT_HERE },
		{ "qemu+ssh://root@host:22/system", VIRT_OVER_SSH },
		{ "qemu+ssh://[::1]/system", VIRT_OVER_SSH },
		{ "qemu+SSH:///system", VIRT_OVER_SSH },
		{ "qemu://host/system", VIRT_ELSEWHERE },
		{ "qemu://localhost/system", VIRT_ELSEWHERE },
		{ "qemu://user@host/system", VIRT_ELSEWHERE },
		{ "qemu://[::1]:16514/system", VIRT_ELSEWHERE },
		{ "qemu+tls:///system", VIRT_ELSEWHERE },
		{ "qemu+tcp://host/system", VIRT_ELSEWHERE },
		{ "qemu+libssh://host/system", VIRT_ELSEWHERE },
		{ "qemu+libssh2://host/system", VIRT_ELSEWHERE },
		{ "qemu+ext:///system?command=/bin/x", VIRT_ELSEWHERE },
		{ "qemu+sshx://host/system", VIRT_ELSEWHERE },
		{ "nonsense", VIRT_ELSEWHERE },
		{ "", VIRT_ELSEWHERE },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++)
		if (virt_place_of(cases[i].uri) != cases[i].place)
			fail_msg("%s: %d", cases[i].uri, virt_place_of(cases[i].uri));
}

/* --- what libvirt says ----------------------------------------------------------------- */

static const char *words(int code, int sys_errno, const char *message)
{
	static char text[1024];
	virError e = { .code = code, .int1 = sys_errno, .message = (char *)(uintptr_t)message };

	return virt_words(&e, text, sizeof text);
}

static void an_error_is_one_line_without_preamble_and_full_stop(void **state)
{
	static const struct {
		const char *message, *words;
	} cases[] = {
		{ "internal error: no such thing", "no such thing" },
		{ "internal error: operation failed: It broke.", "it broke" },
		{ "QEMU said: no", "QEMU said: no" },
		{ "first\nsecond\t\r\n  third\n", "first second third" },
		{ "  \n ", "libvirt gives no reason" },
		{ "", "libvirt gives no reason" },
		{ "internal error: ", "libvirt gives no reason" },
		{ "red \x1b[31m\xc2\x9b and \xff", "red \\x1b[31m\\xc2\\x9b and \\xff" },
		{ "...", "libvirt gives no reason" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++)
		assert_string_equal(words(VIR_ERR_INTERNAL_ERROR, -1, cases[i].message),
				    cases[i].words);
	assert_string_equal(words(VIR_ERR_OK, -1, NULL), "libvirt gives no reason");
}

static void an_endless_error_is_cut(void **state)
{
	autofree char *message = malloc(100001);

	(void)state;
	memset(message, '\x01', 100000);
	message[100000] = '\0';
	assert_in_range(strlen(words(VIR_ERR_INTERNAL_ERROR, -1, message)), 100, 400);
}

static void advice_follows_the_cause(void **state)
{
	static const struct {
		int code, sys_errno;
		const char *message, *advice;
	} cases[] = {
		{ VIR_ERR_SYSTEM_ERROR, EACCES, "Failed to connect socket to '/x': no",
		  "in the group libvirt" },
		{ VIR_ERR_SYSTEM_ERROR, ECONNREFUSED, "unable to connect to server at 'x:1': no",
		  "is libvirtd running?" },
		{ VIR_ERR_SYSTEM_ERROR, ECONNRESET,
		  "Cannot recv data: Host key verification failed.: Connection reset by peer",
		  "try it by hand" },
		{ VIR_ERR_SYSTEM_ERROR, ECONNRESET, "Cannot recv data: Connection reset by peer",
		  "libvirtd hangs or was stopped" },
		{ VIR_ERR_INTERNAL_ERROR, -1, "internal error: client socket is closed",
		  "libvirtd hangs or was stopped" },
		{ VIR_ERR_AUTH_FAILED, -1, "authentication failed: no", "in the group libvirt" },
		{ VIR_ERR_OPERATION_TIMEOUT, -1,
		  "Timed out during operation: cannot acquire state change lock", "another job" },
		{ VIR_ERR_ARGUMENT_UNSUPPORTED, -1,
		  "argument unsupported: QEMU guest agent is not configured",
		  "org.qemu.guest_agent.0" },
		{ VIR_ERR_AGENT_UNRESPONSIVE, -1,
		  "Guest agent is not responding: QEMU guest agent is not connected",
		  "install qemu-guest-agent" },
		{ VIR_ERR_AGENT_UNRESPONSIVE, -1,
		  "Guest agent is not responding: Guest agent not available for now", "too busy" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++) {
		const char *said = words(cases[i].code, cases[i].sys_errno, cases[i].message);

		if (!strstr(said, cases[i].advice))
			fail_msg("%s", said);
	}
	assert_null(strchr(words(VIR_ERR_XML_ERROR, -1, "XML error: no"), ';'));
}

static void garbage_from_an_agent_is_not_repeated(void **state)
{
	static const char *const messages[] = {
		"internal error: cannot parse json {{\xbb %s: lexical error",
		"internal error: Unknown JSON reply '{\"x\":1}'",
		"internal error: Parsed JSON reply '[1]' isn't an object",
		"internal error: Neither 'return' nor 'error' is set in the JSON reply {}: {}",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(messages); i++)
		assert_string_equal(words(VIR_ERR_INTERNAL_ERROR, -1, messages[i]),
				    "the answer makes no sense; restart qemu-guest-agent in the "
				    "guest");
}

/* --- domains ------------------------------------------------------------------------- */

static struct virt *virt;

static int begin(void **state)
{
	(void)state;
	virt = virt_open("test:///default", VIRT_MANAGE, &err);
	return virt ? 0 : -1;
}

/* The last one that closes it takes all that was made with it. */
static int end(void **state)
{
	(void)state;
	virt_close(virt);
	return 0;
}

#define DOMAIN(name, devices)                                                                      \
	"<domain type='test'><name>" name "</name><memory>1024</memory><os><type>hvm</type></os>"  \
	"<devices>" devices "</devices></domain>"

static void define(const char *xml)
{
	virDomainPtr dom = virDomainDefineXML(virt_connection(virt), xml);

	assert_non_null(dom);
	virDomainFree(dom);
}

static void define_named(const char *name)
{
	autofree char *xml = str_format(DOMAIN("%s", ""), name);

	define(xml);
}

static struct domain *find(const char *which)
{
	struct domain *d = domain_find(virt, which, &err);

	if (!d)
		fail_msg("%s", err.text);
	return d;
}

static void assert_found(const char *which, const char *name)
{
	autodomain struct domain *d = find(which);

	assert_string_equal(domain_name(d), name);
	assert_ptr_equal(domain_connection(d), virt);
}

#define UUID "6695eb01-f6a4-8304-79aa-97f2502e193f"

static void a_domain_is_found_by_name_uuid_and_number(void **state)
{
	autodomain struct domain *d = find("test");

	(void)state;
	assert_string_equal(domain_uuid(d), UUID);
	assert_int_equal(domain_run_id(d), 1);
	assert_found(UUID, "test");
	assert_found("6695EB01-F6A4-8304-79AA-97F2502E193F", "test");
	assert_found("6695eb01f6a4830479aa97f2502e193f", "test");
	assert_found("1", "test");
}

static void a_name_goes_before_a_uuid_and_a_number(void **state)
{
	(void)state;
	define_named("1");
	define_named(UUID);
	assert_found("1", "1");
	assert_found(UUID, UUID);
}

static void by_uuid_no_domain_of_that_name_is_found(void **state)
{
	autodomain struct domain *d = NULL;

	(void)state;
	define_named(UUID);
	d = domain_find_uuid(virt, UUID, &err);
	assert_non_null(d);
	assert_string_equal(domain_name(d), "test");
	assert_null(domain_find_uuid(virt, "test", &err));
	assert_int_equal(err.kind, ERR_REFUSED);
}

static void assert_not_found(const char *which)
{
	assert_null(domain_find(virt, which, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_true(str_starts(err.text, "no domain \""));
}

static void what_is_not_there_is_refused_with_what_is(void **state)
{
	(void)state;
	define_named("another");
	assert_not_found("nobody");
	assert_string_equal(err.text,
			    "no domain \"nobody\" at test:///default; it has another, test");
}

static void of_many_domains_ten_are_told(void **state)
{
	char name[8];

	(void)state;
	for (int i = 0; i < 12; i++) {
		snprintf(name, sizeof name, "d%02d", i);
		define_named(name);
	}
	assert_not_found("nobody");
	assert_non_null(strstr(err.text, "; it has d00, d01, d02, d03, d04, d05, d06, d07, d08, "
					 "d09 and 3 more"));
}

static void names_may_be_long(void **state)
{
	autofree char *name = malloc(3001);

	(void)state;
	for (int i = 0; i < 11; i++) {
		memset(name, 'a' + i, 3000);
		name[3000] = '\0';
		define_named(name);
	}
	assert_not_found(name + 1);
	assert_non_null(strstr(err.text, " and 2 more"));
}

static void what_is_no_number_of_a_domain_finds_none(void **state)
{
	static const char *const numbers[] = {
		"0",   "2", "-1", "+1",		" 1",	      "1x",
		"0x1", "",  "-",  "2147483648", "4294967297", "99999999999999999999",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(numbers); i++)
		assert_not_found(numbers[i]);
}

/* --- states -------------------------------------------------------------------------- */

static void assert_status(struct domain *d, enum domain_state is, const char *text)
{
	struct domain_status s;

	if (domain_status(d, &s, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(s.text, text);
	assert_int_equal(s.state, is);
}

static void a_domain_runs_pauses_and_is_off(void **state)
{
	autodomain struct domain *d = find("test");

	(void)state;
	assert_status(d, DOMAIN_RUNNING, "running");
	assert_true(domain_is_active(d));
	assert_int_equal(virDomainSuspend(d->dom), 0);
	assert_status(d, DOMAIN_PAUSED, "paused by a user");
	assert_true(domain_is_active(d));
	assert_int_equal(virDomainDestroy(d->dom), 0);
	assert_status(d, DOMAIN_OFF, "shut off");
	assert_false(domain_is_active(d));
}

static void each_start_has_another_number(void **state)
{
	autodomain struct domain *d = find("test");
	int first = domain_run_id(d);

	(void)state;
	assert_int_equal(virDomainDestroy(d->dom), 0);
	assert_int_equal(domain_run_id(d), -1);
	assert_int_equal(virDomainCreate(d->dom), 0);
	assert_true(domain_run_id(d) > 0);
	assert_int_not_equal(domain_run_id(d), first);
}

static bool has_saved_memory(struct domain *d)
{
	struct domain_status s;

	assert_int_equal(domain_status(d, &s, &err), 0);
	return s.has_saved_memory;
}

static void memory_that_was_saved_is_told(void **state)
{
	autodomain struct domain *d = find("test");

	(void)state;
	assert_false(has_saved_memory(d));
	assert_int_equal(virDomainManagedSave(d->dom, 0), 0);
	assert_status(d, DOMAIN_OFF, "shut off with its memory saved to a file");
	assert_true(has_saved_memory(d));
	assert_int_equal(virDomainManagedSaveRemove(d->dom, 0), 0);
	assert_status(d, DOMAIN_OFF, "shut off since its memory was saved to a file");
	assert_true(has_saved_memory(d));
}

static void who_is_paused_goes_on(void **state)
{
	autodomain struct domain *d = find("test");

	(void)state;
	assert_int_equal(virDomainSuspend(d->dom), 0);
	assert_int_equal(domain_resume(d, &err), 0);
	assert_status(d, DOMAIN_RUNNING, "running");
	assert_int_equal(domain_resume(d, &err), 0);
	assert_int_equal(virDomainDestroy(d->dom), 0);
	assert_int_equal(domain_resume(d, &err), -1);
	assert_true(str_starts(err.text, "domain test: cannot be resumed: "));
}

static void a_transient_domain_that_ends_is_gone(void **state)
{
	virDomainPtr dom =
		virDomainCreateXML(virt_connection(virt), DOMAIN("passing", ""), VIR_DOMAIN_NONE);
	autodomain struct domain *d = find("passing");
	struct domain_status s;

	(void)state;
	assert_status(d, DOMAIN_RUNNING, "running");
	assert_int_equal(virDomainDestroy(dom), 0);
	assert_false(domain_is_active(d));
	assert_int_equal(domain_run_id(d), -1);
	assert_int_equal(domain_status(d, &s, &err), -1);
	assert_true(str_starts(err.text, "domain passing: cannot ask for its state: "));
	assert_true(str_ends(err.text, "; it was undefined, or was transient and has ended"));
	virDomainFree(dom);
}

/* What no test driver does: what libvirt could say at most. */
static void every_state_and_reason_has_its_place(void **state)
{
	static const struct {
		int state, reason;
		enum domain_state is;
		const char *text;
	} cases[] = {
		{ VIR_DOMAIN_NOSTATE, 0, DOMAIN_BUSY, "in a state that libvirt does not tell" },
		{ VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_UNKNOWN, DOMAIN_RUNNING, "running" },
		{ VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_CRASHED, DOMAIN_RUNNING, "running" },
		{ VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_POSTCOPY, DOMAIN_BUSY, "being migrated" },
		{ VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_POSTCOPY_FAILED, DOMAIN_BROKEN,
		  "in the middle of a migration that failed" },
		{ VIR_DOMAIN_RUNNING, 77, DOMAIN_RUNNING, "running" },
		{ VIR_DOMAIN_BLOCKED, 0, DOMAIN_RUNNING, "running" },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_UNKNOWN, DOMAIN_PAUSED, "paused" },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_USER, DOMAIN_PAUSED, "paused by a user" },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_MIGRATION, DOMAIN_BUSY, "being migrated" },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_SAVE, DOMAIN_BUSY, "being saved" },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_DUMP, DOMAIN_BUSY, "being dumped" },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_IOERROR, DOMAIN_BROKEN,
		  "paused because of an I/O error of a disk" },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_WATCHDOG, DOMAIN_PAUSED,
		  "paused by its watchdog" },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_FROM_SNAPSHOT, DOMAIN_PAUSED,
		  "paused since it was put back to a snapshot" },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_SHUTTING_DOWN, DOMAIN_BUSY,
		  "shutting down" },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_SNAPSHOT, DOMAIN_BUSY, "in a snapshot job" },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_CRASHED, DOMAIN_BROKEN,
		  "paused because its guest crashed" },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_STARTING_UP, DOMAIN_BUSY, "starting up" },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY, DOMAIN_BUSY, "being migrated" },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY_FAILED, DOMAIN_BROKEN,
		  "in the middle of a migration that failed" },
		{ VIR_DOMAIN_PAUSED, 77, DOMAIN_PAUSED, "paused" },
		{ VIR_DOMAIN_SHUTDOWN, VIR_DOMAIN_SHUTDOWN_USER, DOMAIN_BUSY, "shutting down" },
		{ VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_SHUTDOWN, DOMAIN_OFF, "shut off" },
		{ VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_CRASHED, DOMAIN_OFF,
		  "shut off since it crashed" },
		{ VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_MIGRATED, DOMAIN_AWAY,
		  "shut off since it was migrated to another host" },
		{ VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_SAVED, DOMAIN_OFF,
		  "shut off since its memory was saved to a file" },
		{ VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_DAEMON, DOMAIN_OFF, "shut off" },
		{ VIR_DOMAIN_CRASHED, VIR_DOMAIN_CRASHED_UNKNOWN, DOMAIN_BROKEN, "crashed" },
		{ VIR_DOMAIN_CRASHED, VIR_DOMAIN_CRASHED_PANICKED, DOMAIN_BROKEN,
		  "crashed: its kernel panicked" },
		{ VIR_DOMAIN_PMSUSPENDED, 0, DOMAIN_PAUSED, "in standby" },
		{ 77, 77, DOMAIN_BUSY, "in a state that libvirt does not tell" },
		{ -1, -1, DOMAIN_BUSY, "in a state that libvirt does not tell" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct domain_status s;

		domain_state_name(cases[i].state, cases[i].reason, &s);
		assert_string_equal(s.text, cases[i].text);
		assert_int_equal(s.state, cases[i].is);
		assert_int_equal(s.is_stopped_by_io_error, strstr(s.text, "I/O error") != NULL);
		assert_int_equal(s.has_saved_memory, strstr(s.text, "memory") != NULL);
		assert_int_equal(s.is_shutting_down, str_equal(s.text, "shutting down"));
		assert_int_equal(s.has_crashed, str_equal(s.text, "shut off since it crashed"));
	}
}

static void a_job_keeps_a_domain_busy_unless_it_is_a_backup(void **state)
{
	static const struct {
		int operation;
		enum domain_state is;
		const char *text;
	} cases[] = {
		{ VIR_DOMAIN_JOB_OPERATION_UNKNOWN, DOMAIN_RUNNING, "running" },
		{ VIR_DOMAIN_JOB_OPERATION_BACKUP, DOMAIN_RUNNING, "running" },
		{ VIR_DOMAIN_JOB_OPERATION_START, DOMAIN_BUSY, "starting up" },
		{ VIR_DOMAIN_JOB_OPERATION_SAVE, DOMAIN_BUSY, "being saved" },
		{ VIR_DOMAIN_JOB_OPERATION_RESTORE, DOMAIN_BUSY, "being restored" },
		{ VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN, DOMAIN_BUSY,
		  "being migrated to this host" },
		{ VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT, DOMAIN_BUSY, "being migrated" },
		{ VIR_DOMAIN_JOB_OPERATION_SNAPSHOT, DOMAIN_BUSY, "in a snapshot job" },
		{ VIR_DOMAIN_JOB_OPERATION_SNAPSHOT_REVERT, DOMAIN_BUSY,
		  "being put back to a snapshot" },
		{ VIR_DOMAIN_JOB_OPERATION_DUMP, DOMAIN_BUSY, "being dumped" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct domain_status s = { .state = DOMAIN_RUNNING, .text = "running" };

		domain_job_name(cases[i].operation, &s);
		assert_string_equal(s.text, cases[i].text);
		assert_int_equal(s.state, cases[i].is);
	}
}

/* --- disks --------------------------------------------------------------------------- */

static void the_hardware_is_that_of_the_xml(void **state)
{
	autodomain struct domain *d = find("test");
	autohardware struct hardware hw = { 0 };

	(void)state;
	assert_int_equal(domain_hardware(d, &hw, &err), 0);
	assert_int_equal(hw.disk_count, 1);
	assert_string_equal(hw.disks[0].target, "vda");
	assert_string_equal(hw.disks[0].source, "/guest/diskimage1");
}

static void a_disk_has_a_size(void **state)
{
	autodomain struct domain *d = find("test");
	struct virt_disk vda = { .target = (char[]){ "vda" }, .kind = (char[]){ "file" } };
	struct domain_disk_size size = { 0 };

	(void)state;
	assert_int_equal(domain_disk_size(d, &vda, &size, &err), 0);
	assert_true(size.capacity > 1000000000);
	assert_true(size.allocation > 1000000000);
}

/* libvirt's test driver makes the errors up: of the second disk this one. */
static void a_disk_without_room_is_told(void **state)
{
	autodomain struct domain *d = NULL;

	(void)state;
	define(DOMAIN("two", "<disk type='file'><source file='/a'/><target dev='vda'/></disk>"
			     "<disk type='file'><source file='/b'/><target dev='vdb'/></disk>"));
	d = find("two");
	assert_int_equal(domain_is_out_of_room(d, "vda", &err), -1); /* it does not run */
	assert_int_equal(virDomainCreate(d->dom), 0);
	assert_int_equal(domain_is_out_of_room(d, "vda", &err), 0);
	assert_int_equal(domain_is_out_of_room(d, "vdb", &err), 1);
	assert_int_equal(domain_is_out_of_room(d, NULL, &err), 1);
}

static void a_disk_that_is_not_there_has_none(void **state)
{
	autodomain struct domain *d = find("test");
	struct virt_disk vdx = { .target = (char[]){ "vdx" }, .kind = (char[]){ "file" } };
	struct domain_disk_size size;

	(void)state;
	assert_int_equal(domain_disk_size(d, &vdx, &size, &err), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_true(str_starts(err.text, "domain test, disk vdx: cannot ask for its size: "));
}

static void assert_path(const char *kind, const char *source, const char *path)
{
	autodomain struct domain *d = find("test");
	struct virt_disk disk = {
		.target = (char[]){ "vda" },
		.kind = (char *)(uintptr_t)kind,
		.source = (char *)(uintptr_t)source,
	};
	autofree char *found = domain_disk_path(d, &disk, &err);

	if (path) {
		assert_non_null(found);
		assert_string_equal(found, path);
	} else {
		assert_null(found);
		assert_int_equal(err.kind, ERR_REFUSED);
		assert_true(str_starts(err.text, "domain test, disk vda: "));
	}
}

static void only_a_file_and_a_block_device_have_a_path(void **state)
{
	(void)state;
	assert_path("file", "/disks/a", "/disks/a");
	assert_path("block", "/dev/vg/lv", "/dev/vg/lv");
	assert_path("file", NULL, NULL);
	assert_string_equal(err.text, "domain test, disk vda: the drive is empty");
	assert_path("network", "rbd:pool/image", NULL);
	assert_non_null(strstr(err.text, "(network) has no path here; start the domain"));
	assert_path("nvme", "0000:01:00.0 namespace 1", NULL);
	assert_path("", "/disks/a", NULL);
}

#define POOL	 "default-pool"
#define CAPACITY 1048576

/* A volume of the pool that the test hypervisor has. */
static void make_volume(const char *name)
{
	virStoragePoolPtr pool = virStoragePoolLookupByName(virt_connection(virt), POOL);
	autofree char *xml = str_format("<volume><name>%s</name><capacity>%d</capacity>"
					"<allocation>4096</allocation></volume>",
					name, CAPACITY);
	virStorageVolPtr volume;

	assert_non_null(pool);
	volume = virStorageVolCreateXML(pool, xml, 0);
	assert_non_null(volume);
	virStorageVolFree(volume);
	virStoragePoolFree(pool);
}

static void stop_pool(void)
{
	virStoragePoolPtr pool = virStoragePoolLookupByName(virt_connection(virt), POOL);

	assert_int_equal(virStoragePoolDestroy(pool), 0);
	virStoragePoolFree(pool);
}

static struct virt_disk volume_disk(const char *pool, const char *volume)
{
	return (struct virt_disk){
		.target = (char *)(uintptr_t) "vda",
		.kind = (char *)(uintptr_t) "volume",
		.source = (char *)(uintptr_t) "pool/volume",
		.pool = (char *)(uintptr_t)pool,
		.volume = (char *)(uintptr_t)volume,
	};
}

static void a_volume_is_where_its_pool_says(void **state)
{
	autodomain struct domain *d = find("test");
	const struct virt_disk disk = volume_disk(POOL, "root");
	autofree char *path = NULL;

	(void)state;
	make_volume("root");
	path = domain_disk_path(d, &disk, &err);
	assert_non_null(path);
	assert_string_equal(path, "/" POOL "/root");
}

static void while_a_domain_is_off_its_pool_tells_the_size(void **state)
{
	autodomain struct domain *d = find("test");
	const struct virt_disk disk = volume_disk(POOL, "root");
	struct domain_disk_size size = { 0 };

	(void)state;
	make_volume("root");
	assert_int_equal(virDomainDestroy(d->dom), 0);
	assert_int_equal(domain_disk_size(d, &disk, &size, &err), 0);
	assert_int_equal(size.capacity, CAPACITY);
	assert_int_equal(size.allocation, 4096);
}

static void assert_no_volume(const struct virt_disk disk, const char *why)
{
	autodomain struct domain *d = find("test");

	assert_null(domain_disk_path(d, &disk, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_string_equal(err.text, why);
	assert_int_equal(virDomainDestroy(d->dom), 0);
	err = (struct err){ 0 };
	assert_int_equal(domain_disk_size(d, &disk, &(struct domain_disk_size){ 0 }, &err), -1);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_int_equal(virDomainCreate(d->dom), 0);
}

static void a_volume_that_cannot_be_found_is_refused(void **state)
{
	(void)state;
	assert_no_volume(volume_disk(POOL, "none"),
			 "domain test, disk vda: cannot find its volume: no storage vol with "
			 "matching name 'none'");
	assert_no_volume(volume_disk("nopool", "root"),
			 "domain test, disk vda: cannot find its volume: no storage pool with "
			 "matching name 'nopool'");
	assert_no_volume(volume_disk(POOL, NULL), "domain test, disk vda: it names no volume");
	assert_no_volume(volume_disk(NULL, "root"), "domain test, disk vda: it names no volume");
	make_volume("root");
	stop_pool();
	assert_no_volume(volume_disk(POOL, "root"),
			 "domain test, disk vda: cannot find its volume: storage pool "
			 "'default-pool' is not active");
}

/* --- what hangs ---------------------------------------------------------------------- */

static int listener;

static char *socket_path(void)
{
	static char path[64];

	snprintf(path, sizeof path, "/tmp/ccsnap-test-virt.%d", (int)getpid());
	return path;
}

/* A daemon that is there and never says a word. */
static void listen_only(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path());
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(listener, 5), 0);
}

/* The last one: from the signal on, everything counts as interrupted. */
static void a_signal_ends_the_wait_for_a_daemon_that_hangs(void **state)
{
	autofree char *uri = str_format("qemu+unix:///system?socket=%s", socket_path());

	(void)state;
	listen_only();
	interrupt_install();
	raise(SIGTERM);
	assert_null(virt_open(uri, VIRT_MANAGE, &err));
	assert_int_equal(err.kind, ERR_INTERRUPTED);
	assert_int_equal(err.sys_errno, SIGTERM);
	close(listener);
	unlink(socket_path());
}

#define WITH_VIRT(claim) cmocka_unit_test_setup_teardown(claim, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_is_what_was_asked_for),
		cmocka_unit_test(who_looks_cannot_change_anything),
		cmocka_unit_test(without_a_uri_the_environment_decides),
		cmocka_unit_test(another_connection_leads_to_the_same_place),
		cmocka_unit_test(where_no_daemon_is_it_is_said_what_to_do),
		cmocka_unit_test(what_is_no_uri_is_refused_with_the_form_of_one),
		cmocka_unit_test(a_uri_tells_where_the_files_are),
		cmocka_unit_test(an_error_is_one_line_without_preamble_and_full_stop),
		cmocka_unit_test(an_endless_error_is_cut),
		cmocka_unit_test(advice_follows_the_cause),
		cmocka_unit_test(garbage_from_an_agent_is_not_repeated),
		WITH_VIRT(a_domain_is_found_by_name_uuid_and_number),
		WITH_VIRT(a_name_goes_before_a_uuid_and_a_number),
		WITH_VIRT(by_uuid_no_domain_of_that_name_is_found),
		WITH_VIRT(what_is_not_there_is_refused_with_what_is),
		WITH_VIRT(of_many_domains_ten_are_told),
		WITH_VIRT(names_may_be_long),
		WITH_VIRT(what_is_no_number_of_a_domain_finds_none),
		WITH_VIRT(a_domain_runs_pauses_and_is_off),
		WITH_VIRT(each_start_has_another_number),
		WITH_VIRT(memory_that_was_saved_is_told),
		WITH_VIRT(who_is_paused_goes_on),
		WITH_VIRT(a_transient_domain_that_ends_is_gone),
		cmocka_unit_test(every_state_and_reason_has_its_place),
		cmocka_unit_test(a_job_keeps_a_domain_busy_unless_it_is_a_backup),
		WITH_VIRT(the_hardware_is_that_of_the_xml),
		WITH_VIRT(a_disk_has_a_size),
		WITH_VIRT(a_disk_without_room_is_told),
		WITH_VIRT(a_disk_that_is_not_there_has_none),
		WITH_VIRT(only_a_file_and_a_block_device_have_a_path),
		WITH_VIRT(a_volume_is_where_its_pool_says),
		WITH_VIRT(while_a_domain_is_off_its_pool_tells_the_size),
		WITH_VIRT(a_volume_that_cannot_be_found_is_refused),
		cmocka_unit_test(a_signal_ends_the_wait_for_a_daemon_that_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
