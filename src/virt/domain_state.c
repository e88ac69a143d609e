// SPDX-License-Identifier: Apache-2.0
#include "virt/domain.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "virt/call.h"
#include "virt/virt_inner.h"

#include <stddef.h>
#include <stdio.h>

/* A reason that has no row of its own, and may be newer than this table, is the ANY of its
 * state.
 */
enum { ANY = -1 };

static const struct {
	int state, reason;
	enum domain_state is;
	const char *text;
} states[] = {
	{ VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_POSTCOPY, DOMAIN_BUSY, "being migrated" },
	{ VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_POSTCOPY_FAILED, DOMAIN_BROKEN,
	  "in the middle of a migration that failed" },
	{ VIR_DOMAIN_RUNNING, ANY, DOMAIN_RUNNING, "running" },
	{ VIR_DOMAIN_BLOCKED, ANY, DOMAIN_RUNNING, "running" },

	{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_USER, DOMAIN_PAUSED, "paused by a user" },
	{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_WATCHDOG, DOMAIN_PAUSED, "paused by its watchdog" },
	{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_FROM_SNAPSHOT, DOMAIN_PAUSED,
	  "paused since it was put back to a snapshot" },
	{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_IOERROR, DOMAIN_BROKEN,
	  "paused because of an I/O error of a disk" },
	{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_CRASHED, DOMAIN_BROKEN,
	  "paused because its guest crashed" },
	{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY_FAILED, DOMAIN_BROKEN,
	  "in the middle of a migration that failed" },
	{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_MIGRATION, DOMAIN_BUSY, "being migrated" },
	{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY, DOMAIN_BUSY, "being migrated" },
	{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_SAVE, DOMAIN_BUSY, "being saved" },
	{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_DUMP, DOMAIN_BUSY, "being dumped" },
	{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_SNAPSHOT, DOMAIN_BUSY, "in a snapshot job" },
	{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_STARTING_UP, DOMAIN_BUSY, "starting up" },
	{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_SHUTTING_DOWN, DOMAIN_BUSY, "shutting down" },
	{ VIR_DOMAIN_PAUSED, ANY, DOMAIN_PAUSED, "paused" },

	{ VIR_DOMAIN_SHUTDOWN, ANY, DOMAIN_BUSY, "shutting down" },

	{ VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_CRASHED, DOMAIN_OFF, "shut off since it crashed" },
	{ VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_MIGRATED, DOMAIN_AWAY,
	  "shut off since it was migrated to another host" },
	{ VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_SAVED, DOMAIN_OFF,
	  "shut off since its memory was saved to a file" },
	{ VIR_DOMAIN_SHUTOFF, ANY, DOMAIN_OFF, "shut off" },

	{ VIR_DOMAIN_CRASHED, VIR_DOMAIN_CRASHED_PANICKED, DOMAIN_BROKEN,
	  "crashed: its kernel panicked" },
	{ VIR_DOMAIN_CRASHED, ANY, DOMAIN_BROKEN, "crashed" },

	{ VIR_DOMAIN_PMSUSPENDED, ANY, DOMAIN_PAUSED, "in standby" },

	{ ANY, ANY, DOMAIN_BUSY, "in a state that libvirt does not tell" },
};

/* Jobs in which a domain is on its way to somewhere else.  A backup is none of them. */
static const struct {
	int operation;
	const char *text;
} jobs[] = {
	{ VIR_DOMAIN_JOB_OPERATION_START, "starting up" },
	{ VIR_DOMAIN_JOB_OPERATION_SAVE, "being saved" },
	{ VIR_DOMAIN_JOB_OPERATION_RESTORE, "being restored" },
	{ VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN, "being migrated to this host" },
	{ VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT, "being migrated" },
	{ VIR_DOMAIN_JOB_OPERATION_SNAPSHOT, "in a snapshot job" },
	{ VIR_DOMAIN_JOB_OPERATION_SNAPSHOT_REVERT, "being put back to a snapshot" },
	{ VIR_DOMAIN_JOB_OPERATION_DUMP, "being dumped" },
};

static void set(struct domain_status *out, enum domain_state state, const char *text)
{
	out->state = state;
	snprintf(out->text, sizeof out->text, "%s", text);
}

static bool is_shutting_down(int state, int reason)
{
	return state == VIR_DOMAIN_SHUTDOWN ||
	       (state == VIR_DOMAIN_PAUSED && reason == VIR_DOMAIN_PAUSED_SHUTTING_DOWN);
}

static bool fits(int row, int is)
{
	return row == ANY || row == is;
}

void domain_state_name(int state, int reason, struct domain_status *out)
{
	size_t i = 0;

	while (!fits(states[i].state, state) || !fits(states[i].reason, reason))
		i++;
	*out = (struct domain_status){
		.is_stopped_by_io_error =
			state == VIR_DOMAIN_PAUSED && reason == VIR_DOMAIN_PAUSED_IOERROR,
		.is_shutting_down = is_shutting_down(state, reason),
		.has_saved_memory =
			state == VIR_DOMAIN_SHUTOFF && reason == VIR_DOMAIN_SHUTOFF_SAVED,
		.has_crashed = state == VIR_DOMAIN_SHUTOFF && reason == VIR_DOMAIN_SHUTOFF_CRASHED,
	};
	set(out, states[i].is, states[i].text);
}

