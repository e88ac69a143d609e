// SPDX-License-Identifier: Apache-2.0
//
// Calls of libvirt that hang: some of its functions are defined here, and wait until they are let
// go.  All else is the hypervisor that its library pretends to have.
#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/str.h"
#include "virt/agent.h"
#include "virt/backup.h"
#include "virt/chain.h"
#include "virt/domain.h"
#include "virt/hardware.h"
#include "virt/overlay.h"
#include "virt/virt.h"
#include "virt/virt_inner.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* --- what hangs --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool hangs;	  /* guarded */
static unsigned hanging;  /* guarded: calls under way */
static char last_xml[64]; /* guarded: what such a call has seen when it ended */
static const char *job;	  /* a backup job runs, or one has ended with those words; NULL: none */
static int job_success;
static bool abort_works, stats_fail, stats_fail_after_abort;
static int state_is, reason_is; /* of the domain; 0: those that it has */

/* A look that hangs, by the name of libvirt's function; most of them do not. */
static _Atomic(const char *) hanging_look;

#define REAL(name) ((__typeof__(&(name)))(uintptr_t)dlsym(RTLD_NEXT, #name))

/* Time passes when it is asked for, but only while something hangs. */
static atomic_uint_fast64_t now_ns;

uint64_t clock_ns(void)
{
	pthread_mutex_lock(&lock);
	if (hanging > 0)
		atomic_fetch_add(&now_ns, UINT64_C(5000000000));
	pthread_mutex_unlock(&lock);
	return atomic_load(&now_ns);
}

/* In pauses it passes while nothing hangs, too. */
static unsigned pauses;
static uint64_t job_ends_ns; /* then there is none any more; 0: it stays as it is */

void clock_sleep_ms(unsigned ms)
{
	pauses++;
	if (atomic_fetch_add(&now_ns, (uint64_t)ms * 1000000) >= job_ends_ns && job_ends_ns > 0) {
		job = NULL;
		stats_fail = false;
	}
}

static int hang(const char *xml)
{
	pthread_mutex_lock(&lock);
	hanging++;
	while (hangs)
		pthread_cond_wait(&changed, &lock);
	strncpy(last_xml, xml ? xml : "", sizeof last_xml - 1);
	hanging--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return -1;
}

