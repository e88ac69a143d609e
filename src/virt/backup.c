// SPDX-License-Identifier: Apache-2.0
#include "virt/backup.h"

#include "base/clock.h"
#include "base/log.h"
#include "virt/call.h"
#include "virt/domain.h"
#include "virt/hardware.h"
#include "virt/job_xml.h"
#include "virt/virt_inner.h"

#include "config.h"

#include <stdio.h>
#include <string.h>

enum {
	/* Until a job that is told to end has ended.  libvirt 9 works on one event at a time, and
	 * each one of the agent's port (two for a reboot of the guest) waits 30 s during a job.
	 */
	GONE_SECONDS = 300,
	SLOW_SECONDS = 10, /* then people want to know */
	PAUSE_MS = 20,	   /* the first; each one is twice as long */
	PAUSE_MAX_MS = 1000,
};

/* --- begin --- */

/* The guest may shut down meanwhile, and QEMU stays until the job is ended. */
#if HAVE_DECL_VIR_DOMAIN_BACKUP_BEGIN_PRESERVE_SHUTDOWN_DOMAIN
static const unsigned begin_flags = VIR_DOMAIN_BACKUP_BEGIN_PRESERVE_SHUTDOWN_DOMAIN;
#else
static const unsigned begin_flags = 0;
#endif

/* A daemon that is older than our library does not know the flag. */
static int make_backup(virDomainPtr dom, struct call *c)
{
	int rc = virDomainBackupBegin(dom, c->text, NULL, begin_flags);

	if (rc < 0 && begin_flags && virt_last_code() == VIR_ERR_INVALID_ARG)
		rc = virDomainBackupBegin(dom, c->text, NULL, 0);
	return rc;
}

/* By these codes libvirt says that this driver, this QEMU or this kind of disk has no backup
 * jobs.
 */
static bool is_impossible(int code)
{
	static const int codes[] = { VIR_ERR_NO_SUPPORT, VIR_ERR_CONFIG_UNSUPPORTED,
				     VIR_ERR_ARGUMENT_UNSUPPORTED, VIR_ERR_OPERATION_UNSUPPORTED };

	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
		if (codes[i] == code)
			return true;
	return false;
}

char *backup_xml(struct domain *d, const struct backup_request *request, struct err *err)
{
	autohardware struct hardware hw = { 0 };

	return domain_hardware(d, &hw, err) < 0 ? NULL : job_xml_backup(request, &hw, err);
}

int backup_begin(struct domain *d, const char *target, const char *xml, struct err *err)
{
	struct call c = {
		.make = make_backup,
		.complaint = "no backup job",
		.wait = ERRAND_IN_FULL,
		.target = target,
		.text = xml,
	};

	if (call_make(&c, d, err) == 0)
		return 0;
	/* a domain that is off is refused with one of these codes, too */
	return is_impossible(c.code) && domain_is_active(d) ? 1 : -1;
}

/* --- find --- */

static uint64_t param_number(const struct call *c, const char *name)
{
	unsigned long long n = 0;

	return virTypedParamsGetULLong(c->params.list, c->params.count, name, &n) > 0 ? n : 0;
}

static const char *operation_name(int operation)
{
	static const char *const names[] = {
		[VIR_DOMAIN_JOB_OPERATION_START] = "start",
		[VIR_DOMAIN_JOB_OPERATION_SAVE] = "save",
		[VIR_DOMAIN_JOB_OPERATION_RESTORE] = "restore",
		[VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN] = "migration to here",
		[VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT] = "migration",
		[VIR_DOMAIN_JOB_OPERATION_SNAPSHOT] = "snapshot",
		[VIR_DOMAIN_JOB_OPERATION_SNAPSHOT_REVERT] = "snapshot revert",
		[VIR_DOMAIN_JOB_OPERATION_DUMP] = "dump",
		[VIR_DOMAIN_JOB_OPERATION_BACKUP] = "backup",
		[VIR_DOMAIN_JOB_OPERATION_SNAPSHOT_DELETE] = "snapshot deletion",
	};
	const size_t count = sizeof names / sizeof names[0];
	bool is_known = operation >= 0 && (size_t)operation < count && names[operation];

	return is_known ? names[operation] : "job of an unknown kind";
}

static bool is_over(struct domain *d, int code)
{
	return (code == VIR_ERR_OPERATION_INVALID || code == VIR_ERR_NO_DOMAIN) &&
	       !domain_is_active(d);
}

static const struct call look = {
	.make = call_look_for_job,
	.complaint = "cannot ask for its job",
	.wait = ERRAND_IN_FULL,
};

/* 1: a job of some kind, 0: none; a driver that has no jobs, and a domain that does not run,
 * have none.
 */
static int look_for_job(struct domain *d, struct call *c, struct err *err)
{
	struct err why;

	if (call_make(c, d, &why) == 0)
		return c->params.type == VIR_DOMAIN_JOB_NONE ? 0 : 1;
	if (c->code == VIR_ERR_NO_SUPPORT || is_over(d, c->code))
		return 0;
	*err = why;
	return -1;
}

static int operation_of(const struct call *c)
{
	int operation = VIR_DOMAIN_JOB_OPERATION_UNKNOWN;

	virTypedParamsGetInt(c->params.list, c->params.count, VIR_DOMAIN_JOB_OPERATION, &operation);
	return operation;
}

static void name_job(const struct call *c, struct backup_job *out)
{
	int operation = operation_of(c);

	out->is_backup = operation == VIR_DOMAIN_JOB_OPERATION_BACKUP;
	snprintf(out->kind, sizeof out->kind, "%s", operation_name(operation));
}

