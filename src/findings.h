/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_FINDINGS_H
#define CCSNAP_FINDINGS_H

#include <stdint.h>

/* What a capture finds out, put into the report section by section; strings stay the finder's. */
struct instance;
struct instance_facts;
struct pipeline_stats;
struct report;
struct source;
struct tree_facts;

void findings_of_source(struct report *r, const struct source *source);
void findings_of_tree(struct report *r, const struct tree_facts *facts);
void findings_of_instance(struct report *r, const struct instance_facts *facts);
void findings_of_hold(struct report *r, const struct instance *instance); /* so far */
void findings_of_capture(struct report *r, uint64_t size, const struct pipeline_stats *stats);

#endif
