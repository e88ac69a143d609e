// SPDX-License-Identifier: Apache-2.0
#include "quiesce/roomwatch.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/patience.h"
#include "base/size.h"
#include "quiesce/contact.h"
#include "quiesce/scratch.h"
#include "quiesce/scratch_inner.h"
#include "virt/domain.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	LOOK_MS = 50,
	ASK_MS = 1000,	   /* between questions to libvirt */
	AGAIN_MS = 1000,   /* after a try to give up that failed */
	HANG_SECONDS = 20, /* until a filesystem that does not answer is asked no more */
	RESERVE_SHARE = 4, /* of what was free at first */
};

#define RESERVE_MAX (128 * MIB)

/* What a look that hangs keeps for ever. */
struct room {
	uint64_t bytes;
	char dir[];
};

struct roomwatch {
	struct roomwatch_config cfg;
	struct contact contact;	   /* of the thread */
	struct patience *patience; /* for looks; with room NULL: it cannot be told */
	struct room *room;
	uint64_t reserve; /* when less is free, there is no time to lose */
	pthread_t thread;

	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t changed;
	bool is_to_stop, has_acted;
};

static struct timespec after(unsigned ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000L;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

/* Is it to go on? */
static bool wait_for(struct roomwatch *w, unsigned ms)
{
	struct timespec end = after(ms);
	bool goes_on;

	pthread_mutex_lock(&w->lock);
	while (!w->is_to_stop && pthread_cond_timedwait(&w->changed, &w->lock, &end) != ETIMEDOUT)
		;
	goes_on = !w->is_to_stop;
	pthread_mutex_unlock(&w->lock);
	return goes_on;
}

/* --- looking --- */

static int look_for_room(void *ctx, struct err *err)
{
	struct room *room = ctx;

	(void)err;
	room->bytes = scratch_room(room->dir);
	return 0;
}

/* UINT64_MAX: unknown, as from when a look hung. */
static uint64_t room_left(struct roomwatch *w)
{
	struct err why = { 0 };

	if (!w->room)
		return UINT64_MAX;
	if (patience_run(w->patience, look_for_room, w->room, HANG_SECONDS, NULL, w->room->dir,
			 &why) == 0)
		return w->room->bytes;
	log_debug("%s", why.text);
	w->room = NULL;
	return UINT64_MAX;
}

static int prepare_looks(struct roomwatch *w, const char *dir, struct err *err)
{
	if (!dir)
		return 0;
	w->patience = patience_begin(err);
	if (!w->patience)
		return -1;
	patience_ignore_signals(w->patience); /* who looks is told to stop */
	w->room = malloc(sizeof *w->room + strlen(dir) + 1);
	if (!w->room)
		return err_nomem(err);
	strcpy(w->room->dir, dir);
	return 0;
}

static bool is_stopped(struct roomwatch *w)
{
	struct domain_status status;
	struct err ignored = { 0 };
	struct domain *d;

	return contact_reach(&w->contact, &d, &ignored) > 0 &&
	       domain_look(d, &status, &ignored) == 0 && status.is_stopped_by_io_error;
}

/* Every so often libvirt is asked, too: the other end of ssh tells no room. */
static bool is_time_to_give_up(struct roomwatch *w, unsigned look)
{
	if (room_left(w) < w->reserve)
		return true;
	return look % (ASK_MS / LOOK_MS) == 0 && is_stopped(w);
}

/* --- acting --- */

/* Not when a look took until after the end: what there was to give up is being undone. */
static bool may_act(struct roomwatch *w)
{
	bool may;

	pthread_mutex_lock(&w->lock);
	may = !w->is_to_stop;
	w->has_acted |= may;
	pthread_mutex_unlock(&w->lock);
	return may;
}

static int give_up(struct roomwatch *w)
{
	struct err why = { 0 };

	if (w->cfg.give_up(w->cfg.ctx, &w->contact, &why) == 0)
		return 0;
	log_debug("%s", why.text); /* release tells it, if it stays so */
	return -1;
}

static void watch(struct roomwatch *w)
{
	for (unsigned look = 1; wait_for(w, LOOK_MS); look++) {
		if (!is_time_to_give_up(w, look))
			continue;
		while (may_act(w) && give_up(w) < 0 && wait_for(w, AGAIN_MS))
			;
		return;
	}
}

static void *run(void *ctx)
{
	watch(ctx);
	return NULL;
}

static int start(struct roomwatch *w, struct err *err)
{
	if (prepare_looks(w, scratch_dir(w->cfg.scratch), err) < 0)
		return -1;
	w->reserve = MIN(room_left(w) / RESERVE_SHARE, RESERVE_MAX);
	errno = pthread_create(&w->thread, NULL, run, w);
	return errno == 0 ? 0 : err_errno(err, ERR_FAILED, "cannot start a thread");
}

/* Signals belong to the threads that look for them. */
static int start_deaf(struct roomwatch *w, struct err *err)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = start(w, err);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static void init_changed(pthread_cond_t *changed)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

static void roomwatch_free(struct roomwatch *w)
{
	patience_end(w->patience);
	free(w->room);
	contact_end(&w->contact);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

struct roomwatch *roomwatch_start(const struct roomwatch_config *cfg, struct err *err)
{
	struct roomwatch *w = calloc(1, sizeof *w);

	if (!w) {
		err_nomem(err);
		return NULL;
	}
	w->cfg = *cfg;
	contact_begin(&w->contact, cfg->domain);
	pthread_mutex_init(&w->lock, NULL);
	init_changed(&w->changed);
	if (start_deaf(w, err) == 0)
		return w;
	roomwatch_free(w);
	return NULL;
}

bool roomwatch_has_acted(struct roomwatch *w)
{
	bool has;

	pthread_mutex_lock(&w->lock);
	has = w->has_acted;
	pthread_mutex_unlock(&w->lock);
	return has;
}

/* All that the thread waits for has an end. */
void roomwatch_stop(struct roomwatch *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->is_to_stop = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	roomwatch_free(w);
}
