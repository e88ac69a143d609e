/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_FREEZE_H
#define CCSNAP_FREEZE_H

/* Thaw for certain: shared by the run itself, the guard and recovery. */
struct domain;
struct err;

/* Thaw until the agent's status says thawed, at most so many seconds and the agent's patience.
 * *count: of the first thaw that answered, untouched when none did; may be NULL.  0 when
 * thawed, or when the domain no longer runs (then nothing is frozen any more); -1 when it
 * cannot be told, at once when the connection is dead.
 */
int freeze_end(struct domain *d, unsigned seconds, unsigned *count, struct err *err);

#endif
