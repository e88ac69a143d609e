/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_QUIESCE_KIT_H
#define CCSNAP_QUIESCE_KIT_H

/* A domain with an agent and a daemon that exist in memory only, in place of src/virt: what
 * happens to them stands in *world, which processes may share.
 */
#include "base/err.h"
#include "virt/agent.h"
#include "virt/domain.h"
#include "virt/virt.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define KIT_URI	 "fake:///here"
#define KIT_UUID "11111111-2222-3333-4444-555555555555"

enum { ALWAYS = -1 };

struct world {
	/* the domain */
	atomic_int is_frozen, run_id; /* run_id -1: it is off */
	atomic_int state;	      /* enum domain_state */
	atomic_int patience;	      /* 0: libvirt's own */
	atomic_int expected_patience;

	/* its agent; each number says how often it fails from now on, or ALWAYS */
	atomic_int freeze_fails, thaw_fails, status_fails, trim_fails, patience_fails;
	atomic_int freezes_all_the_same; /* a freeze that fails */
	atomic_int freeze_count, thaw_count;
	atomic_int is_absent, cannot_freeze, cannot_trim, is_frozen_by_others;
	atomic_int thaws, freezes;
	atomic_int late_freeze; /* is done when the status was asked for so often */

	/* its daemon: what was opened before it went away is dead */
	atomic_int daemon_age, is_down, hangs, is_unknown;
	atomic_int opens;

	/* the words that were said to the fakes, in order */
	char said[4096];
};

static struct world *world;

