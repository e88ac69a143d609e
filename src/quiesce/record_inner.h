/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_RECORD_INNER_H
#define CCSNAP_RECORD_INNER_H

struct err;
struct record;

/* Read it anew: whoever shares it may have written since.  The guard has to. */
int record_reload(struct record *r, struct err *err);

#endif
