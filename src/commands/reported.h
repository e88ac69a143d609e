/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_REPORTED_H
#define CCSNAP_REPORTED_H

#include <stdbool.h>

/* A verb whose run leaves a report, however it ends: the frame around the run. */
struct err;
struct options;
struct progress;
struct report;

struct reported {
	/* The run itself.  It fills the report in as it goes along; what the report
	 * borrows lives until reported_run has returned.
	 */
	int (*run)(void *ctx, struct report *r, struct progress *progress, struct err *err);

	/* Put the report beside an image that arrived; NULL: there is no such place. */
	int (*attach)(void *ctx, const char *json, struct err *err);

	/* Tell on standard output what came of it. */
	void (*print)(void *ctx, const struct report *r);
	void *ctx;
	bool is_dry_run;
};

/* The exit code, or -1. */
int reported_run(const struct options *opt, const struct reported *what, struct err *err);

#endif