static int make_description(virDomainPtr dom, struct call *c)
{
	c->answer = virDomainBackupGetXMLDesc(dom, 0);
	return c->answer ? 0 : -1;
}

/* 0: it has ended just now. */
static int describe_backup(struct domain *d, enum errand_wait wait, struct backup_job *out,
			   struct err *err)
{
	autocall struct call c = {
		.make = make_description,
		.complaint = "cannot ask for its backup job",
		.wait = wait,
	};
	struct err why;

	if (call_make(&c, d, &why) == 0)
		return job_xml_read_backup(c.answer, out, err) < 0 ? -1 : 1;
	if (c.code == VIR_ERR_NO_DOMAIN_BACKUP)
		return 0;
	*err = why;
	return -1;
}

int backup_find(struct domain *d, enum errand_wait wait, struct backup_job *out, struct err *err)
{
	autocall struct call c = look;
	int found;

	*out = (struct backup_job){ 0 };
	c.wait = wait;
	found = look_for_job(d, &c, err);
	if (found <= 0)
		return found;
	name_job(&c, out);
	if (out->is_backup)
		found = describe_backup(d, wait, out, err);
	if (found <= 0)
		backup_job_free(out);
	return found;
}

void backup_job_free(struct backup_job *job)
{
	free(job->target);
	free(job->socket);
	free(job->scratch);
	*job = (struct backup_job){ 0 };
}

/* --- abort --- */

/* 1: a backup job, 0: no job; -1 also for a job of another kind. */
static int find_abortable(struct domain *d, struct err *err)
{
	autocall struct call c = look;
	struct backup_job job = { 0 };
	int found = look_for_job(d, &c, err);

	if (found <= 0)
		return found;
	name_job(&c, &job);
	if (job.is_backup)
		return 1;
	return err_set(err, ERR_FAILED, "domain %s: no backup job runs, but another: %s", d->name,
		       job.kind);
}

static int make_abort(virDomainPtr dom, struct call *c)
{
	(void)c;
	return virDomainAbortJob(dom);
}

/* That there is none any more is as good. */
static int tell_to_end(struct domain *d, struct err *err)
{
	struct call c = {
		.make = make_abort,
		.complaint = "cannot end its backup job",
		.wait = ERRAND_IN_FULL,
	};

	return call_make(&c, d, err) < 0 && c.code != VIR_ERR_OPERATION_INVALID ? -1 : 0;
}

static void say_if_slow(const struct domain *d, uint64_t start, bool *is_said)
{
	if (*is_said || clock_seconds_since(start) < SLOW_SECONDS)
		return;
	*is_said = true;
	log_note("domain %s: libvirt takes its time to end the backup job; a minute or two is "
		 "usual when the guest was rebooted or its agent stopped meanwhile",
		 d->name);
}

/* It cannot be asked while its QEMU goes away. */
static int wait_until_gone(struct domain *d, struct err *err)
{
	uint64_t start = clock_ns();
	unsigned pause_ms = PAUSE_MS;
	bool is_said = false;
	int found;

	while ((found = find_abortable(d, err)) > 0 || (found < 0 && domain_is_shutting_down(d))) {
		if (clock_seconds_since(start) > GONE_SECONDS)
			return err_set(err, ERR_FAILED,
				       "domain %s: its backup job does not end within %d s",
				       d->name, GONE_SECONDS);
		say_if_slow(d, start, &is_said);
		clock_sleep_longer_ms(&pause_ms, PAUSE_MAX_MS);
	}
	return found;
}

int backup_abort(struct domain *d, struct err *err)
{
	int found = find_abortable(d, err);

	if (found <= 0)
		return found;
	return tell_to_end(d, err) < 0 ? -1 : wait_until_gone(d, err);
}

/* --- how it fares --- */

int backup_progress(struct domain *d, struct backup_progress *out, struct err *err)
{
	autocall struct call c = look;
	int found;

	*out = (struct backup_progress){ 0 };
	c.wait = ERRAND_CUT_SHORT;
	found = look_for_job(d, &c, err);
	if (found < 0)
		return -1;
	if (found == 0)
		return err_set(err, ERR_FAILED, "domain %s: no backup job runs any more", d->name);
	out->scratch_bytes = param_number(&c, VIR_DOMAIN_JOB_DISK_TEMP_USED);
	return 0;
}

/* libvirt says that of every job that was told to end. */
#define CANCELED "peration canceled"

static bool is_reason(const struct call *c, const char *words)
{
	int success = 0;

	if (operation_of(c) != VIR_DOMAIN_JOB_OPERATION_BACKUP)
		return false;
	virTypedParamsGetBoolean(c->params.list, c->params.count, VIR_DOMAIN_JOB_SUCCESS, &success);
	return !success && !strstr(words, CANCELED);
}

void backup_why_ended(struct domain *d, char *text, size_t cap)
{
	autocall struct call c = look;
	const char *words = NULL;
	struct err unused;

	text[0] = '\0';
	c.flags = VIR_DOMAIN_JOB_STATS_COMPLETED | VIR_DOMAIN_JOB_STATS_KEEP_COMPLETED;
	if (call_make(&c, d, &unused) == 0 &&
	    virTypedParamsGetString(c.params.list, c.params.count, VIR_DOMAIN_JOB_ERRMSG, &words) >
		    0 &&
	    words && is_reason(&c, words))
		log_printable(text, cap, words);
}
