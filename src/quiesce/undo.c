// SPDX-License-Identifier: Apache-2.0
#include "quiesce/undo.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/io.h"
#include "base/str.h"
#include "quiesce/by_hand.h"
#include "quiesce/record.h"
#include "quiesce/record_text.h"
#include "virt/backup.h"
#include "virt/domain.h"
#include "virt/overlay.h"
#include "virt/virt.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	POLL_MS = 100,
	ASK_MS = 5000,
	GOING_DOWN_MS = 300000, /* libvirt may notice late that a QEMU has ended */
	SETTLE_MS = 2000,	/* for a call on its way to show as a job */
	BEGINNING_MS = 30000,	/* for a job that is being begun to say whose it is */
};

#define autojob CLEANUP(backup_job_free)

static bool is_same(const char *a, const char *b)
{
	return a && b && str_equal(a, b);
}

bool undo_job_is_ours(const struct backup_job *job, const char *scratch, const char *socket)
{
	return job->is_backup && (is_same(job->scratch, scratch) || is_same(job->socket, socket));
}

/* Not when it is its own storage that is full, or broken, as far as libvirt can tell. */
static bool is_stopped_for_us(struct domain *d, const struct domain_status *status,
			      const char *target)
{
	struct err ignored = { 0 };

	return status->is_stopped_by_io_error && domain_is_out_of_room(d, target, &ignored) != 0;
}

/* Without room for our file to grow, QEMU has stopped the guest; its write is tried again.
 * target NULL: of any disk.
 */
static int let_go_on(struct domain *d, const char *target, struct err *err)
{
	struct domain_status status;

	if (domain_look(d, &status, err) < 0)
		return domain_is_active(d) ? -1 : 0;
	if (!is_stopped_for_us(d, &status, target) || domain_resume(d, err) == 0)
		return 0;
	return by_hand(virt_by_hand(d, "resume", NULL), err);
}

/* --- jobs --- */

static bool can_tell(struct domain *d)
{
	return domain_is_active(d) && virt_is_alive(domain_connection(d));
}

/* 1, 0, -1; whoever is off has none. */
static int look_for_job(struct domain *d, enum errand_wait wait, struct backup_job *job,
			struct err *err)
{
	int rc;

	*job = (struct backup_job){ 0 };
	rc = domain_is_active(d) ? backup_find(d, wait, job, err) : 0;
	return rc < 0 && !domain_is_active(d) ? 0 : rc;
}

/* While a job is being begun, libvirt may fail to tell; nothing is undone, so a signal ends it. */
static int ask_for_job(struct domain *d, struct backup_job *job, struct err *err)
{
	uint64_t start = clock_ns();
	int rc;

	while ((rc = look_for_job(d, ERRAND_CUT_SHORT, job, err)) < 0 && can_tell(d) &&
	       clock_seconds_since(start) * 1000 < ASK_MS) {
		if (interrupt_check(err) < 0)
			return -1;
		clock_sleep_ms(POLL_MS);
	}
	return rc;
}

static bool is_worth_another_try(struct domain *d, uint64_t start)
{
	if (!can_tell(d))
		return false;
	return clock_seconds_since(start) * 1000 <
	       (domain_is_shutting_down(d) ? GOING_DOWN_MS : ASK_MS);
}

/* For undoing it. */
static int find_job(struct domain *d, struct backup_job *job, struct err *err)
{
	uint64_t start = clock_ns();
	int rc;

	while ((rc = look_for_job(d, ERRAND_IN_FULL, job, err)) < 0 &&
	       is_worth_another_try(d, start))
		clock_sleep_ms(POLL_MS);
	return rc;
}

static char *describe(const struct backup_job *job)
{
	const char *where = job->scratch ? job->scratch : job->socket;

	if (!job->is_backup)
		return str_format("a job (%s) is under way; try again when it has ended",
				  job->kind);
	return str_format(
		"a backup job is under way that this ccsnap has not begun%s%s%s; wait until it "
		"has ended, or end it with virsh domjobabort",
		where ? " (" : "", where ? where : "", where ? ")" : "");
}

int undo_find_others(struct domain *d, const char *scratch, const char *socket, char **what,
		     struct err *err)
{
	autojob struct backup_job job = { 0 };
	int rc = ask_for_job(d, &job, err);

	*what = NULL;
	if (rc <= 0)
		return rc;
	if (undo_job_is_ours(&job, scratch, socket))
		return 0;
	*what = describe(&job);
	return *what ? 0 : err_nomem(err);
}

static int end_job(struct domain *d, const struct backup_job *job, struct err *err)
{
	if (backup_abort(d, err) < 0)
		return by_hand(virt_by_hand(d, "domjobabort", NULL), err);
	return let_go_on(d, job->target, err) < 0 ? -1 : 1;
}

/* One look: 1 ended, 0 none of ours, -1; *wait_ms: so long from the start until a 0 is
 * believed.
 */
static int try_job(struct domain *d, const char *scratch, const char *socket, unsigned *wait_ms,
		   struct err *err)
{
	autojob struct backup_job job = { 0 };
	int rc = find_job(d, &job, err);

