/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_BY_HAND_H
#define CCSNAP_BY_HAND_H

/* What a user has to type where we have failed: added to err as a hint.  Each returns -1. */
struct domain;
struct err;

int by_hand(char *command, struct err *err); /* malloc, taken over; as of virt_by_hand */
int by_hand_thaw(struct domain *d, struct err *err);
int by_hand_reset_patience(struct domain *d, struct err *err);

#endif