static void let_go(void)
{
	pthread_mutex_lock(&lock);
	hangs = false;
	pthread_cond_broadcast(&changed);
	while (hanging > 0)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static bool hangs_in(const char *look)
{
	const char *which = atomic_load(&hanging_look);

	return which && str_equal(which, look);
}

int virDomainResume(virDomainPtr dom)
{
	(void)dom;
	return hang(NULL);
}

int virDomainAbortJob(virDomainPtr dom)
{
	(void)dom;
	stats_fail = stats_fail_after_abort;
	return abort_works ? 0 : hang(NULL);
}

int virDomainBackupBegin(virDomainPtr dom, const char *xml, const char *checkpoint, unsigned flags)
{
	(void)dom;
	(void)checkpoint;
	(void)flags;
	return hang(xml);
}

virDomainSnapshotPtr virDomainSnapshotCreateXML(virDomainPtr dom, const char *xml, unsigned flags)
{
	(void)dom;
	(void)flags;
	hang(xml);
	return NULL;
}

int virDomainGetBlockInfo(virDomainPtr dom, const char *disk, virDomainBlockInfoPtr info,
			  unsigned flags)
{
	(void)dom;
	(void)info;
	(void)flags;
	return hang(disk);
}

int virDomainFSFreeze(virDomainPtr dom, const char **paths, unsigned count, unsigned flags)
{
	(void)dom;
	(void)paths;
	(void)count;
	(void)flags;
	return hang(NULL);
}

int virDomainFSThaw(virDomainPtr dom, const char **paths, unsigned count, unsigned flags)
{
	return virDomainFSFreeze(dom, paths, count, flags);
}

int virDomainFSTrim(virDomainPtr dom, const char *path, unsigned long long least, unsigned flags)
{
	(void)dom;
	(void)path;
	(void)least;
	(void)flags;
	return hang(NULL);
}

int virDomainAgentSetResponseTimeout(virDomainPtr dom, int timeout, unsigned flags)
{
	(void)dom;
	(void)timeout;
	(void)flags;
	return 0;
}

int virDomainGetJobStats(virDomainPtr dom, int *type, virTypedParameterPtr *list, int *count,
			 unsigned flags)
{
	int cap = 0;

	(void)dom;
	(void)flags;
	if (stats_fail)
		return -1;
	if (hangs_in(__func__))
		return hang(NULL);
	*count = 0;
	*list = NULL;
	*type = job ? VIR_DOMAIN_JOB_UNBOUNDED : VIR_DOMAIN_JOB_NONE;
	if (!job)
		return 0;
	virTypedParamsAddInt(list, count, &cap, VIR_DOMAIN_JOB_OPERATION,
			     VIR_DOMAIN_JOB_OPERATION_BACKUP);
	virTypedParamsAddString(list, count, &cap, VIR_DOMAIN_JOB_ERRMSG, job);
	if (job_success >= 0)
		virTypedParamsAddBoolean(list, count, &cap, VIR_DOMAIN_JOB_SUCCESS, job_success);
	return 0;
}

static bool has_saved_image;

int virDomainHasManagedSaveImage(virDomainPtr dom, unsigned flags)
{
	(void)dom;
	(void)flags;
	return hangs_in(__func__) ? hang(NULL) : has_saved_image;
}

char *virDomainGetXMLDesc(virDomainPtr dom, unsigned flags)
{
	if (!hangs_in(__func__))
		return REAL(virDomainGetXMLDesc)(dom, flags);
	hang(NULL);
	return NULL;
}

char *virDomainBackupGetXMLDesc(virDomainPtr dom, unsigned flags)
{
	(void)dom;
	(void)flags;
	hang(NULL);
	return NULL;
}

int virDomainGetState(virDomainPtr dom, int *state, int *reason, unsigned flags)
{
	int rc = hangs_in(__func__) ? hang(NULL)
				    : REAL(virDomainGetState)(dom, state, reason, flags);

	if (state_is) {
		*state = state_is;
		*reason = reason_is;
	}
	return rc;
}

int virDomainIsActive(virDomainPtr dom)
{
	return hangs_in(__func__) ? hang(NULL) : REAL(virDomainIsActive)(dom);
}

int virDomainIsPersistent(virDomainPtr dom)
{
	return hangs_in(__func__) ? hang(NULL) : REAL(virDomainIsPersistent)(dom);
}

unsigned virDomainGetID(virDomainPtr dom)
{
	return hangs_in(__func__) ? (unsigned)hang(NULL) : REAL(virDomainGetID)(dom);
}

virStoragePoolPtr virStoragePoolLookupByName(virConnectPtr conn, const char *name)
{
	(void)conn;
	hang(name);
	return NULL;
}

/* --- around a test --- */

static struct virt *virt;
static struct domain *domain;
static struct err err;

static int begin(void **state)
{
	(void)state;
	err = (struct err){ 0 };
	job = NULL;
	job_success = -1;
	abort_works = stats_fail = stats_fail_after_abort = false;
	state_is = reason_is = 0;
	job_ends_ns = 0;
	pauses = 0;
	virt = virt_open("test:///default", VIRT_MANAGE, &err);
	domain = virt ? domain_find(virt, "test", &err) : NULL;
	hangs = true;
	if (!domain)
		return -1;
	virDomainSuspend(domain->dom); /* or it is paused still, as the last test left it */
	return 0;
}

/* Whoever was left behind still uses both. */
static int end(void **state)
{
	(void)state;
	domain_close(domain);
	virt_close(virt);
	let_go();
	return 0;
}

static int resume(void)
{
	return domain_resume(domain, &err);
}

static int abort_job(void)
{
	job = "";
	return backup_abort(domain, &err);
}

static int begin_backup(void)
{
	const struct backup_request request = { "vda", "x", "/s", "/x" };
	autofree char *target = strdup("vda"), *xml = backup_xml(domain, &request, &err);

	return backup_begin(domain, target, xml, &err);
}

static int begin_overlay(void)
{
	return overlay_begin(domain, "vda", "<domainsnapshot/>", &err);
}

static int freeze(void)
{
	return agent_freeze(domain, NULL, &err);
}

static int thaw(void)
{
	return agent_thaw(domain, NULL, &err);
}

static int trim(void)
{
	return agent_trim(domain, &err);
}

static int ask_size(void)
{
	char target[] = "vda", kind[] = "file";
	struct virt_disk disk = { .target = target, .kind = kind };
	struct domain_disk_size size;

	return domain_disk_size(domain, &disk, &size, &err);
}

static int ask_hardware(void)
{
	autohardware struct hardware hw = { 0 };

	return domain_hardware(domain, &hw, &err);
}

static int ask_chain(void)
{
	autochain struct chain chain = { 0 };

	return overlay_chain(domain, "vda", OVERLAY_NOW, &chain, &err);
}

static int ask_rights(void)
{
	return domain_may_be_managed(domain, &err);
}

static int ask_status(void)
{
	struct domain_status status;

	return domain_status(domain, &status, &err);
}

static int look(void)
{
	struct domain_status status;

	return domain_look(domain, &status, &err);
}

static int ask_image(void)
{
	return domain_has_saved_image(domain, ERRAND_IN_FULL, &err);
}

static int find_job(enum errand_wait wait)
{
	struct backup_job found;

	job = "";
	return backup_find(domain, wait, &found, &err);
}

static int find_others(void)
{
	return find_job(ERRAND_CUT_SHORT);
}

static int find_ours(void)
{
	return find_job(ERRAND_IN_FULL);
}

static int ask_path(void)
{
	char target[] = "vda", kind[] = "volume", pool[] = "default-pool", volume[] = "root";
	struct virt_disk disk = { .target = target, .kind = kind, .pool = pool, .volume = volume };
	autofree char *path = domain_disk_path(domain, &disk, &err);

	return path ? 0 : -1;
}

static const struct {
	int (*call)(void);
	const char *complaint;
	bool is_cut_short; /* by a signal */
	const char *look;  /* that hangs for it; NULL: one that always does */
} calls[] = {
	{ resume, "domain test: cannot be resumed: ", false, NULL },
	{ abort_job, "domain test: cannot end its backup job: ", false, NULL },
	{ begin_backup, "domain test, disk vda: no backup job: ", false, NULL },
	{ begin_overlay, "domain test, disk vda: no snapshot: ", false, NULL },
	{ freeze, "domain test: cannot freeze its filesystems: ", false, NULL },
	{ thaw, "domain test: cannot thaw its filesystems: ", false, NULL },
	{ trim, "domain test: cannot trim its filesystems: ", true, NULL },
	{ ask_size, "domain test, disk vda: cannot ask for its size: ", true, NULL },
	{ ask_hardware, "domain test: cannot ask for its XML: ", true, "virDomainGetXMLDesc" },
	{ ask_chain, "domain test: cannot ask for its XML: ", false, "virDomainGetXMLDesc" },
	{ ask_rights, "domain test: cannot ask for its XML: ", true, "virDomainGetXMLDesc" },
	{ ask_status, "domain test: cannot ask for its state: ", true, "virDomainGetState" },
	{ look, "domain test: cannot ask for its state: ", false, "virDomainGetState" },
	{ ask_image, "domain test: cannot ask whether its memory is saved: ", false,
	  "virDomainHasManagedSaveImage" },
	{ find_others, "domain test: cannot ask for its backup job: ", true, NULL },
	{ find_ours, "domain test: cannot ask for its backup job: ", false, NULL },
	{ find_others, "domain test: cannot ask for its job: ", true, "virDomainGetJobStats" },
	{ find_ours, "domain test: cannot ask for its job: ", false, "virDomainGetJobStats" },
	{ ask_path, "domain test, disk vda: cannot find its volume: ", true, NULL },
};

/* How long it took to give it up. */
static double give_up(size_t i)
{
	uint64_t start = atomic_load(&now_ns);

	job = NULL;
	atomic_store(&hanging_look, calls[i].look);
	assert_int_equal(calls[i].call(), -1);
	atomic_store(&hanging_look, NULL);
	return (double)(atomic_load(&now_ns) - start) / 1e9;
}

/* --- the claims --- */

static void a_call_that_hangs_is_left_behind(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		double seconds = give_up(i);

		assert_true(seconds >= 35 && seconds < 60);
		assert_int_equal(err.kind, ERR_FAILED);
		assert_true(str_starts(err.text, calls[i].complaint));
		assert_true(str_ends(err.text, ": no answer for 35 seconds; its QEMU or libvirtd "
					       "hangs; look at its storage, and try again"));
	}
}