	*wait_ms = SETTLE_MS;
	if (rc <= 0)
		return rc;
	if (undo_job_is_ours(&job, scratch, socket))
		return end_job(d, &job, err);
	*wait_ms = job.is_backup && !job.scratch && !job.socket ? BEGINNING_MS : 0;
	return 0;
}

int undo_job(struct domain *d, const char *scratch, const char *socket, enum undo_doubt doubt,
	     struct err *err)
{
	uint64_t start = clock_ns();
	unsigned wait_ms;
	int rc;

	while ((rc = try_job(d, scratch, socket, &wait_ms, err)) == 0 && doubt == UNDO_UNSETTLED &&
	       domain_is_active(d) && clock_seconds_since(start) * 1000 < wait_ms)
		clock_sleep_ms(POLL_MS);
	/* it was there, and has ended by itself */
	if (rc == 0 && doubt == UNDO_SETTLED)
		rc = let_go_on(d, NULL, err);
	return rc;
}

/* --- overlays --- */

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 || errno != ENOENT;
}

static int remove_overlay(const char *overlay, struct err *err)
{
	struct stat st;

	if (lstat(overlay, &st) < 0)
		return errno == ENOENT ? 0
				       : err_errno(err, ERR_FAILED, "cannot look at %s", overlay);
	if (!S_ISREG(st.st_mode) || io_is_protected(&st))
		return err_set(err, ERR_FAILED, "%s is no overlay, and left alone", overlay);
	if (unlink(overlay) == 0)
		return 1;
	err_errno(err, ERR_FAILED, "cannot remove %s", overlay);
	return err_hint(err, "the domain no longer uses it");
}

static int merge(struct domain *d, const struct undo_overlay *o, struct err *err)
{
	if (overlay_end(d, o->target, o->path, err) == 0) {
		int rc = remove_overlay(o->path, err) < 0 ? -1 : 1;

		return let_go_on(d, o->target, err) < 0 ? -1 : rc;
	}
	err_context(err, "%s may still be in use: do not remove it", o->path);
	return by_hand(overlay_by_hand(d, o->target, o->path), err);
}

/* The XML says nothing about a snapshot that is being made. */
static int await_idle(struct domain *d, struct err *err)
{
	uint64_t start = clock_ns();
	int rc;

	do {
		autojob struct backup_job job = { 0 };

		rc = find_job(d, &job, err);
		if (rc <= 0)
			return rc;
		err_set(err, ERR_FAILED, "the domain %s has a job (%s) that does not end",
			domain_name(d), job.kind);
		clock_sleep_ms(POLL_MS);
	} while (clock_seconds_since(start) * 1000 < BEGINNING_MS);
	return -1;
}

static int is_used(struct domain *d, const struct undo_overlay *o, struct err *err)
{
	int used = await_idle(d, err) < 0 ? -1 : overlay_is_used(d, o->target, o->path, err);

	return used < 0 ? err_context(err,
				      "cannot tell whether %s is still in use: do not remove "
				      "it",
				      o->path)
			: used;
}

static int say_what_to_do(struct err *err)
{
	return err_hint(err, "look whether the disk lacks anything that is in it (qemu-img info "
			     "--backing-chain tells which disk it belongs to), then remove it");
}

static int remove_unused(struct domain *d, const struct undo_overlay *o, struct err *err)
{
	if (!exists(o->path))
		return 0;
	if (o->run_id >= 0 && domain_run_id(d) == o->run_id)
		return remove_overlay(o->path, err);
	err_set(err, ERR_FAILED,
		"%s is on no disk of the domain %s, and may hold what it wrote last: it is kept",
		o->path, domain_name(d));
	return say_what_to_do(err);
}

int undo_overlay_of_nobody(const char *path, struct err *err)
{
	if (!exists(path))
		return 0;
	err_set(err, ERR_FAILED,
		"libvirt no longer knows the domain, and %s may hold what it wrote last: it is "
		"kept",
		path);
	return say_what_to_do(err);
}

int undo_overlay(struct domain *d, const struct undo_overlay *overlay, enum undo_doubt doubt,
		 struct err *err)
{
	uint64_t start = clock_ns();
	int used, rc;

	while ((used = is_used(d, overlay, err)) == 0 && doubt == UNDO_UNSETTLED &&
	       domain_is_active(d) && clock_seconds_since(start) * 1000 < SETTLE_MS)
		clock_sleep_ms(POLL_MS);
	if (used < 0)
		return -1;
	if (used > 0)
		return merge(d, overlay, err);
	rc = remove_unused(d, overlay, err);
	if (rc == 0 && doubt == UNDO_SETTLED)
		rc = let_go_on(d, overlay->target, err);
	return rc;
}

/* --- the record --- */

int undo_forget(struct record *r, struct err *err)
{
	struct record_note rest = *record_note(r); /* its strings stay the record's */

	rest.target = rest.scratch_dir = rest.scratch = rest.socket = rest.overlay = NULL;
	return record_note_is_clear(&rest) ? record_clear(r, err) : record_write(r, &rest, err);
}
