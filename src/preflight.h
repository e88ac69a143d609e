/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_PREFLIGHT_H
#define CCSNAP_PREFLIGHT_H

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
	struct source *source;
	struct dest *dest;
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
