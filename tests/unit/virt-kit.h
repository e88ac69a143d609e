/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_VIRT_KIT_H
#define CCSNAP_TEST_VIRT_KIT_H

/* A libvirt that a test makes up: one domain, one job, one overlay; and a clock on which pauses
 * take no time.  All of virt/ that the tested parts use is defined here, so that nothing
 * of the real one is linked: include it once a program.
 */
#include "state-kit.h"

#include "base/clock.h"
#include "quiesce/freeze.h"
#include "virt/agent.h"
#include "virt/backup.h"
#include "virt/domain.h"
#include "virt/hardware.h"
#include "virt/overlay.h"
#include "virt/virt.h"

#include <stdatomic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>

struct virt {
	int daemon; /* the start of the daemon that it spoke to */
	bool is_own;
	const char *elsewhere; /* its URI, which is not the world's; NULL: it is */
};

struct domain {
	struct virt *virt;
};

/* What is true; make_world sets it anew. */
static struct {
	int daemon;		     /* the number of its start, 0: it does not answer */
	int daemon_comes_back_after; /* so many tries to connect; 0: never */
	enum virt_place place;
	const char *uri;

	bool exists; /* the daemon knows the domain */
	int run_id;  /* -1: off */

	/* the job: its kind, "" for none */
	char kind[40], job_target[16], job_socket[300], job_scratch[300], job_export[16];
	int finds_that_fail;
	int finds_until_job; /* a begin whose caller died: it shows after so many looks */
	int begin_says;
	bool abort_fails;
	const char *why_ended;

	bool overlay_is_used, merge_fails, overlay_use_is_unknown;
	int looks_until_used;
	int overlay_begin_says;

	atomic_bool is_stopped; /* for lack of room */
	bool is_stopped_by_another_disk, is_shutting_down;
	bool resume_fails;
	atomic_ullong free_bytes; /* where the scratch directory is; 0: as it is */

	bool is_frozen, agent_is_absent, thaw_fails, reset_fails;
	unsigned patience; /* 0: libvirt's own */

	int thaws, resets;
	atomic_int opened, aborts, merges, resumes;
} world;

static struct virt given_virt;
static struct domain given = { .virt = &given_virt };

static inline int make_world(void **state)
{
	memset(&world, 0, sizeof world);
	world.daemon = 1;
	world.uri = "qemu:///system";
	world.exists = true;
	world.run_id = 4;
	world.why_ended = "";
	given_virt.daemon = 1;
	return make_state(state);
}

/* --- time --- */

static atomic_ullong now_ns;

uint64_t clock_ns(void)
{
	return now_ns;
}

void clock_sleep_ms(unsigned ms)
{
	now_ns += ms * UINT64_C(1000000);
}

/* --- room --- */

int statvfs(const char *path, struct statvfs *out)
{
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return -1;
	memset(out, 0, sizeof *out);
	out->f_frsize = world.free_bytes ? 1 : (unsigned long)fs.f_bsize;
	out->f_bavail = world.free_bytes ? world.free_bytes : fs.f_bavail;
	return 0;
}

/* --- virt.h --- */

struct virt *virt_open(const char *uri, enum virt_access access, struct err *e)
{
	struct virt *v;

	assert_string_equal(uri, world.uri);
	assert_int_equal(access, VIRT_MANAGE);
	if (world.daemon == 0 && world.daemon_comes_back_after > 0 &&
	    --world.daemon_comes_back_after == 0)
		world.daemon = 2;
	if (world.daemon == 0) {
		err_set(e, ERR_REFUSED, "nothing answers at %s", uri);
		return NULL;
	}
	v = calloc(1, sizeof *v);
	assert_non_null(v);
	v->daemon = world.daemon;
	v->is_own = true;
	world.opened++;
	return v;
}

struct virt *virt_reopen(const struct virt *v, struct err *e)
{
	return virt_open(virt_uri(v), virt_access(v), e);
}

const char *virt_uri(const struct virt *v)
{
	return v->elsewhere ? v->elsewhere : world.uri;
}

enum virt_access virt_access(const struct virt *v)
{
	(void)v;
	return VIRT_MANAGE;
}

enum virt_place virt_place(const struct virt *v)
{
	(void)v;
	return world.place;
}

