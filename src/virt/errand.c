// SPDX-License-Identifier: Apache-2.0
#include "virt/errand.h"

#include "base/patience.h"

#include <stdbool.h>

/* The caller, when it gives up, and the thread, when it is done: the second one frees. */
static void leave(struct errand *e)
{
	if (atomic_exchange(&e->is_over, true))
		e->free(e);
}

static int run(void *ctx, struct err *err)
{
	struct errand *e = ctx;
	int rc = e->run(e, err);

	leave(e);
	return rc;
}

static unsigned limit(const struct errand *e)
{
	return e->seconds ? e->seconds : ERRAND_SECONDS;
}

static void give_up(struct errand *e, const char *what, struct err *err)
{
	if (err->kind != ERR_INTERRUPTED) {
		err_set(err, e->kind, "%s: no answer for %u seconds", what, limit(e));
		err_hint(err, "%s", e->advice);
	}
	leave(e);
}

int errand_run(struct errand **e, const char *what, struct err *err)
{
	struct patience *p = patience_begin(err);
	int rc;

	if (!p)
		return -1;
	if ((*e)->wait == ERRAND_IN_FULL)
		patience_ignore_signals(p);
	rc = patience_run(p, run, *e, limit(*e), NULL, what, err);
	if (patience_is_lost(p))
		give_up(steal(e), what, err);
	patience_end(p);
	return rc;
}
