// SPDX-License-Identifier: Apache-2.0
#include "virt/virt_inner.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* libvirt's keep-alive needs somebody who turns its event loop: one thread for the whole process.
 * It lives as long as that does, since connections that were left behind may still use it.
 */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct err why_not; /* written under once */

/* What fails at once, and for ever, must not take a whole CPU. */
#define BREATH_US 100000

static void *turn(void *unused)
{
	(void)unused;
	for (;;)
		if (virEventRunDefaultImpl() < 0)
			usleep(BREATH_US);
	return NULL;
}

/* No signal may be delivered to it: they belong to the threads that look for them. */
static int start_thread(void)
{
	sigset_t all, before;
	pthread_t thread;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, NULL, turn, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc == 0 ? pthread_detach(thread) : rc;
}

/* Errors are returned here, never printed. */
static void say_nothing(void *unused, virErrorPtr error)
{
	(void)unused;
	(void)error;
}

static void start(void)
{
	virSetErrorFunc(NULL, say_nothing);
	if (virInitialize() < 0 || virEventRegisterDefaultImpl() < 0)
		virt_fail(&why_not, ERR_FAILED, "cannot start libvirt's client library");
	else if (start_thread() != 0)
		err_set(&why_not, ERR_FAILED, "cannot start a thread");
}

int virt_events_start(struct err *err)
{
	pthread_once(&once, start);
	if (why_not.kind == ERR_NONE)
		return 0;
	*err = why_not;
	return -1;
}