bool virt_is_alive(const struct virt *v)
{
	return v->daemon == world.daemon;
}

void virt_close(struct virt *v)
{
	if (!v)
		return;
	assert_true(v->is_own);
	world.opened--;
	free(v);
}

/* --- domain.h --- */

static inline bool answers(const struct domain *d, struct err *e)
{
	if (virt_is_alive(d->virt))
		return true;
	err_set(e, ERR_FAILED, "the connection is dead");
	return false;
}

struct domain *domain_find_uuid(struct virt *v, const char *uuid, struct err *e)
{
	struct domain *d;

	assert_string_equal(uuid, UUID);
	assert_null(v->elsewhere);
	if (!world.exists) {
		err_set(e, ERR_REFUSED, "no such domain");
		return NULL;
	}
	d = calloc(1, sizeof *d);
	assert_non_null(d);
	d->virt = v;
	return d;
}

const char *domain_name(const struct domain *d)
{
	(void)d;
	return "vm";
}

const char *domain_uuid(const struct domain *d)
{
	(void)d;
	return UUID;
}

struct virt *domain_connection(const struct domain *d)
{
	return d->virt;
}

/* Off only when libvirt says so. */
bool domain_is_active(struct domain *d)
{
	return !virt_is_alive(d->virt) || world.run_id >= 0;
}

int domain_run_id(const struct domain *d)
{
	return virt_is_alive(d->virt) ? world.run_id : -1;
}

int domain_look(struct domain *d, struct domain_status *out, struct err *e)
{
	*out = (struct domain_status){
		.is_stopped_by_io_error = world.is_stopped,
		.is_shutting_down = world.is_shutting_down,
	};
	return answers(d, e) ? 0 : -1;
}

bool domain_is_shutting_down(struct domain *d)
{
	struct domain_status status;
	struct err unused;

	return domain_look(d, &status, &unused) == 0 && status.is_shutting_down;
}

int domain_is_out_of_room(struct domain *d, const char *target, struct err *e)
{
	if (target)
		assert_string_equal(target, "vda");
	if (!answers(d, e))
		return -1;
	return world.is_stopped && !(target && world.is_stopped_by_another_disk);
}

int domain_resume(struct domain *d, struct err *e)
{
	if (!answers(d, e) || world.resume_fails)
		return err_set(e, ERR_FAILED, "not resumed");
	world.resumes++;
	world.is_stopped = false;
	return 0;
}

void domain_close(struct domain *d)
{
	assert_true(d != &given);
	free(d);
}

/* --- backup.h --- */

static inline void set_job(const char *kind, const char *socket, const char *scratch)
{
	snprintf(world.kind, sizeof world.kind, "%s", kind);
	snprintf(world.job_socket, sizeof world.job_socket, "%s", socket);
	snprintf(world.job_scratch, sizeof world.job_scratch, "%s", scratch);
	strcpy(world.job_target, "vda");
}

char *backup_xml(struct domain *d, const struct backup_request *request, struct err *e)
{
	assert_string_equal(request->target, "vda");
	return answers(d, e) ? str_format("%s %s %s", request->export_name, request->socket,
					  request->scratch)
			     : NULL;
}

int backup_begin(struct domain *d, const char *target, const char *xml, struct err *e)
{
	char socket[200], scratch[200];

	assert_string_equal(target, "vda");
	if (!answers(d, e))
		return -1;
	if (world.begin_says != 0)
		return err_set(e, ERR_FAILED, "no backup jobs here"), world.begin_says;
	assert_int_equal(sscanf(xml, "%15s %199s %199s", world.job_export, socket, scratch), 3);
	set_job("backup", socket, scratch);
	put_file(socket, "", 0600);
	put_file(scratch, "", 0600);
	return 0;
}

static inline char *copy_or_null(const char *text)
{
	return *text ? strdup(text) : NULL;
}

int backup_find(struct domain *d, enum errand_wait wait, struct backup_job *out, struct err *e)
{
	(void)wait;
	*out = (struct backup_job){ 0 };
	if (!answers(d, e))
		return -1;
	if (world.finds_that_fail > 0 && world.finds_that_fail--)
		return err_set(e, ERR_FAILED, "backup job data missing");
	if (world.finds_until_job > 0) {
		world.finds_until_job--;
		return 0;
	}
	if (!*world.kind || world.run_id < 0)
		return 0;
	out->is_backup = str_equal(world.kind, "backup");
	strcpy(out->kind, world.kind);
	out->target = copy_or_null(world.job_target);
	out->socket = copy_or_null(world.job_socket);
	out->scratch = copy_or_null(world.job_scratch);
	return 1;
}