void domain_job_name(int operation, struct domain_status *out)
{
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
		if (jobs[i].operation == operation)
			set(out, DOMAIN_BUSY, jobs[i].text);
}

/* What keeps even a question waiting until libvirt gives it up is passing, too.  Where jobs are
 * not known at all there are none.
 */
static int look_for_job(struct domain *d, struct domain_status *out, struct err *err)
{
	autocall struct call c = {
		.make = call_look_for_job,
		.complaint = "cannot ask for its job",
	};
	struct err why;
	int operation;

	if (call_make(&c, d, &why) < 0) {
		if (c.code == VIR_ERR_OPERATION_TIMEOUT)
			set(out, DOMAIN_BUSY, "held by another job of libvirt");
		if (c.code == VIR_ERR_OK)
			*err = why;
		return c.code == VIR_ERR_OK ? -1 : 0;
	}
	if (c.params.type != VIR_DOMAIN_JOB_NONE &&
	    virTypedParamsGetInt(c.params.list, c.params.count, VIR_DOMAIN_JOB_OPERATION,
				 &operation) > 0)
		domain_job_name(operation, out);
	return 0;
}

static int make_look_for_image(virDomainPtr dom, struct call *c)
{
	(void)c;
	return virDomainHasManagedSaveImage(dom, 0);
}

int domain_has_saved_image(struct domain *d, enum errand_wait wait, struct err *err)
{
	struct call c = {
		.make = make_look_for_image,
		.complaint = "cannot ask whether its memory is saved",
		.wait = wait,
	};
	struct err why;
	int has = call_make(&c, d, &why);

	if (has >= 0)
		return has > 0;
	if (c.code == VIR_ERR_NO_SUPPORT)
		return 0;
	*err = why;
	return -1;
}

/* Then its disks hold only a part of what its memory knew. */
static int look_for_saved_memory(struct domain *d, struct domain_status *out, struct err *err)
{
	int has = domain_has_saved_image(d, ERRAND_CUT_SHORT, err);

	if (has <= 0)
		return has;
	set(out, DOMAIN_OFF, "shut off with its memory saved to a file");
	out->has_saved_memory = true;
	return 0;
}

static int make_look_at_state(virDomainPtr dom, struct call *c)
{
	return virDomainGetState(dom, &c->status.state, &c->status.reason, 0);
}

static int look_at_state(struct domain *d, enum errand_wait wait, struct domain_status *out,
			 struct err *err)
{
	struct call c = {
		.make = make_look_at_state,
		.complaint = "cannot ask for its state",
		.wait = wait,
	};

	if (call_make(&c, d, err) < 0)
		return -1;
	domain_state_name(c.status.state, c.status.reason, out);
	return 0;
}

int domain_look(struct domain *d, struct domain_status *out, struct err *err)
{
	return look_at_state(d, ERRAND_IN_FULL, out, err);
}

bool domain_is_shutting_down(struct domain *d)
{
	struct domain_status status;
	struct err unused;

	return domain_look(d, &status, &unused) == 0 && status.is_shutting_down;
}

int domain_status(struct domain *d, struct domain_status *out, struct err *err)
{
	if (look_at_state(d, ERRAND_CUT_SHORT, out, err) < 0)
		return -1;
	if (out->state == DOMAIN_RUNNING || out->state == DOMAIN_PAUSED)
		return look_for_job(d, out, err);
	return out->state == DOMAIN_OFF ? look_for_saved_memory(d, out, err) : 0;
}

static bool has_no_room(const virDomainDiskError *e, const char *target)
{
	return e->error == VIR_DOMAIN_DISK_ERROR_NO_SPACE &&
	       (!target || str_equal(e->disk, target));
}

static int make_look_for_room(virDomainPtr dom, struct call *c)
{
	int most = virDomainGetDiskErrors(dom, NULL, 0, 0), count = 0, is_out = 0;
	autofree virDomainDiskError *errors =
		most > 0 ? calloc((size_t)most, sizeof *errors) : NULL;

	if (most > 0)
		count = errors ? virDomainGetDiskErrors(dom, errors, (unsigned)most, 0) : -1;
	for (int i = 0; i < count; i++) {
		is_out |= has_no_room(&errors[i], c->target);
		free(errors[i].disk);
	}
	return most < 0 || count < 0 ? -1 : is_out;
}

int domain_is_out_of_room(struct domain *d, const char *target, struct err *err)
{
	struct call c = {
		.make = make_look_for_room,
		.complaint = "cannot ask for errors of its disks",
		.wait = ERRAND_IN_FULL,
		.target = target,
	};

	return call_make(&c, d, err);
}

static int make_resume(virDomainPtr dom, struct call *c)
{
	(void)c;
	return virDomainResume(dom);
}

static bool runs(struct domain *d)
{
	struct domain_status status;
	struct err unused;

	return domain_look(d, &status, &unused) == 0 && status.state == DOMAIN_RUNNING;
}

int domain_resume(struct domain *d, struct err *err)
{
	struct call c = {
		.make = make_resume,
		.complaint = "cannot be resumed",
		.wait = ERRAND_IN_FULL,
	};
	struct err why;

	if (call_make(&c, d, &why) == 0 || runs(d))
		return 0;
	*err = why;
	return -1;
}