static void what_is_left_behind_has_its_own_words(void **state)
{
	(void)state;
	give_up(2);
	domain_close(steal(&domain));
	virt_close(steal(&virt));
	let_go();
	assert_non_null(strstr(last_xml, "<domainbackup"));
}

static void the_agent_has_the_time_that_it_was_given(void **state)
{
	double seconds;

	(void)state;
	assert_int_equal(agent_set_patience(domain, 100, &err), 0);
	seconds = give_up(4);
	assert_true(seconds >= 235 && seconds < 260);
	assert_int_equal(agent_reset_patience(domain, &err), 0);
	assert_true(give_up(4) < 60);
}

/* Nothing answers: that is neither "off" nor "defined". */
static void who_is_left_without_an_answer_assumes_the_worst(void **state)
{
	(void)state;
	atomic_store(&hanging_look, "virDomainIsActive");
	assert_int_equal(virDomainDestroy(domain->dom), 0);
	assert_true(domain_is_active(domain));
	atomic_store(&hanging_look, "virDomainIsPersistent");
	assert_false(domain_is_persistent(domain));
	atomic_store(&hanging_look, "virDomainGetID");
	assert_int_equal(virDomainCreate(domain->dom), 0);
	assert_int_equal(domain_run_id(domain), -1);
	atomic_store(&hanging_look, NULL);
}