void backup_job_free(struct backup_job *job)
{
	free(job->target);
	free(job->socket);
	free(job->scratch);
	*job = (struct backup_job){ 0 };
}

int backup_abort(struct domain *d, struct err *e)
{
	if (!answers(d, e))
		return -1;
	if (world.abort_fails)
		return err_set(e, ERR_FAILED, "it does not end");
	world.kind[0] = '\0';
	world.aborts++;
	return 0;
}

void backup_why_ended(struct domain *d, char *text, size_t cap)
{
	(void)d;
	snprintf(text, cap, "%s", world.why_ended);
}

int backup_progress(struct domain *d, struct backup_progress *out, struct err *e)
{
	*out = (struct backup_progress){ .scratch_bytes = 4711 };
	return answers(d, e) ? 0 : -1;
}

/* --- overlay.h --- */

char *overlay_xml(struct domain *d, const char *target, const char *path, struct err *e)
{
	assert_string_equal(target, "vda");
	return answers(d, e) ? strdup(path) : NULL;
}

int overlay_begin(struct domain *d, const char *target, const char *xml, struct err *e)
{
	assert_string_equal(target, "vda");
	if (!answers(d, e))
		return -1;
	if (world.overlay_begin_says != 0)
		return err_set(e, ERR_FAILED, "no snapshot");
	put_file(xml, "what the guest writes", 0600);
	world.overlay_is_used = true;
	return 0;
}

int overlay_end(struct domain *d, const char *target, const char *path, struct err *e)
{
	(void)path;
	assert_string_equal(target, "vda");
	if (!answers(d, e))
		return -1;
	if (world.merge_fails)
		return err_set(e, ERR_FAILED, "it is not merged");
	world.overlay_is_used = false;
	world.merges++;
	return 0;
}

int overlay_is_used(struct domain *d, const char *target, const char *path, struct err *e)
{
	(void)path;
	assert_string_equal(target, "vda");
	if (!answers(d, e))
		return -1;
	if (world.overlay_use_is_unknown)
		return err_set(e, ERR_FAILED, "no XML");
	if (world.looks_until_used > 0 && --world.looks_until_used == 0)
		world.overlay_is_used = true;
	return world.overlay_is_used;
}

char *virt_by_hand(struct domain *d, const char *command, ...)
{
	return str_format("virsh -c %s %s " UUID, virt_uri(d->virt), command);
}

char *overlay_by_hand(struct domain *d, const char *target, const char *path)
{
	(void)d;
	(void)path;
	return str_format("virsh blockcommit %s", target);
}

/* --- agent.h, freeze.h --- */

int agent_probe(struct domain *d, struct agent_facts *out, struct err *e)
{
	*out = (struct agent_facts){ .answers = !world.agent_is_absent };
	if (!answers(d, e))
		return -1;
	assert_true(world.patience > 0); /* or it could wait for ever */
	out->is_frozen = out->answers && world.is_frozen;
	return 0;
}

void agent_facts_free(struct agent_facts *facts)
{
	(void)facts;
}

int agent_set_patience(struct domain *d, unsigned seconds, struct err *e)
{
	if (!answers(d, e))
		return -1;
	world.patience = seconds;
	return 0;
}

int agent_reset_patience(struct domain *d, struct err *e)
{
	if (!answers(d, e) || world.reset_fails)
		return err_set(e, ERR_FAILED, "not put back");
	world.resets++;
	world.patience = 0;
	return 0;
}

int freeze_end(struct domain *d, unsigned seconds, unsigned *count, struct err *e)
{
	assert_true(seconds > 0);
	if (virt_is_alive(d->virt))
		assert_true(world.patience > 0);
	if (!answers(d, e) || world.thaw_fails)
		return err_set(e, ERR_FAILED, "not thawed");
	world.thaws++;
	*count = world.is_frozen ? 2 : 0;
	world.is_frozen = false;
	return 0;
}

#endif
