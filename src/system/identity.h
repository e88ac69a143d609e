/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_IDENTITY_H
#define CCSNAP_SYSTEM_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

/* What makes an instance itself and must not be in two: taken out of the image,
 * never out of the source.  Operations are named as virt-sysprep names them.
 */
struct edit;
struct err;

struct identity_removal;

struct identity_operation {
	const char *name;
	bool in_identity;			     /* part of --reset=identity */
	const char *help;			     /* one sentence */
	const struct identity_removal *removals;     /* what goes without conditions; may be NULL */
	int (*run)(struct edit *e, struct err *err); /* the rest; may be NULL */
};

extern const struct identity_operation identity_operations[]; /* ends with a NULL name */

/* list: "none", or names separated by commas, "identity" among them; "-NAME" takes
 * back what stands before it ("identity,-ssh-hostkeys").  True when all are known.
 */
bool identity_list_is_valid(const char *list);

/* What goes is entered as ACCOUNT_RESET, what would go but for a reason as
 * ACCOUNT_KEPT.  ERR_USAGE for a list that is not valid.
 */
int identity_reset(struct edit *e, const char *list, struct err *err);

#endif
