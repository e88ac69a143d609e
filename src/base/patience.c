// SPDX-License-Identifier: Apache-2.0
#include "base/patience.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define LOOK_UP_MS 100

/* After a signal, work that looks for one itself gets so long to end. */
#define GRACE_SECONDS 3

struct patience {
	pthread_t thread;
	pthread_mutex_t lock; /* guards the rest but lost */
	pthread_cond_t changed;
	int (*work)(void *ctx, struct err *err); /* NULL: nothing to do */
	void *ctx;
	int result;
	struct err err;
	bool quit;
	bool lost, is_deaf; /* the caller's */
};

static void *patience_main(void *arg)
{
	struct patience *p = arg;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (!p->work && !p->quit)
			pthread_cond_wait(&p->changed, &p->lock);
		if (!p->work)
			break;
		pthread_mutex_unlock(&p->lock);
		p->result = p->work(p->ctx, &p->err);
		pthread_mutex_lock(&p->lock);
		p->work = NULL;
		pthread_cond_broadcast(&p->changed);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

struct patience *patience_begin(struct err *err)
{
	struct patience *p = calloc(1, sizeof *p);
	pthread_condattr_t attr;

	if (!p) {
		err_nomem(err);
		return NULL;
	}
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&p->thread, NULL, patience_main, p) == 0)
		return p;
	free(p);
	err_set(err, ERR_FAILED, "cannot start a thread");
	return NULL;
}

/* True when the work is done, false after a short wait. */
static bool look(struct patience *p)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_UP_MS * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	if (p->work)
		pthread_cond_timedwait(&p->changed, &p->lock, &until);
	return !p->work;
}

static uint64_t beats(const atomic_uint_fast64_t *pulse)
{
	return pulse ? atomic_load(pulse) : 0;
}

/* 0 once the work is done, -1 when it is time to give up. */
static int wait_for(struct patience *p, unsigned seconds, const atomic_uint_fast64_t *pulse,
		    const char *what, struct err *err)
{
	uint64_t start = clock_ns(), signalled = 0, last = beats(pulse);

	while (!look(p)) {
		uint64_t now = beats(pulse);

		if (now != last)
			start = clock_ns();
		last = now;
		if (seconds && clock_seconds_since(start) >= seconds)
			return err_set(err, ERR_FAILED,
				       "%s: no answer for %u seconds (see --stall-timeout)", what,
				       seconds);
		if (!signalled && !p->is_deaf && interrupt_pending())
			signalled = clock_ns();
		if (signalled && clock_seconds_since(signalled) >= GRACE_SECONDS)
			return interrupt_check(err);
	}
	return 0;
}

int patience_run(struct patience *p, int (*work)(void *ctx, struct err *err), void *ctx,
		 unsigned seconds, const atomic_uint_fast64_t *pulse, const char *what,
		 struct err *err)
{
	pthread_mutex_lock(&p->lock);
	p->work = work;
	p->ctx = ctx;
	pthread_cond_broadcast(&p->changed);
	p->lost = wait_for(p, seconds, pulse, what, err) < 0;
	pthread_mutex_unlock(&p->lock);
	if (p->lost)
		return -1;
	if (p->result < 0)
		*err = p->err;
	return p->result;
}

void patience_ignore_signals(struct patience *p)
{
	p->is_deaf = true;
}

int patience_is_lost(const struct patience *p)
{
	return p->lost;
}

void patience_end(struct patience *p)
{
	if (!p || p->lost)
		return;
	pthread_mutex_lock(&p->lock);
	p->quit = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
