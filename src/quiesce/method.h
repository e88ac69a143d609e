/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_METHOD_H
#define CCSNAP_METHOD_H

/* What the methods of quiesce.h have in common while they get ready. */
struct err;
struct quiesce;
struct record_note;

/* ERR_REFUSED when somebody else's job runs in the domain, or on the disk. */
int method_refuse_others(const struct quiesce *q, struct err *err);

int method_open_scratch(struct quiesce *q, struct err *err);

/* Note what the method is about to make (own: scratch, socket, overlay; borrowed), besides
 * what is noted already.
 */
int method_note(const struct quiesce *q, const struct record_note *own, struct err *err);

#endif
