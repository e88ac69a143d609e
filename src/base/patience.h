/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_PATIENCE_H
#define CCSNAP_PATIENCE_H

#include <stdatomic.h>

/* Something that may hang in the kernel (a file whose server does not answer)
 * is done in a thread of its own, so that the caller can give up: after a time,
 * or soon after a signal.  A thread that was given up is left behind with what
 * it uses and ends with the process.
 *
 * The thread stays until patience_end: a child process that it started dies
 * with it (base/child.h).
 */
struct err;
struct patience;

struct patience *patience_begin(struct err *err);

/* work(ctx, err) in the thread; returns what it returns.  seconds 0: only a
 * signal ends the wait.  Work that takes long counts up *pulse as it gets on:
 * each change starts the seconds anew; NULL: it has none.  When it is given up
 * (-1; what says what hung), ctx belongs to the thread for ever, as does pulse,
 * and nothing more can be run.
 */
int patience_run(struct patience *p, int (*work)(void *ctx, struct err *err), void *ctx,
		 unsigned seconds, const atomic_uint_fast64_t *pulse, const char *what,
		 struct err *err);

/* From now on only the seconds end a wait: for what undoes something. */
void patience_ignore_signals(struct patience *p);

/* Was something given up? */
int patience_is_lost(const struct patience *p);

void patience_end(struct patience *p); /* NULL is fine */

#endif
