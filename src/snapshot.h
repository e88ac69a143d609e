/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SNAPSHOT_H
#define CCSNAP_SNAPSHOT_H

#include "base/cleanup.h"

/* The story of `create` (and of `convert`, which is the same from an image):
 * open the source, check what could stand in the way, capture, hash, publish.
 * The report is filled in as it goes along, also when it ends early; what it
 * borrows lives until snapshot_free, which removes whatever is unpublished.
 */
struct err;
struct instance_facts;
struct plan;
struct progress;
struct report;
struct snapshot;
struct tree_facts;

struct snapshot *snapshot_new(const struct plan *plan, struct report *report,
			      struct progress *progress, struct err *err);
int snapshot_run(struct snapshot *s, struct err *err);

/* Beside the published image, where the destination has such a place. */
int snapshot_attach_report(struct snapshot *s, const char *json, struct err *err);

/* Path or URL of the image; after a successful run. */
const char *snapshot_destination(const struct snapshot *s);

/* Of a tree that was planned, else NULL. */
const struct tree_facts *snapshot_tree(const struct snapshot *s);

/* Of a domain that was found, else NULL. */
const struct instance_facts *snapshot_instance(const struct snapshot *s);

void snapshot_free(struct snapshot *s); /* NULL is fine */

CLEANUP_TYPE(struct snapshot, snapshot, snapshot_free)
#define autosnapshot CLEANUP(snapshot_cleanup)

#endif
