/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CONTACT_H
#define CCSNAP_CONTACT_H

/* A domain that has to be reached again after its daemon was restarted: by a new connection
 * to the same URI, when the one that we were given is dead.
 */
struct domain;
struct err;
struct virt;

struct contact {
	struct domain *given; /* borrowed */
	int run_id;	      /* of the start that we work with */

	/* ours, NULL as long as the given one will do */
	struct virt *virt;
	struct domain *domain;
};

void contact_begin(struct contact *c, struct domain *given);

/* 1 with *out, which is good until the next call; 0 when the daemon has no such domain any
 * more; -1 when nothing answers for a third of a minute (a signal does not shorten that).
 */
int contact_reach(struct contact *c, struct domain **out, struct err *err);

/* The domain, if it still is the one that was started then; else NULL with what has become
 * of it.
 */
struct domain *contact_same_run(struct contact *c, struct err *err);

void contact_end(struct contact *c);

#endif
