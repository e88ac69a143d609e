// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"

#include "base/err.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static atomic_int pending;

static void remember(int sig)
{
	int none = 0;

	atomic_compare_exchange_strong(&pending, &none, sig);
}

void interrupt_install(void)
{
	static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action = { .sa_handler = remember };
	struct sigaction current;

	/* nohup and background jobs of a shell start us with signals ignored */
	for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
		if (sigaction(caught[i], NULL, &current) == 0 && current.sa_handler != SIG_IGN)
			sigaction(caught[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

int interrupt_pending(void)
{
	return atomic_load(&pending);
}

int interrupt_check(struct err *err)
{
	int sig = interrupt_pending();

	if (!sig)
		return 0;
	err_set(err, ERR_INTERRUPTED, "interrupted by SIG%s", sigabbrev_np(sig));
	err->sys_errno = sig;
	return -1;
}
