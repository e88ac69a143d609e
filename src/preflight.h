/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_PREFLIGHT_H
#define CCSNAP_PREFLIGHT_H

#include <stdint.h>

/* What could stand in the way of a capture, looked for before anything is
 * written.  Findings go into the report.
 */
struct dest;
struct err;
struct plan;
struct report;
struct source;

struct preflight {
	const struct plan *plan;
	struct report *report;
	struct dest *dest;
	const char *name; /* of the source, its size and its sectors' */
	uint64_t size;
	unsigned sector_size;
	struct source *source;	  /* NULL while it cannot be read yet; then */
	uint64_t allocated_bytes; /* at most so much of it is data */
};

/* ERR_REFUSED when the source is larger than what was allowed, or the image's
 * format can hold; asks on a terminal before much data is taken.
 */
int preflight_limits(const struct preflight *p, struct err *err);

/* ERR_REFUSED when the destination cannot take it.  A dry run gets its estimate
 * all the same.
 */
int preflight_destination(const struct preflight *p, struct err *err);

#endif