static void said(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void said(const char *fmt, ...)
{
	size_t len = strlen(world->said);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(world->said + len, sizeof world->said - len, fmt, ap);
	va_end(ap);
	len = strlen(world->said);
	if (len + 1 < sizeof world->said)
		strcpy(world->said + len, " ");
}

static void world_begin(struct world *w)
{
	memset(w, 0, sizeof *w);
	w->run_id = 7;
	w->freeze_count = w->thaw_count = 2;
	world = w;
}

static bool fails(atomic_int *times)
{
	if (*times > 0)
		(*times)--;
	else if (*times == 0)
		return false;
	return true;
}

/* --- virt/virt.h --- */

struct virt {
	int daemon_age;
};

struct virt *virt_open(const char *uri, enum virt_access access, struct err *err)
{
	struct virt *v = calloc(1, sizeof *v);

	assert_string_equal(uri, KIT_URI);
	assert_int_equal(access, VIRT_MANAGE);
	world->opens++;
	while (world->hangs)
		usleep(10000);
	if (world->is_down) {
		free(v);
		err_set(err, ERR_REFUSED, "cannot connect to the fake");
		return NULL;
	}
	v->daemon_age = world->daemon_age;
	return v;
}

struct virt *virt_reopen(const struct virt *v, struct err *err)
{
	return virt_open(virt_uri(v), virt_access(v), err);
}

const char *virt_uri(const struct virt *v)
{
	(void)v;
	return KIT_URI;
}

enum virt_access virt_access(const struct virt *v)
{
	(void)v;
	return VIRT_MANAGE;
}

bool virt_is_alive(const struct virt *v)
{
	return !world->is_down && v->daemon_age == world->daemon_age;
}

void virt_close(struct virt *v)
{
	free(v);
}

/* --- virt/domain.h --- */

struct domain {
	struct virt *virt;
};

static int check_alive(const struct domain *d, struct err *err)
{
	return virt_is_alive(d->virt) ? 0 : err_set(err, ERR_FAILED, "the connection is broken");
}

struct domain *domain_find(struct virt *v, const char *which, struct err *err)
{
	struct domain *d = calloc(1, sizeof *d);

	assert_string_equal(which, KIT_UUID);
	d->virt = v;
	if (!world->is_unknown)
		return d;
	free(d);
	err_set(err, ERR_REFUSED, "no domain of that name");
	return NULL;
}

struct domain *domain_find_uuid(struct virt *v, const char *uuid, struct err *err)
{
	return domain_find(v, uuid, err);
}

const char *domain_name(const struct domain *d)
{
	(void)d;
	return "vm";
}

const char *domain_uuid(const struct domain *d)
{
	(void)d;
	return KIT_UUID;
}

struct virt *domain_connection(const struct domain *d)
{
	return d->virt;
}

bool domain_is_active(struct domain *d)
{
	return !virt_is_alive(d->virt) || world->run_id >= 0;
}

int domain_run_id(const struct domain *d)
{
	return virt_is_alive(d->virt) ? world->run_id : -1;
}

int domain_status(struct domain *d, struct domain_status *out, struct err *err)
{
	if (check_alive(d, err) < 0)
		return -1;
	out->state = (enum domain_state)world->state;
	strcpy(out->text, out->state == DOMAIN_PAUSED ? "paused by a user" : "running");
	return 0;
}

char *virt_by_hand(struct domain *d, const char *command, ...)
{
	return str_format("virsh -c %s %s " KIT_UUID, virt_uri(d->virt), command);
}

void domain_close(struct domain *d)
{
	free(d);
}

/* --- virt/agent.h --- */

/* Can the agent be spoken with at all? */
static int agent_is_there(const struct domain *d, struct err *err)
{
	if (check_alive(d, err) < 0)
		return -1;
	if (world->run_id < 0)
		return err_set(err, ERR_FAILED, "the domain is off");
	return world->is_absent ? err_set(err, ERR_FAILED, "no agent") : 0;
}

int agent_set_patience(struct domain *d, unsigned seconds, struct err *err)
{
	said("patience=%u", seconds);
	if (check_alive(d, err) < 0)
		return -1;
	if (fails(&world->patience_fails))
		return err_set(err, ERR_FAILED, "domain vm: patience denied");
	world->patience = (int)seconds;
	return 0;
}

void agent_expect_patience(struct domain *d, unsigned seconds)
{
	(void)d;
	world->expected_patience = (int)seconds;
}

int agent_reset_patience(struct domain *d, struct err *err)
{
	said("patience-back");
	if (check_alive(d, err) < 0)
		return -1;
	if (fails(&world->patience_fails))
		return err_set(err, ERR_FAILED, "patience denied");
	world->patience = 0;
	return 0;
}

int agent_probe(struct domain *d, struct agent_facts *out, struct err *err)
{
	said("probe");
	*out = (struct agent_facts){ 0 };
	if (check_alive(d, err) < 0)
		return -1;
	assert_true(world->patience > 0);
	out->answers = !world->is_absent;
	out->can_freeze = out->answers && !world->cannot_freeze;
	out->can_trim = out->answers && !world->cannot_trim;
	out->is_frozen = out->answers && world->is_frozen_by_others;
	if (!out->can_freeze)
		strcpy(out->why_not, "the agent will not");
	return 0;
}

void agent_facts_free(struct agent_facts *facts)
{
	(void)facts;
}

int agent_freeze(struct domain *d, unsigned *count, struct err *err)
{
	said("freeze");
	world->freezes++;
	if (agent_is_there(d, err) < 0)
		return -1;
	assert_true(world->patience > 0);
	if (fails(&world->freeze_fails)) {
		world->is_frozen = world->freezes_all_the_same;
		return err_set(err, ERR_FAILED,
			       "domain vm: cannot freeze its filesystems: freeze failed");
	}
	world->is_frozen = 1;
	*count = (unsigned)world->freeze_count;
	return 0;
}

int agent_thaw(struct domain *d, unsigned *count, struct err *err)
{
	said("thaw");
	world->thaws++;
	if (agent_is_there(d, err) < 0)
		return -1;
	if (world->is_frozen_by_others)
		fail_msg("what others had frozen was thawed");
	if (fails(&world->thaw_fails))
		return err_set(err, ERR_FAILED,
			       "domain vm: cannot thaw its filesystems: thaw failed");
	*count = (unsigned)(world->is_frozen ? world->thaw_count : 0);
	world->is_frozen = 0;
	return 0;
}

int agent_is_frozen(struct domain *d, struct err *err)
{
	said("status");
	if (agent_is_there(d, err) < 0)
		return -1;
	if (fails(&world->status_fails))
		return err_set(err, ERR_FAILED, "status failed");
	if (world->late_freeze > 0 && --world->late_freeze == 0)
		world->is_frozen = 1;
	return world->is_frozen || world->is_frozen_by_others;
}

int agent_trim(struct domain *d, struct err *err)
{
	said("trim");
	if (agent_is_there(d, err) < 0)
		return -1;
	return fails(&world->trim_fails) ? err_set(err, ERR_FAILED, "trim failed") : 0;
}

#endif