static double abort_for_seconds(unsigned seconds)
{
	uint64_t start = atomic_load(&now_ns);

	job = "";
	abort_works = true;
	job_ends_ns = start + seconds * UINT64_C(1000000000);
	pauses = 0;
	assert_int_equal(backup_abort(domain, &err), seconds < 300 ? 0 : -1);
	return (double)(atomic_load(&now_ns) - start) / 1e9;
}

static void the_looks_whether_a_job_is_gone_become_rarer(void **state)
{
	(void)state;
	assert_true(abort_for_seconds(0) < 1);
	assert_int_equal(pauses, 1);
	assert_true(abort_for_seconds(100) < 102);
	assert_in_range(pauses, 100, 110);
	assert_true(abort_for_seconds(1000) < 302);
	assert_non_null(strstr(err.text, "does not end within 300 s"));
}

/* libvirt cannot be asked then. */
static void a_job_ends_while_its_domain_goes_down(void **state)
{
	static const struct {
		int state, reason;
		bool is_going_down;
	} cases[] = {
		{ VIR_DOMAIN_SHUTDOWN, VIR_DOMAIN_SHUTDOWN_USER, true },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_SHUTTING_DOWN, true },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_MIGRATION, false },
		{ VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_BOOTED, false },
	};

	(void)state;
	stats_fail_after_abort = abort_works = true;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		job = "";
		state_is = cases[i].state;
		reason_is = cases[i].reason;
		job_ends_ns = atomic_load(&now_ns) + UINT64_C(10000000000);
		pauses = 0;
		assert_int_equal(backup_abort(domain, &err), cases[i].is_going_down ? 0 : -1);
		assert_int_equal(pauses > 0, cases[i].is_going_down);
		stats_fail = false;
	}
}

static void a_job_that_was_told_to_end_has_no_reason(void **state)
{
	static const struct {
		const char *words;
		int success;
		const char *why;
	} cases[] = {
		{ "Operation canceled", -1, "" },
		{ "Operation canceled", 0, "" },
		{ "operation canceled", 0, "" },
		{ "anything", 1, "" },
		{ "", 0, "" },
		{ "No space \x1b left", 0, "No space \\x1b left" },
		{ "No space left", -1, "No space left" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char why[100] = "x";

		job = cases[i].words;
		job_success = cases[i].success;
		backup_why_ended(domain, why, sizeof why);
		assert_string_equal(why, cases[i].why);
	}
	job = NULL;
}

/* A daemon that was started anew forgets how a domain went off, but not that. */
static void a_saved_image_is_told_whatever_the_reason(void **state)
{
	struct domain_status s;

	(void)state;
	assert_int_equal(virDomainDestroy(domain->dom), 0);
	for (int i = 0; i < 2; i++) {
		has_saved_image = i;
		assert_int_equal(domain_status(domain, &s, &err), 0);
		assert_int_equal(s.state, DOMAIN_OFF);
		assert_int_equal(s.has_saved_memory, i);
	}
	assert_int_equal(virDomainCreate(domain->dom), 0);
}

/* The last one: from the signal on, everything counts as interrupted. */
static void a_signal_takes_no_time_from_what_undoes(void **state)
{
	(void)state;
	interrupt_install();
	raise(SIGTERM);
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		double seconds = give_up(i);

		if (calls[i].is_cut_short) {
			assert_true(seconds < 35);
			assert_int_equal(err.kind, ERR_INTERRUPTED);
		} else {
			assert_true(seconds >= 35);
			assert_int_equal(err.kind, ERR_FAILED);
		}
	}
}

#define TEST(claim) cmocka_unit_test_setup_teardown(claim, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_call_that_hangs_is_left_behind),
		TEST(what_is_left_behind_has_its_own_words),
		TEST(the_agent_has_the_time_that_it_was_given),
		TEST(who_is_left_without_an_answer_assumes_the_worst),
		TEST(the_looks_whether_a_job_is_gone_become_rarer),
		TEST(a_job_ends_while_its_domain_goes_down),
		TEST(a_job_that_was_told_to_end_has_no_reason),
		TEST(a_saved_image_is_told_whatever_the_reason),
		TEST(a_signal_takes_no_time_from_what_undoes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
