/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_OUTCOME_H
#define CCSNAP_OUTCOME_H

/* What a run prints on standard output when it is over. */
struct options;
struct plan;
struct report;
struct snapshot;

/* Of create and convert. */
void outcome_print(const struct options *opt, const struct plan *plan, const struct report *r,
		   const struct snapshot *s);

/* destination: its name. */
void outcome_print_upload(const struct options *opt, const struct report *r,
			  const char *destination);

#endif
